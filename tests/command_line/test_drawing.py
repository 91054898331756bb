"""An answer and its table as text for a person: what is printed, and how much of it."""

import dataclasses
import io
import re

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from mate_tf.answers.answer import Answer, SelectedCell, answer_of_cells, apply_min_score
from mate_tf.command_line.drawing import MOST_LINES, Paper
from mate_tf.tables.operators import ABSENT
from mate_tf.tables.table import Table
from tests.small import cases

RIVERS = Table.from_rows([["river", "length"], ["Nile", "6,650 km"], ["Rhine", "1,230 km"]])
CITIES = Table.from_rows([["city", "people"], *[[f"city {row}", row] for row in range(161)]])
WIDE = Table.from_rows(
    [[f"metric {i}" for i in range(60)], *[[f"{r}.{i}" for i in range(60)] for r in range(99)]]
)


def cells(table: Table, *places: tuple[int, int]) -> tuple[SelectedCell, ...]:
    return tuple(SelectedCell(row, column, table.rows[row][column], 0.9) for row, column in places)


NILE, RHINE = (cells(RIVERS, (row, 1)) for row in range(2))


def answer(chosen=NILE, aggregation="NONE", *others: Answer, table=RIVERS, score=0.9) -> Answer:
    found = answer_of_cells(table, chosen, aggregation, score)
    assert found is not None
    return dataclasses.replace(found, alternatives=others)


def printed(table, answer, width=80, terminal=False, full=False, markdown=False, **options) -> str:
    file = io.StringIO()
    console = Console(
        file=file, width=width, height=60, force_terminal=terminal,
        color_system="standard" if terminal else None, highlight=False, markup=False, emoji=False,
    )  # fmt: skip
    Paper(console, full, markdown).answer(table, answer, **options)
    return file.getvalue()


def lines_of(*given, **options) -> list[str]:
    return printed(*given, **options).splitlines()


def test_an_answer_with_its_source_its_number_and_others_in_the_words_of_the_page():
    others = answer(RHINE, score=0.3), answer(NILE + RHINE, "SUM", score=0.1)
    assert lines_of(RIVERS, answer(NILE, "NONE", *others)) == [
        "answer: 6,650 km",
        "score 0.90 · read from row 1, column 2 (length) · as a number 6650",
        "or: 1,230 km · 0.30 · read from row 2, column 2 (length)",
        "or: 7880 · 0.10 · sum of 2 cells",
        "",
        "row  river      length",
        "──────────────────────",
        "  1  Nile   [6,650 km]",
        "  2  Rhine    1,230 km",
    ]


def test_what_was_assumed_about_a_table_of_many_columns_is_cut_unless_all_is_printed():
    days = [[f"0{column % 9 + 1}/0{day}/2024" for column in range(60)] for day in (1, 2)]
    table = Table.from_rows([[f"day {column}" for column in range(60)], *days])
    assert len(table.all_assumed) >= 60

    def head(full: bool) -> list[str]:
        file = io.StringIO()
        Paper(Console(file=file, width=80, height=60), full).head(table)
        return file.getvalue().splitlines()

    lines = head(full=False)
    assert len(lines) < MOST_LINES
    more = next(line for line in lines if line.endswith("more lines; --full shows all"))
    assert lines.index(more) + int(more.split()[1]) == len(table.all_assumed)
    assert head(full=True)[: len(table.all_assumed)] == [*table.all_assumed]


@cases(
    "given, line",
    (answer(), "answer: 6,650 km"),
    (dataclasses.replace(answer(), confidence="probably"), "probably: 6,650 km"),
    (dataclasses.replace(answer(), confidence="not sure"), "not sure, best guess: 6,650 km"),
    (apply_min_score(answer(), 0.95), "no answer; best guess: 6,650 km"),
    (Answer(answered=False), "no answer"),  # where nothing was seen
    (
        Answer(aggregation=ABSENT, answered=False, alternatives=(answer(),)),
        "the table does not seem to say; best guess: 6,650 km",
    ),
)
def test_what_is_no_answer_is_not_called_one(given, line):
    lines = lines_of(RIVERS, given)
    assert lines[0] == line
    assert ("[6,650 km]" in lines[-2]) == ("6,650" in line)
    assert "or: " not in "".join(lines)  # the guess is no alternative to itself


@cases("coverage", "", "read 60 of 5,000 rows, chosen by the question")
def test_a_class_and_which_rows_were_read(coverage):
    entailed, refuted = (
        Answer((name,), score=score, class_index=index)
        for name, score, index in (("entailed", 0.7, 1), ("refuted", 0.3, 0))
    )
    found = dataclasses.replace(entailed, alternatives=(refuted,), coverage=coverage)
    lines = lines_of(RIVERS, found)
    assert lines[:2] == ["answer: entailed", "score 0.70 · class 1"]
    assert (coverage in lines[2:3]) == bool(coverage)
    assert "or: refuted · 0.30 · class 0" in lines


