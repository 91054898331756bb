import pytest

from mate_tf.datasets.hybridqa import expand_cells, read_hybridqa, read_hybridqa_reference
from mate_tf.datasets.supervision import SupervisionError, supervise_linked
from mate_tf.tables.linked_table import Passage
from mate_tf.tables.table import Question, Table
from tests.data_folders import HYBRIDQA_SAMPLE
from tests.datasets.releases import write_files
from tests.small import cases

TABLE = {
    "url": "https://en.wikipedia.org/wiki/Cities",
    "title": "Cities",
    "uid": "Cities_0",
    "section_title": "North",
    "header": [["City", ["/wiki/City"]], ["Mayor", []]],
    "data": [
        [["Oslo", ["/wiki/Oslo"]], ["Anne Lindboe", []]],
        [["Malmö", ["/wiki/Malm%C3%B6", "/wiki/Malmö", "/wiki/Sweden"]], ["", []]],
    ],
}
PASSAGES = {
    "/wiki/City": "A city is large .",
    "/wiki/Oslo": "Oslo has parks .",
    "/wiki/Malmö": "Malmö has a bridge .",
    "/wiki/Sweden": "Sweden has lakes .",
}
QUESTION = {
    "question_id": "q1",
    "question": "Which city has parks ?",
    "table_id": "Cities_0",
    "question_postag": "WDT NN VBZ NNS .",
    "answer-text": "Oslo",
}
TRACED = QUESTION | {
    "answer-node": [
        ["Oslo", [0, 0], None, "table"],
        ["Oslo", [0, 0], "/wiki/Oslo", "passage"],
        ["Sweden", [1, 0], "/wiki/Sweden", "passage"],
    ]
}
REFERENCE = {"reference": {"q1": "Oslo"}, "table": ["q1"], "passage": []}
HIDDEN = {key: value for key, value in QUESTION.items() if key != "answer-text"}


TABLES = {"tables_tok/Cities_0.json": TABLE, "request_tok/Cities_0.json": PASSAGES}
QUESTIONS = {
    "dev.json": [QUESTION, QUESTION | {"question_id": "q2"}],
    "dev.traced.json": [TRACED],
    "train.traced.json": [TRACED],
    "test.json": [HIDDEN],
    "dev_reference.json": REFERENCE,
}


@pytest.fixture
def release(tmp_path):
    return write_files(tmp_path, TABLES | QUESTIONS)


@cases("folders", ("", ""), ("released_data", "WikiTables-WithLinks"), ("released_data", ""))
def test_tables_come_with_the_passages_of_their_cells(tmp_path, folders):
    for folder, files in zip(folders, (QUESTIONS, TABLES), strict=True):
        write_files(tmp_path / folder, files)
    release = tmp_path
    (linked, question), (same, second) = read_hybridqa(release, "dev")
    assert linked is same
    tags = ("WDT", "NN", "VBZ", "NNS", ".")
    asked = Question("Which city has parks ?", "q1", ("Oslo",), part_of_speech_tags=tags)
    assert (question, second.question_id) == (asked, "q2")
    rows = (("Oslo", "Anne Lindboe"), ("Malmö", ""))
    assert linked.table == Table(("City", "Mayor"), rows, "Cities_0", "Cities", "North")
    city, oslo, malmo, sweden = (Passage(*item) for item in PASSAGES.items())
    assert linked.passages == (((oslo,), ()), ((malmo, sweden), ()))
    assert linked.other_passages == (city,)
    ((linked, question), _) = read_hybridqa(release, "dev", original=True)
    assert (question.question_id, linked.table.context_heading) == ("q1-0_0", "")


def test_links_without_a_passage_are_remembered(release):
    row = [["Oslo", ["/wiki/Oslo"]], ["x", ["/wiki/X", "/wiki/Oslo"]]]
    changed = TABLE | {"data": [row], "title": None, "section_title": None}
    asked = [HIDDEN | {"question_postag": None}]
    write_files(release, {"tables_tok/Cities_0.json": changed, "dev.json": asked})
    ((linked, question),) = read_hybridqa(release, "dev")
    assert [[p.link for p in cell] for cell in linked.passages[0]] == [["/wiki/Oslo"]] * 2
    assert linked.dead_links == ("/wiki/X",)
    # What a table or question may lack may be null.
    assert (linked.table.document_title, linked.table.context_heading) == ("", "")
    assert question.part_of_speech_tags == ()


def test_answers_are_traced_to_cells_hidden_in_the_test_split_and_in_the_reference(release):
    ((_, question),) = read_hybridqa(release, "dev", traced=True)
    assert question.answer_coordinates == ((0, 0), (1, 0))
    ((_, question),) = read_hybridqa(release, "train")  # without train.json the traced file serves
    assert (question.answers, question.answer_coordinates) == (("Oslo",), ())
    ((_, question),) = read_hybridqa(release, "test")
    assert question.answers == ()
    with pytest.raises(FileNotFoundError, match=r"test\.traced\.json"):
        list(read_hybridqa(release, "test", traced=True))
    reference = read_hybridqa_reference(release, "dev")
    assert reference == ({"q1": "Oslo"}, frozenset({"q1"}), frozenset())
    with pytest.raises(FileNotFoundError, match=r"test_reference\.json"):
        read_hybridqa_reference(release, "test")


def test_every_question_of_the_sample_is_read_expanded_and_supervised(tmp_path):
    if not HYBRIDQA_SAMPLE.is_dir():
        pytest.skip(f"no sample of HybridQA at {HYBRIDQA_SAMPLE}")
    pairs = list(read_hybridqa(HYBRIDQA_SAMPLE, "dev"))
    assert len({question.question_id for _, question in pairs}) == 24 == len(pairs)
    reference = read_hybridqa_reference(HYBRIDQA_SAMPLE, "dev").answers
    not_found = []
    for linked, question in pairs:
        assert question.answers == (reference[question.question_id],)
        assert len(question.part_of_speech_tags) == len(question.text.split())
        assert any(map(any, expand_cells(linked, question).expansions))
        try:
            assert supervise_linked(linked, question).answer_coordinates
        except SupervisionError:
            not_found.append(question.question_id)
    assert not_found == ["abd1a0a646f6c1ab"]  # a count, which the text does not say
