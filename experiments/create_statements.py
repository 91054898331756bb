"""Makes true and false statements about tables, for intermediate pre-training of a classifier.

    python -m experiments.create_statements --task=WTQ --input_dir=WikiTableQuestions \\
        --output_dir=out/statements --vocab_file=minilm/vocab.txt --max_seq_length=128
    python -m experiments.create_data --task=JSONL --input_dir=out/statements \\
        --output_dir=out/statements_128 --vocab_file=minilm/vocab.txt --max_seq_length=128

--input_dir holds tables in one of the layouts of docs/training.md. --task=TABLES reads its CSV
and TSV files, in subfolders too. TEXTS reads {split}.jsonl for each of --splits; its texts have to
be true. INTERACTIONS are those of TAPAS's corpus. WTQ and TABFACT read the tables of a data set's
--splits, TABFACT with entailed statements.

--kinds names what is made of them (Eisenschlos et al., 2020, "Understanding tables with
intermediate pre-training"):

    synthetic       statements about excerpts of a table that fit --max_seq_length: about what is
                    selected, compared, counted, added up and so on. Two excerpts differ in their
                    rows ("elsewhere"), in one column's cells ("replaced") or in the order of one
                    column's cells ("swapped"). Each statement, when executed, is true of one and
                    false of the other, so its words do not tell its class. A statement about a row
                    that is not there is false.
    counterfactual  sentences about the whole table. As they are they are true; with an entity of
                    the table swapped for another of its column they are false.

Writes {part}.jsonl for each of --parts, in the format of docs/training.md: class 1 is true. All
statements about a table are in one part, which follows from the table's name. To keep a data set's
own division, run it again with --splits=dev --parts=dev=100. A file appears once it is complete,
and the same flags give the same files. --num_shards and --beam_options are as of
experiments/create_data.py, which reads the shards.
"""

from absl import flags

from experiments import program
from experiments.paper.made_of_tables import files

_KINDS = flags.DEFINE_list("kinds", "synthetic", "synthetic, counterfactual or both")
# Of the fields of StatementsConfig that have their names.
_FIELDS = (
    flags.DEFINE_integer("max_seq_length", 128, "tokens of a statement and its excerpt"),
    flags.DEFINE_integer("excerpts_per_table", 8, "pairs of excerpts of a table"),
    flags.DEFINE_integer(
        "operations_per_excerpt",
        3,
        "operations for each two excerpts; each makes two true and two false statements",
    ),
    flags.DEFINE_integer("max_rows", 8, "the most rows of an excerpt"),
    flags.DEFINE_integer("max_columns", 4, "the most columns of an excerpt"),
)


def main(_) -> None:
    from experiments.synthesis.creation import write_statements
    from experiments.synthesis.statements import StatementsConfig

    of = files()
    config = StatementsConfig(seed=of.seed, **{flag.name: flag.value for flag in _FIELDS})
    print(write_statements(of, config, _KINDS.value))


if __name__ == "__main__":
    program.run(main)
