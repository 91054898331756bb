"""Questions are answered a second time by what their names say, and excerpts are held to limits."""

import dataclasses
import itertools
import random
import re

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from experiments.synthesis.made_tables import rewritten
from experiments.synthesis.question_drawing import OPERATIONS, draw
from experiments.synthesis.questions import (
    FORMS,
    HELD_OUT,
    QuestionsConfig,
    phrase,
    synthetic_questions,
)
from experiments.synthesis.typed_table import FEWEST, NothingMadeError, TypedTable
from mate_tf.datasets.supervision import supervise
from mate_tf.features.numeric import values_in_column
from mate_tf.tables.operators import ABSENT
from mate_tf.tables.table import Table
from tests.experiments.synthesis.small_tables import CITIES, COUNTRY, PEOPLE, TYPED_CITIES, tables
from tests.small import cases, stored_cases

OPERATORS: dict[str, tuple[str, ...]] = {
    name.lower(): (name,) for name in ("COUNT", "SUM", "AVERAGE", "DIFFERENCE", "DISTINCT")
}
OPERATORS |= {"is": ("IS_GREATER", "IS_LESS", "IS_EQUAL"), "comparison": ("GREATER", "LESS")}
OPERATORS |= {"largest": ("NONE", "MAX"), "smallest": ("NONE", "MIN")}
WITH_ANSWER = ("MAX", "MIN", "GREATER", "LESS", "IS_GREATER", "IS_LESS", "IS_EQUAL", "DISTINCT")


def answer_rows(drawn, table: Table) -> set[int]:
    """The rows that answer a question, by texts and numbers of the table alone."""
    every = range(table.num_rows)

    def text(row, name):
        return table.rows[row][drawn.columns[name]]

    def value(row):
        return float(text(row, "N"))

    def quoted(name):
        row, column = drawn.cells[name]
        return table.rows[row][column]

    has_value = "K" in drawn.columns and "v" in drawn.cells
    where = {row for row in every if has_value and text(row, "K") == quoted("v")}
    named = {
        name: next(row for row in every if text(row, "T") == quoted(name))
        for name in ("a", "b")
        if name in drawn.cells and "T" in drawn.columns
    }
    form = drawn.form
    if form in ("amount", "how_many"):
        (row, column) = drawn.cells["v"]
        return {r for r in every if table.rows[r][column] == table.rows[row][column]}
    if form in ("difference", "is_equal") or form.startswith(("comparison", "is_")):
        return {row for row, _ in (drawn.cells["a"], drawn.cells["b"])}
    if form.endswith("_where") or form in ("look_up", "select", "count", "count_of_value"):
        return where
    if form in ("distinct", "count_all", "sum", "average"):
        return set(every)
    if form == "has":
        return {drawn.cells["a"][0]}
    if form.endswith("having"):
        said = "no" if "not_" in form else "yes"
        return {row for row in every if text(row, "K") == said}
    if form == "look_up_by_two":
        return {row for row in where if text(row, "L") == quoted("w")}
    if form == "other":
        return where - {named["a"]}
    if form.startswith("position"):
        ends = {"position_first": 0, "position_last": table.num_rows - 1}
        steps = {"position_next": 1, "position_previous": -1}
        return {ends[form]} if form in ends else {named["a"] + steps[form]}
    numbers = {row: value(row) for row in every if text(row, "N")}
    if form.startswith(("largest", "smallest")):
        extreme = (max if form.startswith("largest") else min)(numbers.values())
        return {row for row, number in numbers.items() if number == extreme}
    if form.startswith("top"):
        ordered = sorted(numbers, key=lambda row: numbers[row], reverse=form == "top_most")
        return set(ordered[: {"2": 2, "two": 2}.get(drawn.words["t"], 3)])
    said = drawn.words["t"].replace(",", "") if form.endswith("round") else quoted("v")
    sign = 1 if "_more_" in form else -1
    return {row for row, number in numbers.items() if sign * number > sign * float(said)}


@pytest.mark.medium
@settings(max_examples=200, deadline=None)
@given(tables(), st.sampled_from(OPERATIONS), st.integers(0, 9))
def test_the_cells_are_those_that_answer(table, operation, seed):
    drawn = draw(operation, TypedTable(table), random.Random(seed))
    if drawn is None:
        return
    assert set(drawn.rows) == answer_rows(drawn, table)
    assert list(drawn.rows) == sorted(set(drawn.rows))
    if "T" in drawn.columns and "N" not in drawn.columns:
        assert drawn.column == drawn.columns["T"]
    assert drawn.aggregation in OPERATORS.get(drawn.form.split("_")[0], ("NONE",))
    assert bool(drawn.answer) == (drawn.aggregation in WITH_ANSWER)
    if drawn.answer:
        assert drawn.answer == computed_again(drawn, table)


