"""Makes questions about tables, with the cells that answer them, to train on before real ones.

    python -m experiments.create_questions --task=WTQ --input_dir=WikiTableQuestions \\
        --output_dir=out/questions --vocab_file=minilm/vocab.txt
    python -m experiments.create_data --task=JSONL --input_dir=out/questions \\
        --output_dir=out/questions_192 --vocab_file=minilm/vocab.txt --max_seq_length=192

--input_dir holds tables in one of the layouts of docs/training.md. --task=TABLES reads its CSV
and TSV files, in subfolders too. TEXTS reads {split}.jsonl for each of --splits. WTQ and TABFACT
read the tables of a data set's --splits. MADE makes --num_tables small tables as people keep them.

A question is about a random excerpt of a table: a run of rows and some columns that fit
--max_seq_length. With --whole_tables it is about the whole table. Its answer is computed from the
excerpt: a cell beside another, the largest or smallest, the first, the next or the last, one of
two, a count, a sum, an average. Each operation is put in words in several ways. --held_out_forms
asks in words that no other question has, to test a trained model. With
--absent=0.1 a tenth of the questions lose the rows or the column that they are about. With
--rewritten=0.3 three of ten tables have 1.234,5 or $1,234.5 for 1,234.5, and other forms of dates.

Writes {part}.jsonl for each of --parts, in the format of docs/training.md, with answers, cells and
aggregation. All questions about a table are in one part, which follows from the table's name. To
keep a data set's own division, run it again with --splits=dev --parts=test=100. A file appears once
it is complete, and the same flags give the same files.
"""

from absl import flags

from experiments import program
from experiments.paper.made_of_tables import files

_LENGTH = flags.DEFINE_integer("max_seq_length", 192, "tokens of a question and its excerpt")
_PER_TABLE = flags.DEFINE_integer("questions_per_table", 64, "the most questions about a table")
_WHOLE = flags.DEFINE_bool("whole_tables", False, "ask about whole tables, not excerpts")
_OPERATIONS = flags.DEFINE_list("operations", None, "operations to ask for; all by default")
_ABSENT = flags.DEFINE_float("absent", 0.0, "share of questions that their table cannot answer")
_REWRITTEN = flags.DEFINE_float(
    "rewritten", 0.0, "share of tables with numbers and dates in another notation"
)
_HELD_OUT = flags.DEFINE_bool("held_out_forms", False, "ask in words that no other question has")


def main(_) -> None:
    from experiments.synthesis.creation import write_questions
    from experiments.synthesis.questions import OPERATIONS, QuestionsConfig

    of = files()
    config = QuestionsConfig(
        questions_per_table=_PER_TABLE.value,
        whole_tables=_WHOLE.value,
        max_seq_length=_LENGTH.value,
        operations=tuple(_OPERATIONS.value or OPERATIONS),
        held_out_forms=_HELD_OUT.value,
        absent=_ABSENT.value,
        rewritten=_REWRITTEN.value,
        seed=of.seed,
    )
    print(write_questions(of, config))


if __name__ == "__main__":
    program.run(main)
