"""Questions are answered a second time by what their names say, and excerpts are held to limits."""

import dataclasses
import itertools
import random
import re

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from experiments.synthesis.made_tables import made_tables, rewritten
from experiments.synthesis.question_drawing import OPERATIONS, draw
from experiments.synthesis.questions import (
    FORMS,
    HELD_OUT,
    QuestionsConfig,
    phrase,
    synthetic_questions,
)
from experiments.synthesis.row_drawing import ALONG_ROWS
from experiments.synthesis.typed_table import FEWEST, NothingMadeError, TypedTable
from mate_tf.answers.answer import SelectedCell, answer_of_cells
from mate_tf.datasets.supervision import supervise
from mate_tf.features.numeric import values_in_column
from mate_tf.tables.operators import ABSENT
from mate_tf.tables.table import Table
from tests.experiments.synthesis.small_tables import (
    CITIES,
    COUNTRY,
    PEOPLE,
    TYPED_CITIES,
    crosstabs,
    tables,
)
from tests.small import cases, stored_cases

OPERATORS: dict[str, tuple[str, ...]] = {
    name.lower(): (name,) for name in ("COUNT", "SUM", "AVERAGE", "DIFFERENCE", "DISTINCT")
}
OPERATORS |= {"is": ("IS_GREATER", "IS_LESS", "IS_EQUAL"), "comparison": ("GREATER", "LESS")}
OPERATORS |= {"largest": ("NONE", "MAX"), "smallest": ("NONE", "MIN")}
OPERATORS |= {"spread": ("DIFFERENCE",), "share": ("SHARE",), "header": ("HEADER",)}
OPERATORS |= dict.fromkeys(("fact", "exists", "any", "all"), ("YES", "NO"))
OPERATORS["row"] = tuple(f"ROW_{name}" for name in ("SUM", "AVERAGE", "MAX", "MIN", "DIFFERENCE"))
WITH_ANSWER = (
    *("MAX", "MIN", "GREATER", "LESS", "IS_GREATER", "IS_LESS", "IS_EQUAL", "DISTINCT"),
    *("YES", "NO", "SHARE", "HEADER", "ROW_MAX", "ROW_MIN"),
)


PLACES = {"second": "2", "2nd": "2", "third": "3", "3rd": "3", "fourth": "4", "4th": "4"}


def beyond(drawn, table: Table) -> list[int]:
    """The rows that have more, or less, than the number that is said."""
    bound, sign = float(drawn.words["t"].replace(",", "")), 1 if "more" in drawn.form else -1
    numbers = [float(row[drawn.columns["N"]] or "nan") for row in table.rows]
    return [row for row, number in enumerate(numbers) if sign * number > sign * bound]


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
    if form == "has" or form.startswith(("fact", "row", "header")):
        return {drawn.cells["a"][0]}
    if form.endswith("not_like"):
        return set(every) - where
    if form.startswith(("any", "all", "both", "count_both")):
        meeting = set(every) if form == "all_like" else set(beyond(drawn, table))
        if form.startswith(("both", "count_both")):
            return where & meeting
        meeting = where if form == "all_like" else meeting
        return meeting if "any" in form else (set(every) - meeting or set(every))
    if form in ("amount", "how_many", "share"):
        (row, column) = drawn.cells["v"]
        return {r for r in every if table.rows[r][column] == table.rows[row][column]}
    if form in ("difference", "is_equal") or form.startswith(("comparison", "is_")):
        return {row for row, _ in (drawn.cells["a"], drawn.cells["b"])}
    of_value = "look_up", "select", "count", "count_of_value", "exists", "share_of_rows"
    if form.endswith("_where") or form in of_value or form.startswith("count_fact"):
        return where
    if form in ("distinct", "count_all", "sum", "average"):
        return set(every)
    if form.endswith("having"):
        said = "no" if "not_" in form else "yes"
        return {row for row in every if text(row, "K") == said}
    if form in ("look_up_by_two", "exists_both"):
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
    if form == "spread":
        expected = [min(numbers.values()), max(numbers.values())]
        assert sorted(map(value, drawn.rows)) == expected
        return set(drawn.rows)
    ordered = sorted(numbers, key=lambda row: numbers[row], reverse=form.endswith("_most"))
    if form.startswith("ranked"):
        return {ordered["1234".index(PLACES[drawn.words["p"]])]}
    if form.startswith("top"):
        return set(ordered[: {"2": 2, "two": 2}.get(drawn.words["t"], 3)])
    said = drawn.words["t"].replace(",", "") if form.endswith("round") else quoted("v")
    sign = 1 if "_more_" in form else -1
    return {row for row, number in numbers.items() if sign * number > sign * float(said)}


