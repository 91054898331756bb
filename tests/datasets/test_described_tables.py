import pytest

from mate_tf.datasets import described_tables
from mate_tf.datasets.tasks import Division
from mate_tf.tables.table import Table
from tests.small import write_lines

INLINE = {"id": "t", "header": ["a"], "rows": [["b"]], "document_title": "Title"}


def write_folder(folder):
    (folder / "below").mkdir(parents=True)
    (folder / "one.csv").write_text("a,b\nc,d\n", encoding="utf-8")
    (folder / "below" / "one.tsv").write_text("a\tb\ne\tf\n", encoding="utf-8")
    (folder / "notes.txt").write_text("no table\n", encoding="utf-8")
    return folder


def test_lines_have_tables_of_their_own_or_of_files_and_titles_are_texts(tmp_path):
    write_folder(tmp_path)
    write_lines(
        tmp_path / "train.jsonl",
        {"table": INLINE, "texts": ["one", " ", "two"]},
        {"id": 7, "table": "below/one.tsv"},
    )
    first, second = described_tables.read_corpus("TEXTS", tmp_path, "train")
    assert (first.name, first.table.table_id) == ("train-1", "t")
    assert first.texts == ("one", "two")
    assert first.texts_with_titles == ("Title", "one", "two")
    assert (second.name, second.texts) == ("7", ())
    assert second.table == Table(("a", "b"), (("e", "f"),), "below/one.tsv")


def test_a_folder_of_tables_is_one_split_and_questions_are_read_in_their_layout(tmp_path):
    folder = write_folder(tmp_path / "tables")
    found = list(described_tables.read_corpus("TABLES", folder, "train"))
    assert [(item.name, item.table.table_id, item.texts) for item in found] == [
        (name, name, ()) for name in ("below/one.tsv", "one.csv")
    ]
    assert described_tables.corpus_splits("TABLES", tmp_path / "tables") == (["train"], [])
    (tmp_path / "none").mkdir()
    with pytest.raises(FileNotFoundError, match=r"expected tables .*, found none"):
        list(described_tables.read_corpus("TABLES", tmp_path / "none", "train"))
    question = {"id": "q", "question": "which one is it?", "answers": ["b"], "table": INLINE}
    other = {"id": "o", "question": "what?", "table": INLINE | {"id": "other"}}
    more = question | {"id": "r", "question": "and?"}
    write_lines(tmp_path / "dev.jsonl", question, other, more)
    found = described_tables.read_corpus("JSONL", tmp_path, "dev")
    texts = {item.table.table_id: item.texts_with_titles for item in found}
    assert texts == {"t": ("Title", "which one is it?", "and?"), "other": ("Title", "what?")}


def test_a_corpus_is_read_by_its_splits_parts_and_without_some_tables(tmp_path):
    layouts = set(described_tables.LAYOUTS)
    assert {"TEXTS", "TABLES", "WTQ", "JSONL"} <= layouts and "SST2" not in layouts
    tables = [{"table": INLINE | {"id": f"t{n}"}} for n in range(40)]
    write_lines(tmp_path / "train.jsonl", *tables)
    assert described_tables.corpus_splits("TEXTS", tmp_path) == (["train"], [])

    def ids(split, *args):
        corpus = described_tables.read_corpus("TEXTS", tmp_path, split, *args)
        return [item.table.table_id for item in corpus]

    division = Division("train", (("train", 50), ("dev", 50)))
    parts = [ids(split, division) for split in ("train", "dev")]
    assert all(parts) and sorted(parts[0] + parts[1]) == sorted(ids("train"))
    assert parts[0] == [id_ for id_ in ids("train") if division.part_of(id_) == "train"]
    assert ids("train", None, {"t3"}) == [id_ for id_ in ids("train") if id_ != "t3"]
