"""What the page shows, as HTML."""

import dataclasses
import html.parser
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mate_tf.answers.answer import Answer, SelectedCell, answer_of_cells, apply_min_score, no_answer
from mate_tf.answers.drawing import error_html, note_html, result_html
from mate_tf.tables.drawing import MOST_ROWS, rows_shown, table_html
from mate_tf.tables.table import Table
from tests.small import cases

RIVERS = Table.from_rows([["river", "length"], ["Nile", "6,650 km"], ["Rhine", "1,230 km"]])
NILE, RHINE = (SelectedCell(row, 1, RIVERS.rows[row][1], 0.9 - 0.6 * row) for row in range(2))
TAGS = {
    *("div", "p", "span", "b", "small", "details", "summary", "ol", "li", "input", "label"),
    *("table", "thead", "tbody", "tr", "th", "td"),
}


class Reader(html.parser.HTMLParser):
    """The elements of a piece of HTML, and its cells: tag, attributes and text of each."""

    def __init__(self, text: str):
        super().__init__()
        self.elements: list[tuple[str, dict]] = []
        self.cells: list[tuple[str, dict, str]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in ("input", "br"):
            self.open.append(tag)
        if tag in ("td", "th"):
            self.cells.append((tag, dict(attrs), ""))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data
        if {"td", "th"} & {*self.open[-2:]} and self.open[-1] != "small":
            tag, attributes, text = self.cells[-1]
            self.cells[-1] = tag, attributes, text + data


def answer(
    *cells: SelectedCell, aggregation: str = "NONE", others: tuple = (), table: Table = RIVERS
) -> Answer:
    found = answer_of_cells(table, cells, aggregation, 0.9)
    assert found is not None
    return dataclasses.replace(found, alternatives=others)


def shown(answer: Answer, table: Table = RIVERS) -> str:
    return Reader(result_html(table, answer, {}, {})).text


def strengths(text: str) -> dict[str, float]:
    """How strong the colour of each coloured cell is, by the cell's text."""
    return {
        cell.strip(): float(re.findall(r"--strength: ([0-9.]+)", attributes["style"])[0])
        for _, attributes, cell in Reader(text).cells
        if "style" in attributes
    }


def views(text: str) -> list[str]:
    """The HTML of each view, as elements that are closed."""
    parts = text.removesuffix("</div>").split('<div class="view">')[1:]
    return [f"<div>{part.partition('<input')[0]}" for part in parts]


def test_an_answer_with_its_score_its_place_and_what_was_not_read():
    text = shown(answer(NILE))
    for part in ("6,650 km", "score 0.90", "read from row 1, column 2 (length)", "number 6650"):
        assert part in text
    assert not re.search("other answer|No answer|Not read", text)
    assert text.startswith("Answerscore 0.90")
    for confidence, verdict in (("probably", "Probably"), ("not sure", "Not sure, best guess")):
        doubted = dataclasses.replace(answer(NILE), confidence=confidence)
        assert answer(NILE).sure and not doubted.sure
        text = result_html(RIVERS, doubted, {}, {})
        assert f'<div class="answer {confidence.replace(" ", "-")}">' in text and verdict in text
    text = shown(dataclasses.replace(answer(NILE), coverage="read 1 of 2 rows"))
    assert "Read 1 of 2 rows." in text
    text = shown(Answer(("entailed",), score=0.7, class_index=1))
    assert "entailed" in text and "class 1" in text and "read from" not in text


def test_what_was_computed_from_how_many_cells():
    text = shown(answer(NILE, RHINE, aggregation="SUM"))
    assert "7880" in text and "sum of 2 cells" in text and "6,650 km + 1,230 km = 7880" in text
    assert "as a number" not in text
    assert "count of row 1, column 2" in shown(answer(NILE, aggregation="COUNT"))
    text = shown(answer(NILE, RHINE, aggregation="COUNT"))
    assert "count of 2 rows" in text and "rows 1, 2" in text
    text = shown(answer(NILE, RHINE, aggregation="AVERAGE"))
    assert "(6,650 km + 1,230 km) ÷ 2 = 3940" in text
    cells = [SelectedCell(row, 1, str(row), 0.8) for row in range(30)]
    text = shown(answer(*cells, aggregation="SUM", table=LONG), LONG)
    assert "0 + 1 + 2 + 3 + 4 + 5 + 6 + 7 + 8 + 9 + 10 + … (19 more) = 435" in text


def test_chosen_cells_have_a_colour_by_their_score_and_the_score_as_text():
    text = result_html(RIVERS, answer(NILE, RHINE), {}, {})
    assert strengths(text) == {"6,650 km": 0.9, "1,230 km": pytest.approx(0.3)}
    titles = [attributes.get("title") for _, attributes, _ in Reader(text).cells]
    sentence = "how likely this cell is one of the answer’s, from 0 to 1"
    assert [title for title in titles if title] == [sentence] * 2
    assert "<small>cell 0.90</small>" in text and "<small>cell 0.30</small>" in text
    kinds = [attributes.get("class") for _, attributes, _ in Reader(text).cells]
    assert kinds.count("chosen number") == 2
    assert kinds[1:3] == [None, "number"]  # a name and a length, whose header stands above it


def test_alternatives_with_where_they_come_from():
    others = answer(RHINE), answer(NILE, RHINE, aggregation="AVERAGE")
    text = shown(answer(NILE, others=others))
    assert "2 other answers" in text
    assert "score 0.90, read from row 2, column 2 (length)" in text
    assert "3940 score 0.90, average of 2 cells" in text


def test_no_answer_with_what_it_would_have_been():
    text = shown(apply_min_score(answer(NILE, others=(answer(RHINE),)), 0.95))
    assert "No answer; best guess" in text and "6,650 km" in text
    assert text.count("read from row 2") == 1  # the other one, once
    assert "best guess" not in shown(no_answer())
    assert "No cell is chosen" in shown(no_answer())


def test_attention_is_shown_by_each_group_of_heads():
    row = np.array([[0.0, 0.1], [0.2, 0.4], [0.0, 0.004]], np.float32)
    column = np.array([[0.05, 0.0], [0.0, 0.0], [0.0, 0.0]], np.float32)
    groups, question = {"row heads": row, "a<b": column}, {"row heads": 0.3, "a<b": 0.95}
    text = result_html(RIVERS, answer(NILE), groups, question)
    reader = Reader(text)
    radios = [attributes for tag, attributes in reader.elements if tag == "input"]
    assert [attributes["id"] for attributes in radios] == ["view-0", "view-1", "view-2"]
    assert ["checked" in attributes for attributes in radios] == [True, False, False]
    labels = [a["for"] for tag, a in reader.elements if tag == "label"]
    assert labels == [attributes["id"] for attributes in radios]
    for part in ("Row heads", "A<b", "row heads; 30 % went to the question", "95 % went to"):
        assert part in reader.text
    plain, by_row, by_column = views(text)
    assert set(strengths(plain)) == {"6,650 km"}
    assert strengths(by_row) == {
        "river": 0.0,
        "length": 0.25,
        "Nile": 0.5,
        "6,650 km": 1.0,
        "Rhine": 0.0,
        "1,230 km": pytest.approx(0.01),
    }
    assert re.findall(r"<small>(.*?)</small>", by_row) == ["10 %", "20 %", "40 %"]
    assert 'title="0.40% of the attention"' in by_row
    assert by_row.count('class="chosen number"') == 1  # also there one sees which cell it is about
    assert strengths(by_column)["river"] == 1.0


def test_attention_without_cells_is_the_first_tokens_and_without_colour_where_it_goes_to_none():
    text = result_html(RIVERS, no_answer(), {"heads": np.full([3, 2], 0.1)}, {"heads": 0.4})
    assert "where the first token looked, heads; 40 % went" in text
    # Rows that were not asked about are pale.
    text = result_html(RIVERS, answer(RHINE), {"h": np.zeros([3, 2])}, {"h": 1.0}, asked=(1,))
    assert text.count('<tr class="pale"><th scope="row">1</th>') == text.count("<tr class=") == 2
    assert set(strengths(views(text)[1]).values()) == {0.0}


LONG = Table.from_rows([["city", "people"], *[[f"city {row}", row] for row in range(500)]])


def test_a_long_table_is_shown_around_the_chosen_cells_or_from_its_first_row_on():
    def rows(text):  # counted from 1
        return [int(cell) for _, a, cell in Reader(text).cells if a.get("scope") == "row"]

    text = result_html(LONG, answer(SelectedCell(250, 0, "city 250", 0.8), table=LONG), {}, {})
    assert rows(text) == [1, 2, 3, *range(248, 255)]
    assert re.findall(r"([0-9,]+) rows left out", text) == ["244", "246"]
    assert "500 rows, 2 columns" in text
    for text in (table_html(LONG), result_html(LONG, no_answer(), {}, {})):
        assert rows(text) == list(range(1, MOST_ROWS + 1))
        assert "460 rows left out<" in text
    cells = tuple(SelectedCell(row, 0, f"city {row}", 0.8) for row in range(0, 500, 5))
    text = result_html(LONG, answer(*cells, table=LONG), {}, {})
    hidden = sum(int(number) for number in re.findall(r"with ([0-9]+) chosen cells?<", text))
    assert hidden == 100 - MOST_ROWS


def test_a_long_table_is_shown_where_the_attention_goes():
    shares = np.zeros([501, 2])
    shares[401, 1] = 0.7  # row 400, below the header
    found = result_html(
        LONG, answer(SelectedCell(3, 0, "city 3", 0.8), table=LONG), {"h": shares}, {"h": 0.3}
    )
    assert strengths(views(found)[1])["400"] == 1.0
    assert strengths(views(found)[1])["city 3"] == 0.0


@given(
    num_rows=st.integers(1, 60),
    ranked=st.lists(st.integers(0, 59), max_size=30),
    most=st.integers(1, 40),
)
def test_no_more_rows_than_allowed_are_shown_the_most_important_among_them(num_rows, ranked, most):
    ranked = [row for row in ranked if row < num_rows]
    rows = rows_shown(num_rows, ranked, most)
    assert rows == sorted(set(rows))
    assert len(rows) <= most or len(rows) == num_rows
    assert len(rows) == num_rows or len(rows) >= min(most, 3)
    assert (rows == list(range(num_rows))) == (num_rows <= most)
    assert set(list(dict.fromkeys(ranked))[:most]) <= set(rows) <= set(range(num_rows))


def test_no_table_is_long_enough_to_show_a_text_whole():
    table = Table.from_rows([["h" * 5000], ["x" * 5000]], table_id="t" * 5000)
    text = result_html(table, answer(SelectedCell(0, 0, "x" * 5000, 0.5)), {}, {})
    assert "x" * 299 + "…" in text
    assert f'<td class="chosen" style="--strength: 0.500" title="{"x" * 999}…' in text
    assert len(text) < 7000


@cases("html_of, role", (error_html, "alert"), (note_html, None))
@given(message=st.text())
def test_an_error_and_a_note_are_one_sentence_that_is_escaped(html_of, role, message):
    reader = Reader(html_of(message))
    assert [(tag, attributes.get("role")) for tag, attributes in reader.elements] == [("p", role)]
    assert "\n" not in reader.text and reader.text.endswith(".")
    assert Reader(html_of("no table: <none>\nmore")).text == "No table: <none>."


texts = st.text(max_size=12) | st.sampled_from(
    ["<script>alert(1)</script>", "</td><img src=x onerror=alert(1)>", '" onload="x', "&lt;", "'"]
)


@st.composite
def tables(draw) -> Table:
    columns = draw(st.integers(1, 4))
    lines = st.lists(texts, min_size=columns, max_size=columns)
    rows = draw(st.lists(lines, min_size=2, max_size=5))
    return Table.from_rows(rows, table_id=draw(texts))


@pytest.mark.medium
@given(table=tables(), text=texts, group=texts, data=st.data())
def test_whatever_the_texts_are_they_are_shown_as_texts(table, text, group, data):
    row = data.draw(st.integers(0, table.num_rows - 1))
    column = data.draw(st.integers(0, table.num_columns - 1))
    cell = SelectedCell(row, column, table.rows[row][column], 0.5)
    one = Answer((text,), (cell,), score=0.5)
    found = dataclasses.replace(one, alternatives=(one,))
    shares = np.full([table.num_rows + 1, table.num_columns], 0.01)
    for html_text, copies in (
        (table_html(table), 1),
        (result_html(table, found, {group: shares}, {group: 0.5}), 2),
    ):
        reader = Reader(html_text)
        assert {tag for tag, _ in reader.elements} <= TAGS
        for _, attributes in reader.elements:
            assert not any(name.startswith("on") or name == "src" for name in attributes)
        body = [text for tag, _, text in reader.cells if tag == "td"]
        expected = [cell for cells in table.rows for cell in cells] * copies
        # A mark's text follows in an element of its own; HTML has no carriage return or NUL.
        for given_text, seen in zip(expected, body, strict=True):
            assert seen.split() == given_text.split() or "\0" in given_text
