"""Questions that follow another one: what they are about, by the cells of the answer before."""

import random

from experiments.synthesis.follow_up_drawing import FOLLOW_UPS
from experiments.synthesis.made_tables import made_tables
from experiments.synthesis.question_drawing import OPERATIONS, draw
from experiments.synthesis.questions import FORMS, QuestionsConfig, synthetic_questions
from experiments.synthesis.typed_table import TypedTable
from mate_tf.tables.table import Table
from tests.small import cases

CITIES = TypedTable(
    Table(
        ("City", "Country", "People", "Opened"),
        (
            ("Oslo", "Norway", "7", "1901"),
            ("Bergen", "Norway", "3", "1950"),
            ("Rome", "Italy", "28", "1893"),
            ("Turin", "Italy", "9", "1911"),
        ),
        "cities",
    )
)


def drawn(operation, times=60):
    found = [draw(operation, CITIES, random.Random(seed)) for seed in range(times)]
    return [one for one in found if one is not None]


def test_they_are_made_where_they_are_named_and_each_has_words():
    assert not {*FOLLOW_UPS} & {*OPERATIONS}
    for operation in FOLLOW_UPS:
        assert drawn(operation), operation
        assert {one.form for one in drawn(operation)} <= {*FORMS}


@cases("operation", *FOLLOW_UPS)
def test_each_answers_by_the_cells_of_the_answer_before(operation):
    for one in drawn(operation):
        rows, before = {*one.rows}, {row for row, _ in one.before}
        (marked,) = {column for _, column in one.before}
        if operation == "follow_value":
            assert marked == one.column and not rows & before
        elif operation == "follow_column":
            assert marked != one.column and rows == before
        elif operation == "follow_neighbour":
            step = 1 if one.form == "follow_next" else -1
            assert marked == one.column and rows == {row + step for row in before}
        elif operation == "follow_extreme":
            assert marked == one.column and len(rows | before) == 2
        elif operation == "follow_count":
            assert one.aggregation == "COUNT" and rows == before
        elif one.form.endswith("_all"):
            assert marked == one.column and rows == {*range(CITIES.num_rows)}
        else:
            assert rows <= before and len(before) > 1


def test_half_of_those_about_its_rows_have_these_rows_alone_as_their_table(wordpiece):
    config = QuestionsConfig(
        questions_per_table=12, whole_tables=True, max_seq_length=2048, operations=(*FOLLOW_UPS,)
    )
    short = whole = 0
    for source in made_tables(12, seed=0):
        for made in synthetic_questions(source.table, wordpiece, config):
            ((table, question),) = made.examples
            before = {row for row, _ in question.previous_coordinates}
            if {row for row, _ in question.answer_coordinates} <= before:
                is_short = table.num_rows < source.table.num_rows
                assert not is_short or before == {*range(table.num_rows)}
                short, whole = short + is_short, whole + (not is_short)
            else:
                assert table.rows == source.table.rows
            if question.aggregation == "NONE":
                texts = [table.rows[row][column] for row, column in question.answer_coordinates]
                assert [*question.answers] == [" ".join(text.split()) for text in texts]
    assert min(short, whole) > 20