@pytest.mark.medium
@settings(max_examples=400, deadline=None)
@given(
    st.one_of(
        st.tuples(tables(), st.sampled_from(OPERATIONS)),
        st.tuples(crosstabs(), st.sampled_from(("fact", "fact_beyond", *ALONG_ROWS))),
    ),
    st.integers(0, 9),
)
def test_the_cells_are_those_that_answer(table_and_operation, seed):
    table, operation = table_and_operation
    drawn = draw(operation, TypedTable(table), random.Random(seed))
    if drawn is None:
        return
    assert set(drawn.rows) == answer_rows(drawn, table)
    assert list(drawn.rows) == sorted(set(drawn.rows))
    is_verdict = drawn.aggregation in ("YES", "NO")
    if "T" in drawn.columns and "N" not in drawn.columns and not is_verdict:
        assert drawn.column == drawn.columns["T"]
    kind = drawn.form.removeprefix("count_") if "fact" in drawn.form else drawn.form
    assert drawn.aggregation in OPERATORS.get(kind.split("_")[0], ("NONE",))
    assert set(drawn.coordinates) == answer_cells(drawn, table)
    if drawn.aggregation == "NONE":
        assert all(table.rows[row][column] for row, column in drawn.coordinates)
    assert bool(drawn.answer) == (drawn.aggregation in WITH_ANSWER)
    if drawn.answer:
        assert drawn.answer == computed_again(drawn, table)


def answer_cells(drawn, table: Table) -> set[tuple[int, int]]:
    """The cells that answer, of one row where they are along it, by texts and numbers alone."""
    if not drawn.form.startswith(("row", "header")):
        return {(row, drawn.column) for row in answer_rows(drawn, table)}
    (row, subject), cells = drawn.cells["a"], table.rows[drawn.cells["a"][0]]
    assert [other[subject] for other in table.rows].count(cells[subject]) == 1
    series = [c for c, name in enumerate(table.header) if name.isdigit()]
    if drawn.columns:
        columns = [drawn.columns[name] for name in "AB"]
        if drawn.form == "row_days":  # from the first to the second
            assert cells[columns[0]] < cells[columns[1]]
        elif drawn.form == "row_difference":
            assert float(cells[columns[0]]) >= float(cells[columns[1]])
    elif drawn.form == "header_like":
        said = cells[drawn.cells["v"][1]]
        columns = [c for c in series if cells[c] == said]
    elif drawn.form in ("header_most", "header_least"):
        choose = max if drawn.form == "header_most" else min
        best = choose(float(cells[c]) for c in series)
        columns = [c for c in series if float(cells[c]) == best]
        assert len(columns) == 1
    elif drawn.form.startswith("header"):
        bound, sign = float(drawn.words["t"]), 1 if drawn.form == "header_above" else -1
        columns = [c for c in series if sign * float(cells[c]) > sign * bound]
        assert 0 < len(columns) < len(series)
    else:
        columns = series
    return {(row, column) for column in columns}


def is_true(drawn, table: Table) -> bool:
    """Whether what is asked or stated holds."""
    form, cells, rows = drawn.form, drawn.cells, answer_rows(drawn, table)
    side = 1 if "_more" in form else -1
    if form == "fact":
        return table.rows[cells["a"][0]][drawn.column] == table.rows[cells["v"][0]][drawn.column]
    if form.startswith("fact"):
        text = table.rows[cells["a"][0]][drawn.column]
        number = float(text[:4] if form.endswith("date") else text)
        return side * number > side * float(drawn.words["t"])
    if form.startswith("count_fact"):
        return side * len(rows) > side * int(drawn.words["n"])
    if form.startswith("all"):
        met = rows if form == "all_like" else beyond(drawn, table)
        return len(rows) == len(met) == table.num_rows
    return bool(rows)


def computed_again(drawn, table: Table) -> str:
    """The answer that is a name, a yes or no, an extreme, a share or a number of texts."""
    if drawn.aggregation in ("YES", "NO"):
        assert (drawn.aggregation == "YES") == is_true(drawn, table)
        return drawn.aggregation.lower()
    if drawn.aggregation == "HEADER":
        return ", ".join(table.header[c] for _, c in sorted(answer_cells(drawn, table)))
    if drawn.aggregation.startswith("ROW_"):
        cells = [table.rows[row][column] for row, column in drawn.coordinates]
        return (max if drawn.aggregation == "ROW_MAX" else min)(cells, key=float)
    if drawn.aggregation == "SHARE":
        weights = [1.0] * table.num_rows
        if drawn.form == "share":
            weights = [float(row[drawn.column]) for row in table.rows]
        return f"{100 * sum(weights[row] for row in drawn.rows) / sum(weights):.10g}"
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


SERIES = ("3197", "2482", "3665")  # of numbers in columns of one kind


