"""Questions that are made of passages alone."""

from hypothesis import given

from mate_tf.pointr.answering import cell_text
from mate_tf.pointr.clozes import PER_TABLE, cloze_cells
from tests.datasets.linked_tables import CITIES, linked_tables


def test_questions_ask_for_the_cell_or_for_what_its_text_says_once():
    made = list(cloze_cells([CITIES]))
    assert 0 < len(made) <= PER_TABLE
    texts = {cell_text(CITIES, row, column) for row in range(2) for column in range(2)}
    cells = {"Oslo", "Bergen", "Norway"}
    for table, question in made:
        ((text,),) = table.rows
        (answer,) = question.answers
        assert text in texts and question.text.endswith(" ?")
        assert answer == text.split(" : ")[0] or text.count(answer) == 1
        assert any(f"the {name}" in question.text for name in CITIES.table.header)
    answers = {question.answers[0] for _, question in made}
    assert answers & cells and answers - cells
    assert len({question.question_id for _, question in made}) == len(made)


def test_the_seed_and_the_table_decide():
    texts = [[q.text for _, q in cloze_cells([CITIES], seed)] for seed in (0, 0, 1)]
    assert texts[0] == texts[1] != texts[2]


@given(linked_tables())
def test_any_table_gives_questions_whose_answers_its_cells_hold(linked):
    for table, question in cloze_cells([linked]):
        assert question.text.strip() and question.answers[0] in table.rows[0][0]