def computed_again(drawn, table: Table) -> str:
    """The answer that is a name, a yes or no, an extreme or a number of texts."""
    texts = {row: table.rows[row][drawn.column] for row in drawn.rows}
    if drawn.aggregation == "DISTINCT":
        return str(len({text.lower() for text in texts.values()}))
    order = sorted(texts, key=lambda row: float(texts[row]))
    if drawn.aggregation in ("MAX", "MIN"):
        return texts[order[-1 if drawn.aggregation == "MAX" else 0]]
    if drawn.aggregation in ("GREATER", "LESS"):
        row = order[-1 if drawn.aggregation == "GREATER" else 0]
        return table.rows[row][drawn.columns["T"]]
    first, second = (float(texts[drawn.cells[name][0]]) for name in "ab")
    holds = {"IS_GREATER": first > second, "IS_LESS": first < second, "IS_EQUAL": first == second}
    return "yes" if holds[drawn.aggregation] else "no"


@pytest.mark.parametrize("operation", OPERATIONS)
def test_each_operation_is_found_and_put_in_words(operation):
    columns = ("xyyx", ("yes", "no", "no", "yes"), "5794", [f"2024-0{n}-05" for n in "1341"])
    more = zip(*columns, strict=True)
    rows = [row + others for row, others in zip(CITIES.rows, more, strict=True)]
    wide = Table.from_rows(rows, (*CITIES.header, "Coast", "Port", "Total cost", "Visited"))
    table, rng = TypedTable(wide), random.Random(0)
    found = [drawn for _ in range(80) if (drawn := draw(operation, table, rng)) is not None]
    assert found
    for drawn in found:
        text = phrase(drawn, table, rng)
        assert text == text.lower() and "{" not in text


def wordings(form):
    parts = re.split(r"<([^<>]*)>", form)
    choices = [part.split("|") if i % 2 else [part] for i, part in enumerate(parts)]
    return {" ".join("".join(chosen).split()) for chosen in itertools.product(*choices)}


def test_every_form_has_its_places():
    known = {place: place.lower() for place in ("T", "K", "L", "N", "M", "v", "w", "a", "b")}
    known |= {"t": "5", "s": "best", "verb": "costs"}
    held_out = {form for forms in HELD_OUT.values() for form in forms}
    for name, forms in FORMS.items():
        assert len(set(forms)) == len(forms) >= 3, name
        assert not held_out & {said for form in forms for said in wordings(form)}
    assert FORMS.keys() > HELD_OUT.keys()
    for form in (form for forms in (*FORMS.values(), *HELD_OUT.values()) for form in forms):
        assert not any(set("<|>") & set(said) for said in wordings(form))
        assert form.format(who="who", **known).strip()


def test_a_pair_of_forms_has_each_side_s_words():
    assert FORMS["beyond_less_date"][0] == "{who} was before {v} ?"
    assert "{who} tops the list ?" in FORMS["position_first"]
    assert not [form for forms in FORMS.values() for form in forms if set("[]/") & set(form)]


DATED = Table.from_rows(
    [
        ("Order", "Date", "Price"),
        *(("A0", "2023-03-05", "120"), ("A1", "2024-03-09", "80")),
        *(("A2", "2024-07-01", "95"), ("A3", "2022-01-02", "7")),
    ]
)


@stored_cases("operation, form, words, rows")
def test_rows_beyond_and_within_what_is_said(operation, form, words, rows):
    table = TypedTable(DATED)
    found = (draw(operation, table, random.Random(seed)) for seed in range(300))
    assert {d.rows for d in found if d and (d.form, d.words) == (form, words)} == {rows}


def test_a_month_is_said_by_its_name():
    rows = tuple((f"A{day}", f"2024-0{month}-1{day}") for day, month in enumerate((3, 3, 5, 7)))
    table = TypedTable(Table(("Order", "Date"), rows, "months"))
    found = [d for s in range(200) if (d := draw("within", table, random.Random(s))) is not None]
    assert {d.rows for d in found if d.words["t"] in ("march", "march 2024")} == {(0, 1)}


@cases(
    "operation, name, said",
    ("largest", "Price", ("most expensive", "costs the most", "costs most")),
    ("smallest", "Age", ("youngest",)),
    ("comparison", "Ticket price", ("cheaper", "more expensive", "costs more", "costs less")),
    ("is_more", "Distance", ("longer", "shorter")),
    ("difference", "Age", ("older",)),
)
def test_a_column_s_own_adjectives(operation, name, said):
    cells = tuple((f"name{i}", str(number)) for i, number in enumerate((5, 9, 12)))
    table = TypedTable(Table(("Thing", name), cells, "scaled"))
    texts = []
    for seed in range(120):
        drawn = draw(operation, table, random.Random(seed))
        if drawn and not drawn.form.endswith("value"):
            texts.append(phrase(drawn, table, random.Random(seed)))
    assert all(any(words in text for text in texts) for words in said), texts[:5]
    scaled = [text for text in texts if any(words in text for words in said)]
    assert len(texts) / 4 < len(scaled) < len(texts)


