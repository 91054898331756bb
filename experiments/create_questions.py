"""Makes questions about tables, with the cells that answer them, to train on before real ones.

    python -m experiments.create_questions --task=WTQ --input_dir=WikiTableQuestions \\
        --output_dir=out/questions --vocab_file=minilm/vocab.txt
    python -m experiments.create_data --task=JSONL --input_dir=out/questions \\
        --output_dir=out/questions_192 --vocab_file=minilm/vocab.txt --max_seq_length=192

The tables are those of --input_dir, in one of the layouts of docs/pretraining.md: with
--task=TABLES its CSV and TSV files, in folders below too; with TEXTS those of {split}.jsonl for
each of --splits; with WTQ and TABFACT those of the data set's --splits.

A question is about a random excerpt of a table, a run of rows and some columns that fit
--max_seq_length (with --whole_tables about the table as it is), and its answer is computed from
the excerpt: a cell beside another, the largest and the smallest, the first, the next and the last,
one of two, how many, their sum, their average. Each operation is put in words in several ways;
--held_out_forms asks for a cell beside another in other words than any other call does, for a test
on questions that training has not seen.

Writes {part}.jsonl for each of --parts, in the format of docs/own_data.md, with answers, cells and
aggregation. All questions about a table are in one part, which follows from its name;
--splits=dev --parts=test=100 in a second call keeps a data set's own division. A file appears once
it is complete; the same flags give the same files.
"""

from absl import flags

from experiments import program
from experiments.paper.made_of_tables import SEED, files

_LENGTH = flags.DEFINE_integer("max_seq_length", 192, "tokens of a question with its excerpt")
_PER_TABLE = flags.DEFINE_integer("questions_per_table", 64, "at most")
_WHOLE = flags.DEFINE_bool("whole_tables", False, "ask about whole tables, not about excerpts")
_OPERATIONS = flags.DEFINE_list("operations", None, "those to ask for; without it, all")
_HELD_OUT = flags.DEFINE_bool("held_out_forms", False, "words that are used nowhere else")


def main(_) -> None:
    from mate_tf.synthesis.creation import write_questions
    from mate_tf.synthesis.questions import OPERATIONS, QuestionsConfig

    config = QuestionsConfig(
        questions_per_table=_PER_TABLE.value,
        whole_tables=_WHOLE.value,
        max_seq_length=_LENGTH.value,
        operations=tuple(_OPERATIONS.value or OPERATIONS),
        held_out_forms=_HELD_OUT.value,
        seed=SEED.value,
    )
    print(write_questions(files(), config))


if __name__ == "__main__":
    program.run(main)