def test_where_the_table_is_printed_elsewhere_the_rows_of_the_cells_are_printed_alone():
    lines = lines_of(RIVERS, answer(NILE + RHINE), with_table=False, name="rivers.csv, of 3 tables")
    assert lines == [
        "answer: 6,650 km, 1,230 km",
        "score 0.90 · read from 2 cells · table rivers.csv, of 3 tables",
        "",
        "row  river      length",
        "──────────────────────",
        "  1  Nile   [6,650 km]",
        "  2  Rhine  [1,230 km]",
    ]
    every = answer(cells(CITIES, *[(row, 0) for row in range(161)]), "COUNT", table=CITIES)
    lines = lines_of(CITIES, every, with_table=False)
    assert lines[-2:] == ["  5  [city 4]       4", "  … 156 rows, 156 of them chosen"]
    assert len(lines_of(CITIES, every, with_table=False, full=True)) == 5 + 161
    assert lines_of(CITIES, Answer(answered=False), with_table=False) == ["no answer", "score 0.00"]


def test_a_count_of_many_rows_and_a_table_of_many_columns_are_cut():
    every = answer(cells(CITIES, *[(row, 0) for row in range(161)]), "COUNT", table=CITIES)
    lines = lines_of(CITIES, every)
    assert lines[:2] == ["answer: 161", "score 0.90 · count of 161 rows"]
    assert len(lines) == MOST_LINES - 1
    assert lines[-2:] == [
        "  … 139 rows, 139 of them chosen",
        "left out: 139 of 161 rows; --full shows all",
    ]
    lines = lines_of(WIDE, answer(cells(WIDE, (50, 44)), table=WIDE))
    assert len(lines) <= MOST_LINES and max(map(len, lines)) <= 80
    assert re.sub(" +", " ", lines[3]).startswith("row metric 0 metric 1")
    assert "… 40 …  metric 44" in lines[3]
    assert [line.split()[0] for line in lines[5:8]] == ["1", "2", "3"]
    assert lines[8] == "  … 44 rows"
    assert sum("[50.44]" in line for line in lines) == 1
    lines = lines_of(WIDE, answer(cells(WIDE, (50, 44)), table=WIDE), full=True)
    assert len(lines) == 3 + 2 + 99 and "59" in lines[3] and "…" not in "".join(lines)


def test_colour_marks_cells_on_a_terminal_and_brackets_elsewhere():
    assert "\x1b" not in printed(RIVERS, answer())
    shown = printed(RIVERS, answer(), terminal=True)
    assert (
        "\x1b[1;32m6,650 km\x1b[0m" in shown
        and "\x1b[1;7;32m6,650 km\x1b[0m" in shown
        and "[6,650" not in shown.replace("\x1b[", "")
    )


def test_markdown_has_paragraphs_and_a_table_in_which_nothing_else_is_markup():
    table = Table.from_rows([["a|b", "c"], ["*x*", "y<z"]])
    text = printed(table, answer(cells(table, (0, 0)), table=table), markdown=True)
    assert text.startswith(
        "answer: **\\*x\\***\n\nscore 0.90 · read from row 1, column 1 (a\\|b)\n\n| row |"
    )
    assert re.search(
        r"\| a\\\|b +\| c +\|\n\|-+\|-+\|-+\|\n\|   1 \| \*\*\\\*x\\\*\*\* \| y\\<z \|\n", text
    )


texts = st.text(max_size=40) | st.sampled_from(["\x1b[2Jx", "日本" * 30, "x" * 3000, "a\nb\tc", ""])


@settings(max_examples=30)
@given(data=st.data())
def test_whatever_the_table_an_answer_is_short_and_moves_no_cursor(data):
    columns, rows = data.draw(st.integers(1, 30)), data.draw(st.integers(1, 60))
    cell = data.draw(texts)
    names = data.draw(st.lists(texts, min_size=columns, max_size=columns))
    table = Table(tuple(names), ((cell,) * columns,) * rows)
    place = st.tuples(st.integers(0, rows - 1), st.integers(0, columns - 1))
    places = sorted(data.draw(st.sets(place, min_size=1, max_size=60)))
    others = (answer(cells(table, places[0]), table=table),) * data.draw(st.integers(0, 40))
    found = answer(cells(table, *places), "NONE", *others, table=table)
    width = data.draw(st.sampled_from([40, 60, 80, 160]))
    is_terminal, with_table = data.draw(st.booleans()), data.draw(st.booleans())
    text = printed(table, found, width, is_terminal, with_table=with_table)
    text = re.sub(r"\x1b\[[\d;]*m", "", text)  # colours
    assert len(text.splitlines()) <= MOST_LINES
    assert all(letter.isprintable() for letter in text.replace("\n", ""))
    if is_terminal:
        assert max(map(cell_len, text.splitlines())) <= width
