"""Questions about excerpts: what they are about, their answers, and what is refused."""

import pytest

from mate_tf.datasets.json_lines import read_json_lines
from mate_tf.datasets.tasks import TASKS
from mate_tf.features.builder import FeatureBuilder
from mate_tf.features.config import FeatureConfig
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.records.conversion import Summary, convert_all
from mate_tf.synthesis.pairs import StatementsError
from mate_tf.synthesis.question_wording import _LOOK_UP_HELD_OUT
from mate_tf.synthesis.questions import QuestionsConfig, synthetic_questions
from mate_tf.tables.table import Table
from tests.small import run_binary
from tests.synthesis.small_tables import CITIES

CONFIG = QuestionsConfig(questions_per_table=40, max_seq_length=400, max_question_tokens=200)


def made(wordpiece, config=CONFIG, table=CITIES):
    questions = synthetic_questions(table, wordpiece, config)
    return [(q.operation, *example) for q in questions for example in q.examples]


def test_excerpts_fit_and_are_parts_of_the_table(wordpiece):
    config = QuestionsConfig(questions_per_table=40, max_seq_length=260, max_question_tokens=130)
    questions = made(wordpiece, config)
    assert {"look_up", "count"} <= {operation for operation, _, _ in questions}
    sizes = set()
    for _, table, question in questions:
        columns = [CITIES.header.index(name) for name in table.header]
        assert columns == sorted(columns)
        rows = [tuple(row[c] for c in columns) for row in CITIES.rows]
        start = rows.index(table.rows[0])
        assert tuple(rows[start : start + table.num_rows]) == table.rows
        cells = [cell for row in (table.header, *table.rows) for cell in row]
        tokens = int(wordpiece.ids_and_lengths(cells)[1].sum())
        assert tokens <= config.max_table_tokens
        assert int(wordpiece.ids_and_lengths([question.text])[1][0]) <= 130
        sizes.add((table.num_rows, table.num_columns))
    assert len(sizes) > 2


def test_answers_are_what_the_cells_say(wordpiece):
    for _, table, question in made(wordpiece):
        cells = [table.rows[row][column] for row, column in question.answer_coordinates]
        if question.aggregation == "NONE":
            assert list(question.answers) == cells
            continue
        numbers = (
            [float(cell.replace(",", "")) for cell in cells]
            if (question.aggregation != "COUNT")
            else []
        )
        result = {
            "COUNT": len(cells),
            "SUM": sum(numbers),
            "AVERAGE": sum(numbers) / max(1, len(numbers)),
        }[question.aggregation]
        assert question.answer_number == pytest.approx(result)
        assert float(question.answers[0]) == pytest.approx(result)


def test_the_same_seed_and_name_give_the_same_questions(wordpiece):
    first = made(wordpiece)
    assert made(wordpiece) == first
    other = made(wordpiece, QuestionsConfig(**{**vars(CONFIG), "seed": 1}))
    assert [q.text for _, _, q in other] != [q.text for _, _, q in first]
    ids = [question.question_id for _, _, question in first]
    assert len(set(ids)) == len(ids) <= 40


def test_held_out_forms_are_about_whole_tables_where_they_are_asked_to_be(wordpiece):
    config = QuestionsConfig(
        questions_per_table=8,
        whole_tables=True,
        max_seq_length=800,
        max_question_tokens=200,
        operations=("look_up",),
        held_out_forms=True,
    )
    beginnings = tuple(form.split(" {")[0].split(" the")[0] for form in _LOOK_UP_HELD_OUT)
    questions = made(wordpiece, config)
    assert questions
    for operation, table, question in questions:
        assert operation == "look_up" and table is CITIES
        assert question.text.startswith(beginnings)
        assert len(question.answer_coordinates) == 1


@pytest.mark.parametrize(
    ("table", "options", "reason"),
    [
        (Table(("a", "a"), (("x", "y"), ("z", "u")), "t"), {}, "fewer than two columns"),
        (CITIES, {"whole_tables": True, "max_seq_length": 210}, "too long"),
        (
            Table(("a", "b"), (("x", "y"), ("x", "y"), ("u", "v"), ("u", "v")), "t"),
            {"operations": ("average",)},
            "no question found",
        ),
    ],
)
def test_what_gives_no_question_says_why(wordpiece, table, options, reason):
    config = QuestionsConfig(**{**vars(CONFIG), **options})
    with pytest.raises(StatementsError, match=f"table '{table.table_id}'") as error:
        made(wordpiece, config, table)
    assert reason in error.value.reason


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"questions_per_table": 0}, "questions_per_table of at least 1, got 0"),
        ({"max_rows": 1}, "max_rows of at least 2, got 1"),
        ({"max_seq_length": 44}, "max_seq_length above 42"),
        ({"operations": ("divide",)}, "got 'divide'"),
        ({"operations": ()}, "got none"),
        ({"held_out_forms": True}, "with the operation look_up alone"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        QuestionsConfig(**options)


def test_the_binary_s_questions_become_records(tmp_path, wordpiece, vocab_file):
    folder = tmp_path / "in"
    folder.mkdir()
    for i in range(6):
        rows = "".join(f"{name},{n * (i + 2)}\n" for n, name in enumerate("abcdef", start=3))
        (folder / f"{i}.csv").write_text(f"name,points\n{rows}")
    (folder / "broken.csv").write_text("a,b\n1\n")
    (folder / "one.csv").write_text("a\n1\n2\n")
    done = run_binary(
        "experiments.create_questions",
        *(f"--input_dir={folder}", f"--output_dir={tmp_path / 'out'}"),
        *(f"--vocab_file={vocab_file}", "--max_seq_length=400", "--questions_per_table=12"),
        "--parts=train=50,dev=50",
    )
    assert done.returncode == 0, done.stderr
    assert "left out: 1 table: fewer than two columns to ask about" in done.stdout
    builder = FeatureBuilder(Wordpiece(vocab_file), FeatureConfig(max_seq_length=400))
    functions = set()
    for part in ("train", "dev"):
        pairs = list(read_json_lines(tmp_path / "out" / f"{part}.jsonl"))
        assert f"{part}: {len(pairs)} questions" in done.stdout
        summary = Summary("questions")
        for outcome in convert_all(TASKS["JSONL"], builder, pairs, is_training=True):
            summary.add(outcome)
            assert outcome.features is not None
            functions |= set(outcome.features["aggregation_function_id"].tolist())
            assert outcome.features["label_ids"].sum() > 0
        assert summary.num_kept == len(pairs) > 0
    assert {0, 3} <= functions


def test_the_binary_refuses_to_write_over_its_input(tmp_path, vocab_file):
    done = run_binary(
        "experiments.create_questions",
        *(f"--input_dir={tmp_path}", f"--output_dir={tmp_path}", f"--vocab_file={vocab_file}"),
    )
    assert done.returncode == 1
    assert "expected another folder than the input's" in done.stderr
