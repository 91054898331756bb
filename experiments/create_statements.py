"""Makes true and false statements about tables, for intermediate pre-training of a classifier.

    python -m experiments.create_statements --task=WTQ --input_dir=WikiTableQuestions \\
        --output_dir=out/statements --vocab_file=minilm/vocab.txt --max_seq_length=128
    python -m experiments.create_data --task=JSONL --input_dir=out/statements \\
        --output_dir=out/statements_128 --vocab_file=minilm/vocab.txt --max_seq_length=128

The tables are those of --input_dir, in one of the layouts of docs/pretraining.md: with
--task=TABLES its CSV and TSV files, in folders below too; with TEXTS those of {split}.jsonl for
each of --splits, whose texts have to be true of their tables; with WTQ and TABFACT those of the
data set's --splits, of TabFact with the statements that are entailed.

--kinds says what is made of them (Eisenschlos et al., 2020, "Understanding tables with intermediate
pre-training"). Synthetic: random excerpts of a table, which fit --max_seq_length, and statements
about what is selected, compared, counted, summed up and so on in them. Excerpts come in twos, with
other rows ("elsewhere"), other cells in one column ("replaced") or these in another order
("swapped"); each statement is, by execution, true of the one and false of the other, so that it
says nothing of its class by itself. A statement about a row that is not there is false.
Counterfactual: sentences about the whole table, true as they are and false with an entity of the
table swapped for another of its column.

Writes {part}.jsonl for each of --parts, in the format of docs/own_data.md: class 1 is true. All
statements about a table are in one part, which follows from its name; --splits=dev --parts=dev=100
in a second call keeps a data set's own division. A file appears once it is complete; the same flags
give the same files.
"""

from absl import flags

from experiments import program
from experiments.paper.made_of_tables import SEED, files

_KINDS = flags.DEFINE_list("kinds", "synthetic", "of synthetic and counterfactual")
_LENGTH = flags.DEFINE_integer("max_seq_length", 128, "tokens of a statement with its excerpt")
_EXCERPTS = flags.DEFINE_integer("excerpts_per_table", 8, "excerpts drawn of a table")
_OPERATIONS = flags.DEFINE_integer(
    "operations_per_excerpt",
    3,
    "operations that four statements each are made of, two about an excerpt and two about another",
)
_ROWS = flags.DEFINE_integer("max_rows", 8, "of an excerpt")
_COLUMNS = flags.DEFINE_integer("max_columns", 4, "of an excerpt")


def main(_) -> None:
    from mate_tf.synthesis.creation import write_statements
    from mate_tf.synthesis.statements import StatementsConfig

    config = StatementsConfig(
        excerpts_per_table=_EXCERPTS.value,
        operations_per_excerpt=_OPERATIONS.value,
        max_seq_length=_LENGTH.value,
        max_rows=_ROWS.value,
        max_columns=_COLUMNS.value,
        seed=SEED.value,
    )
    print(write_statements(files(), config, _KINDS.value))


if __name__ == "__main__":
    program.run(main)
