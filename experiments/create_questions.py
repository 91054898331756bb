"""Makes questions about tables, with the cells that answer them, to train on before real ones.

    python -m experiments.create_questions --task=WTQ --input_dir=WikiTableQuestions \\
        --output_dir=out/questions --vocab_file=minilm/vocab.txt
    python -m experiments.create_data --task=JSONL --input_dir=out/questions \\
        --output_dir=out/questions_192 --vocab_file=minilm/vocab.txt --max_seq_length=192

--input_dir, what is written and the flags of both are as of experiments/create_statements.py.
--task=MADE makes --num_tables small tables as people keep them.

A question is about a random excerpt of a table: a run of rows and some columns that fit
--max_seq_length. With --whole_tables it is about the whole table. Its answer is computed from the
excerpt: a cell beside another, the largest or smallest, the first, the next or the last, one of
two, a count, a sum, an average. Each operation is put in words in several ways. Operations
follow_... are asked where --operations names them: "and in 1996?", after a question whose answer is
marked in the table (experiments/synthesis/follow_up_drawing.py). --held_out_forms
asks in words that no other question has, to test a trained model. With
--absent=0.1 a tenth of the questions lose the rows or the column that they are about. With
--rewritten=0.3 three of ten tables have 1.234,5 or $1,234.5 for 1,234.5, and other forms of dates.
"""

from absl import flags

from experiments import program
from experiments.paper.made_of_tables import files

# Of the fields of QuestionsConfig that have their names.
_FIELDS = (
    flags.DEFINE_integer("max_seq_length", 192, "tokens of a question and its excerpt"),
    flags.DEFINE_integer("questions_per_table", 64, "the most questions about a table"),
    flags.DEFINE_bool("whole_tables", False, "ask about whole tables, not excerpts"),
    flags.DEFINE_bool("held_out_forms", False, "ask in words that no other question has"),
    flags.DEFINE_float("absent", 0.0, "share of questions that their table cannot answer"),
    flags.DEFINE_float("rewritten", 0.0, "share of tables with other forms of numbers and dates"),
)
_OPERATIONS = flags.DEFINE_list("operations", None, "operations to ask for; all by default")


def main(_) -> None:
    from experiments.synthesis.creation import write_questions
    from experiments.synthesis.questions import OPERATIONS, QuestionsConfig

    of = files()
    fields = {flag.name: flag.value for flag in _FIELDS}
    operations = tuple(_OPERATIONS.value or OPERATIONS)
    print(write_questions(of, QuestionsConfig(operations=operations, seed=of.seed, **fields)))


if __name__ == "__main__":
    program.run(main)
