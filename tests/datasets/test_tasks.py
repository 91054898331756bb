"""Dividing a split by its tables; SST-2, and tables with texts, which are read with the tasks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mate_tf.datasets.tasks import (
    LAYOUTS,
    Division,
    _position,
    corpus_splits,
    read_corpus,
    read_sst2,
)
from mate_tf.tables.table import Table
from tests.datasets.releases import write_files
from tests.small import stored_cases, write_lines

DIVISION = Division.from_text("dev:train=72,calibration=8,dev=20")


@given(st.text())
def test_every_table_is_in_one_part_and_always_in_the_same(table_id):
    assert (DIVISION.split, DIVISION.names) == ("dev", ("train", "calibration", "dev"))
    again = Division.from_text(str(DIVISION))
    assert again == DIVISION
    assert again.part_of(table_id) == DIVISION.part_of(table_id) in DIVISION.names


def test_parts_are_as_large_as_their_percentages_and_take_the_place_of_their_split():
    parts = [DIVISION.part_of(f"table_{i}.csv") for i in range(10_000)]
    for name, percentage in DIVISION.parts:
        # Three standard deviations of a binomial count.
        share = percentage / 100
        expected, deviation = 10_000 * share, (10_000 * share * (1 - share)) ** 0.5
        assert abs(parts.count(name) - expected) < 3 * deviation
    division = Division.from_text("train:train=90,calibration=10")
    assert division.divided(["dev", "train", "test"]) == ["dev", "train", "calibration", "test"]
    message = r"expected one of the splits \['train'\] to divide, got 'dev'"
    with pytest.raises(ValueError, match=message):
        DIVISION.divided(["train"])
    message = r"parts with other names than the splits \['train'\], got \['train'\]"
    with pytest.raises(ValueError, match=message):
        DIVISION.divided(["train", "dev"])


@given(st.sets(st.text(max_size=5), min_size=3, max_size=12))
def test_no_part_of_few_tables_is_empty_and_only_needed_tables_move(table_ids):
    filled = DIVISION.filled([*table_ids, *table_ids])
    parts = {table_id: filled.part_of(table_id) for table_id in table_ids}
    assert set(parts.values()) == set(DIVISION.names)
    assert filled == DIVISION.filled(sorted(table_ids, reverse=True))
    by_hash = {table_id: DIVISION.part_of(table_id) for table_id in table_ids}
    moved = {table_id for table_id in table_ids if parts[table_id] != by_hash[table_id]}
    assert moved == {table_id for table_id, _ in filled.moved}
    assert len(moved) <= len(set(DIVISION.names) - set(by_hash.values()))
    assert str(filled) == str(DIVISION)


def test_the_table_nearest_to_an_empty_part_moves_and_fewer_tables_than_parts_are_refused():
    names = [f"{i}" for i in range(300)]
    trained = [name for name in names if DIVISION.part_of(name) == "train"][:9]
    dev = next(name for name in names if DIVISION.part_of(name) == "dev")
    nearest = max(trained, key=lambda name: (_position(name), -int(name)))
    assert DIVISION.filled([*trained, dev]).moved == ((nearest, "calibration"),)
    many = iter(names)
    assert DIVISION.filled(many) is DIVISION and next(many, None)  # not all were read
    with pytest.raises(ValueError, match=r"at least 3 tables .*, dev, got 2 in the"):
        DIVISION.filled(["a", "b", "a"])


@stored_cases("text, error")
def test_what_is_no_division_is_refused(text, error):
    with pytest.raises(ValueError, match=error):
        Division.from_text(text)


def test_sentences_and_classes_are_read_past_the_names_of_columns(tmp_path):
    write_files(tmp_path, {"train.tsv": "sentence\tlabel\na film\t1\n\nno , it 's not\t0\r\n"})
    (_, first), (_, second) = read_sst2(tmp_path, "train")
    assert (first.text, first.class_index, first.question_id) == ("a film", 1, "train-2")
    assert (second.text, second.class_index, second.question_id) == ("no , it 's not", 0, "train-4")


INLINE = {"id": "t", "header": ["a"], "rows": [["b"]], "document_title": "Title"}


FOLDER = {"one.csv": "a,b\nc,d\n", "below/one.tsv": "a\tb\ne\tf\n", "notes.txt": "no table\n"}


def test_lines_have_tables_of_their_own_or_of_files_and_titles_are_texts(tmp_path):
    write_files(tmp_path, FOLDER)
    write_lines(
        tmp_path / "train.jsonl",
        {"table": INLINE, "texts": ["one", " ", "two"]},
        {"id": 7, "table": "below/one.tsv"},
    )
    first, second = read_corpus("TEXTS", tmp_path, "train")
    assert (first.name, first.table.table_id) == ("train-1", "t")
    assert first.texts == ("one", "two")
    assert first.texts_with_titles == ("Title", "one", "two")
    assert (second.name, second.texts) == ("7", ())
    assert second.table == Table(("a", "b"), (("e", "f"),), "below/one.tsv")


def test_a_folder_of_tables_is_one_split_and_questions_are_read_in_their_layout(tmp_path):
    folder = write_files(tmp_path / "tables", FOLDER)
    found = list(read_corpus("TABLES", folder, "train"))
    assert [(item.name, item.table.table_id, item.texts) for item in found] == [
        (name, name, ()) for name in ("below/one.tsv", "one.csv")
    ]
    assert corpus_splits("TABLES", folder) == (["train"], [])
    (tmp_path / "none").mkdir()
    with pytest.raises(FileNotFoundError, match=r"expected tables .*, found none"):
        list(read_corpus("TABLES", tmp_path / "none", "train"))
    question = {"id": "q", "question": "which one is it?", "answers": ["b"], "table": INLINE}
    other = {"id": "o", "question": "what?", "table": INLINE | {"id": "other"}}
    more = question | {"id": "r", "question": "and?"}
    write_lines(tmp_path / "dev.jsonl", question, other, more)
    found = read_corpus("JSONL", tmp_path, "dev")
    texts = {item.table.table_id: item.texts_with_titles for item in found}
    assert texts == {"t": ("Title", "which one is it?", "and?"), "other": ("Title", "what?")}


def test_a_corpus_is_read_by_its_splits_parts_and_without_some_tables(tmp_path):
    assert {"TEXTS", "TABLES", "WTQ", "JSONL"} <= {*LAYOUTS} and "SST2" not in LAYOUTS
    tables = [{"table": INLINE | {"id": f"t{n}"}} for n in range(40)]
    write_lines(tmp_path / "train.jsonl", *tables)
    assert corpus_splits("TEXTS", tmp_path) == (["train"], [])

    def ids(split, *args):
        return [item.table.table_id for item in read_corpus("TEXTS", tmp_path, split, *args)]

    division = Division("train", (("train", 50), ("dev", 50)))
    parts = [ids(split, division) for split in ("train", "dev")]
    assert all(parts) and sorted(parts[0] + parts[1]) == sorted(ids("train"))
    assert parts[0] == [id_ for id_ in ids("train") if division.part_of(id_) == "train"]
    assert ids("train", None, {"t3"}) == [id_ for id_ in ids("train") if id_ != "t3"]