def test_a_question_that_is_none_is_not_drawn():
    same = TypedTable(Table(("a", "b"), (("x", "y"), ("x", "y")), "same"))
    for operation in OPERATIONS:
        assert draw(operation, same, random.Random(0)) is None
    # Quito's people are not known: no extreme, no sum over all.
    for seed in range(40):
        drawn = draw("sum", TYPED_CITIES, random.Random(seed))
        assert drawn is None or drawn.column != PEOPLE or 3 not in drawn.rows
        drawn = draw("count", TYPED_CITIES, random.Random(seed))
        assert drawn is None or drawn.columns["K"] != COUNTRY or drawn.rows in ((0, 1), (2,), (3,))


CONFIG = QuestionsConfig(questions_per_table=40, max_seq_length=400, max_question_tokens=200)


def made(wordpiece, config=CONFIG, table=CITIES):
    questions = synthetic_questions(table, wordpiece, config)
    return [(q.operation, *example) for q in questions for example in q.examples]


def test_excerpts_fit_and_are_parts_of_the_table(wordpiece):
    config = dataclasses.replace(CONFIG, max_seq_length=260, max_question_tokens=130)
    questions = made(wordpiece, config)
    assert len({operation for operation, _, _ in questions}) > 5
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
        if question.aggregation in WITH_ANSWER:
            continue  # see computed_again
        result = len(cells)
        if question.aggregation != "COUNT":
            numbers = [float(cell.replace(",", "")) for cell in cells]
            result = sum(numbers) / (len(cells) if question.aggregation == "AVERAGE" else 1)
            if question.aggregation == "DIFFERENCE":
                result = abs(numbers[0] - numbers[1])
        assert question.answer_number == pytest.approx(result)
        assert float(question.answers[0]) == pytest.approx(result)


def test_some_questions_lose_the_rows_or_the_column_that_they_are_about(wordpiece):
    of_share = {
        share: made(wordpiece, dataclasses.replace(CONFIG, absent=share))
        for share in (0.0, 0.5, 1.0)
    }
    for share, found in of_share.items():
        absent = [(table, question) for _, table, question in found if not question.answers]
        assert (share > 0) == bool(absent) and (share < 1) == (len(absent) < len(found))
        for table, question in absent:
            assert question.aggregation == ABSENT and not question.answer_coordinates
            assert min(table.num_rows, table.num_columns) >= FEWEST
            assert supervise(table, question) == question
            columns = [CITIES.header.index(name) for name in table.header]
            rows = {tuple(row[column] for column in columns) for row in CITIES.rows}
            assert set(table.rows) <= rows


def test_values_stay_where_numbers_and_dates_are_written_in_another_way():
    rows = [["1,234.5", "5 January 2024", "1999", "x"], ["12", "17 March 2023", "2004", "7"]]
    rows += [["1234567", "30 June 2021", "1950", "8"]]
    table = Table.from_rows(rows, ["a", "b", "c", "d"])
    texts = set()
    for seed in range(60):
        again = rewritten(table, random.Random(seed))
        for column in range(2):
            assert values_in_column(again, column) == values_in_column(table, column)
            texts.add(again.rows[0][column])
        assert [row[2:] for row in again.rows] == [row[2:] for row in table.rows]
    assert texts >= {"1.234,5", "1 234,5", "$1,234.5", "2024-01-05", "05.01.2024"}


def test_the_same_seed_and_name_give_the_same_questions(wordpiece):
    first = made(wordpiece)
    assert made(wordpiece) == first
    other = made(wordpiece, dataclasses.replace(CONFIG, seed=1))
    assert [q.text for _, _, q in other] != [q.text for _, _, q in first]
    ids = [question.question_id for _, _, question in first]
    assert len(set(ids)) == len(ids) <= 40


def test_held_out_forms_are_about_whole_tables_where_they_are_asked_to_be(wordpiece):
    of_look_up = {"operations": ("look_up",), "held_out_forms": True, "whole_tables": True}
    config = dataclasses.replace(CONFIG, questions_per_table=8, max_seq_length=800, **of_look_up)
    beginnings = tuple(form.split(" {")[0].split(" the")[0] for form in HELD_OUT["look_up"])
    questions = made(wordpiece, config)
    assert questions
    for operation, table, question in questions:
        assert operation == "look_up" and table is CITIES
        assert question.text.startswith(beginnings)
        assert len(question.answer_coordinates) == 1


@cases(
    "table, options, reason",
    (Table(("a", "a"), (("x", "y"), ("z", "u")), "t"), {}, "fewer than two columns"),
    (CITIES, {"whole_tables": True, "max_seq_length": 210}, "too long"),
    (
        Table(("a", "b"), (("x", "y"), ("x", "y"), ("u", "v"), ("u", "v")), "t"),
        {"operations": ("average",)},
        "no question found",
    ),
)
def test_what_gives_no_question_says_why(wordpiece, table, options, reason):
    config = dataclasses.replace(CONFIG, **options)
    with pytest.raises(NothingMadeError, match=f"table '{table.table_id}'") as error:
        made(wordpiece, config, table)
    assert reason in error.value.reason
