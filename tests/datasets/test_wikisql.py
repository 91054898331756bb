import json

import pytest

from mate_tf.datasets.supervision import supervise
from mate_tf.datasets.wikisql import read_wikisql

TABLE = {
    "id": "1-10-1",
    "header": ["City", "People"],
    "types": ["text", "real"],
    "rows": [["Oslo", 709037], ["Bergen", "291,940"], ["Røst", 12.5]],
    "page_title": "Norway",
    "section_title": "Cities",
    "name": "table_10_1",
}
OTHER = {"id": "2-1", "header": ["a"], "types": ["real"], "rows": [[3], [None]]}


def ask(sel=1, agg=0, conds=(), table_id="1-10-1", question="how many?"):
    sql = {"sel": sel, "agg": agg, "conds": list(conds)}
    return {"phase": 1, "table_id": table_id, "question": question, "sql": sql}


def write(folder, questions, tables=(TABLE, OTHER), split="dev"):
    (folder / "data").mkdir(exist_ok=True)
    for name, records in ((split, questions), (f"{split}.tables", tables)):
        lines = (r if isinstance(r, str) else json.dumps(r, ensure_ascii=False) for r in records)
        text = "".join(line + "\n" for line in lines)
        (folder / "data" / f"{name}.jsonl").write_text(text, encoding="utf-8")
    return folder


def test_questions_have_the_cells_that_their_query_selects(tmp_path):
    questions = [
        ask(agg=4, conds=[[1, 1, 20]]),
        ask(sel=0, agg=5, table_id="2-1"),
        ask(sel=0, conds=[[1, 0, "12.5"]], question="where?"),
    ]
    read = list(read_wikisql(write(tmp_path, questions), "dev"))
    (table, total), (other, average), (same, where) = read
    names = table.table_id, table.document_title, table.context_heading
    assert names == ("1-10-1", "Norway", "Cities")
    assert table.rows == (("Oslo", "709037"), ("Bergen", "291,940"), ("Røst", "12.5"))
    assert same is table
    assert (other.table_id, other.document_title, other.rows) == ("2-1", "", (("3",), ("",)))
    assert [question.question_id for _, question in read] == [f"dev-{i}-0_0" for i in range(3)]
    assert (total.text, total.answers) == ("how many?", ("1000977",))
    assert (total.aggregation, total.answer_number) == ("SUM", 1_000_977.0)
    assert total.answer_coordinates == ((0, 1), (1, 1))
    assert (average.answers, average.answer_coordinates) == ((), ())  # a cell is no number
    assert (where.answers, where.answer_coordinates) == (("Røst",), ((2, 0),))


def test_weak_supervision_has_the_answers_alone_and_finds_cells(tmp_path):
    questions = [ask(sel=0, conds=[[1, 1, 500_000]]), ask(agg=3)]
    read = list(read_wikisql(write(tmp_path, questions), "dev", supervised=False))
    for _, question in read:
        assert not question.answer_coordinates
        assert (question.aggregation, question.answer_number) == ("", None)
    found, counted = (supervise(table, question) for table, question in read)
    assert found.answer_coordinates == ((0, 0),)
    assert counted.answer_number == 3.0


def test_numbers_are_written_out_but_as_the_release_writes_them_with_original(tmp_path):
    tables = [OTHER | {"rows": [[1e-5], [2.5e16]]}]
    write(tmp_path, [ask(sel=0, table_id="2-1")], tables)
    ((table, _),), ((original, _),) = (
        list(read_wikisql(tmp_path, "dev", original=flag)) for flag in (False, True)
    )
    assert table.rows == (("0.00001",), ("25000000000000000",))
    assert original.rows == (("1e-05",), ("2.5e+16",))


def test_original_names_tables_and_reads_answers_as_the_release_does(tmp_path):
    write(tmp_path, [ask(conds=[[0, 0, "bergen"]])])
    ((table, question),) = read_wikisql(tmp_path, "dev", original=True)
    names = table.table_id, table.document_title, table.context_heading
    assert names == ("table_csv/1-10-1.csv", "", "")
    assert table.rows[1] == ("Bergen", "291,940")
    assert (question.answers, question.answer_number) == (("291940.0",), 291_940.0)
    assert question.question_id == "dev-0-0_0"


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("[]", r"expected texts as 'question' and 'table_id', got \[\]"),
        (ask(question=3), "expected texts as 'question' and 'table_id'"),
        (ask(table_id="9-9"), "expected a table of '.*dev.tables.jsonl', got '9-9'"),
        ({"question": "?", "table_id": "2-1"}, "expected 'sql' with 'sel', 'agg' and 'conds'"),
        (ask(sel=2), "expected sel from 0 to 1, got 2"),
        (ask(agg=6), "expected agg from 0 to 5, got 6"),
        (ask(conds=[[0, 0]]), r"expected a condition as column, operator and value, got \[0, 0\]"),
        (ask(conds=[[0, 0, None]]), "expected a condition as column, operator and value"),
        (ask(conds=[[2, 0, "a"]]), "expected a condition's column from 0 to 1, got 2"),
        (ask(conds=[[0, 3, "a"]]), "expected a condition's operator from 0 to 2, got 3"),
    ],
)
def test_a_malformed_question_is_refused_with_file_and_line(tmp_path, bad, message):
    read = read_wikisql(write(tmp_path, [ask(), bad]), "dev")
    assert next(read)[1].question_id == "dev-0-0_0"  # questions come one by one
    with pytest.raises(ValueError, match=rf"{message}.*\(file '.*/dev\.jsonl', line 2\)"):
        next(read)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("{", "expected a table as a JSON object with an 'id', got: JSONDecodeError"),
        ({"header": []}, r"expected a table as a JSON object with an 'id', got: KeyError\('id'\)"),
        (OTHER | {"rows": None}, "expected a table with the lists 'header', 'types' and 'rows'"),
        (OTHER | {"types": []}, "expected for each of 1 columns one of"),
        (OTHER | {"types": [[]]}, "unhashable"),
        (OTHER | {"rows": []}, "expected at least 1 row"),
        (OTHER | {"rows": [[1], [2, 3]]}, "expected 1 cells as in the header, got 2"),
        (OTHER | {"rows": [[1], [[2]]]}, "expected text, a number or None, got list"),
        (OTHER | {"rows": [[1], 2]}, "not iterable"),
        (OTHER | {"page_title": 3}, "expected texts as titles"),
    ],
)
def test_a_malformed_table_is_refused_with_file_and_line(tmp_path, bad, message):
    write(tmp_path, [ask(sel=0, table_id="2-1")], [TABLE, bad])
    with pytest.raises(ValueError, match=rf"{message}.*dev\.tables\.jsonl', line 2\)"):
        list(read_wikisql(tmp_path, "dev"))