@pytest.mark.parametrize("operation", OPERATIONS)
def test_each_operation_is_found_and_put_in_words(operation):
    columns = ("xyyx", ("yes", "no", "no", "yes"), "5794", [f"2024-0{n}-05" for n in "1341"])
    more = zip(*columns, *SERIES, strict=True)
    rows = [row + others for row, others in zip(CITIES.rows, more, strict=True)]
    names = ("Coast", "Port", "Total cost", "Visited", "Jan", "Feb", "Mar")
    wide = Table.from_rows(rows, (*CITIES.header, *names))
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
    known |= {place: place.lower() for place in ("A", "B", "U", "Us")}
    known |= {"n": "3", "p": "2nd"} | {"t": "5", "s": "best", "verb": "costs"}
    held_out = {form for forms in HELD_OUT.values() for form in forms}
    for name, forms in FORMS.items():
        assert len(set(forms)) == len(forms) >= 3, name
        assert not held_out & {said for form in forms for said in wordings(form)}
    assert FORMS.keys() > HELD_OUT.keys()
    for form in (form for forms in (*FORMS.values(), *HELD_OUT.values()) for form in forms):
        assert not any(set("<|>") & set(said) for said in wordings(form))
        assert form.format(who="who", **known).strip()
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
    questions = made(wordpiece)
    assert len({question.question_id for _, _, question in questions}) == len(questions) <= 40
    other = made(wordpiece, dataclasses.replace(CONFIG, seed=1))
    assert [q.text for _, _, q in other] != [q.text for _, _, q in questions]
    for _, table, question in questions:
        cells = [table.rows[row][column] for row, column in question.answer_coordinates]
        if question.aggregation == "NONE":
            assert list(question.answers) == cells
            continue
        if question.aggregation in WITH_ANSWER:
            continue  # see computed_again
        result, operator = len(cells), question.aggregation.removeprefix("ROW_")
        if operator != "COUNT":
            numbers = [float(cell.replace(",", "")) for cell in cells]
            result = sum(numbers) / (len(cells) if operator == "AVERAGE" else 1)
            if operator == "DIFFERENCE":
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
        answered = {question.aggregation for _, _, question in found if question.answers}
        assert (share > 0) == bool(absent) and (share < 1) == bool(answered - {"NO"})
        for table, question in absent:
            assert question.aggregation == ABSENT and not question.answer_coordinates
            assert min(table.num_rows, table.num_columns) >= FEWEST
            assert supervise(table, question) == question
            columns = [CITIES.header.index(name) for name in table.header]
            rows = {tuple(row[column] for column in columns) for row in CITIES.rows}
            assert set(table.rows) <= rows


@cases(
    "operations, lost",
    (("header", "header_like", "header_beyond", "row_sum", "row_max"), "rows"),
    (("exists", "exists_both", "all_like", "not_like"), "columns"),
)
def test_what_a_smaller_table_still_answers_is_not_called_absent(wordpiece, operations, lost):
    """Fewer months still have a best one; nothing with a value is a no, or all rows without it."""
    series = zip(*SERIES, strict=True)
    rows = [(*row[:2], *more) for row, more in zip(CITIES.rows, series, strict=True)]
    table = Table.from_rows(rows, ("City", "Country", "Jan", "Feb", "Mar"))
    config = dataclasses.replace(CONFIG, operations=operations, whole_tables=True, absent=1.0)
    found = [one for _, *one in made(wordpiece, config, table) if one[1].aggregation == ABSENT]
    assert found
    for smaller, _ in found:
        assert (smaller.num_rows < table.num_rows) == (lost == "rows")
        assert (smaller.num_columns < table.num_columns) == (lost == "columns")


def test_a_column_is_not_called_as_another_one_is(wordpiece):
    table = Table.from_rows([("A", "5", "7"), ("B", "6", "9")], ("Item", "Price", "Cost"))
    config = dataclasses.replace(CONFIG, operations=("look_up",), whole_tables=True)
    for index in range(20):
        renamed = dataclasses.replace(table, table_id=str(index))
        for _, _, question in made(wordpiece, config, renamed):
            names = {"price": 1, "cost": 2}
            column = [names[word] for word in question.text.split() if word in names]
            (cell,) = question.answer_coordinates
            assert not column or cell[1] in (0, *column), question.text


def test_questions_along_rows_of_made_tables_have_the_library_s_answers(wordpiece):
    config = dataclasses.replace(CONFIG, max_seq_length=600)
    operations: set[str] = set()
    for made_table in made_tables(40, seed=3):
        table = made_table.table
        for operation, excerpt, question in made(wordpiece, config, table):
            aggregation = question.aggregation
            if not aggregation.startswith(("ROW_", "HEADER", "SHARE")):
                continue
            operations.add(operation)
            cells = tuple(
                SelectedCell(row, column, excerpt.rows[row][column], 1.0)
                for row, column in sorted(question.answer_coordinates)
            )
            assert aggregation == "SHARE" or len({cell.row for cell in cells}) == 1
            answer = answer_of_cells(excerpt, cells, aggregation, 1.0)
            assert answer is not None, question
            number = question.answer_number
            if aggregation == "SHARE":
                number = float(question.answers[0])
            if number is None:
                assert answer.items == question.answers, question
            else:
                assert answer.value == pytest.approx(number), question
    assert operations >= {*ALONG_ROWS, "share"} - {"row_days"}


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
