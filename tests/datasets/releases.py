"""The smallest release of each data set: what its reader is given, in the official layout."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from mate_tf.datasets.hybridqa import read_hybridqa, read_hybridqa_reference
from mate_tf.datasets.interactions import read_interactions
from mate_tf.datasets.json_lines import read_json_lines, read_linked_json_lines
from mate_tf.datasets.tabfact import read_tabfact
from mate_tf.datasets.tasks import read_corpus, read_sst2
from mate_tf.datasets.wikisql import read_wikisql
from mate_tf.datasets.wtq import read_sqa, read_wtq


class Release(NamedTuple):
    """A data set's reader and splits, and the files that its split "train" is read from."""

    read: Callable
    splits: tuple[str, ...]
    files: dict[str, str]


def lines(*values) -> str:
    return "".join(f"{v if isinstance(v, str) else json.dumps(v)}\n" for v in values)


CSV_TABLE = lines("a,b", "1,2", "3,4")
SQA_COLUMNS = "id annotator position question table_file answer_coordinates answer_text".split()
STATEMENTS = lines("{", '"t.csv": [["so"], [1], "title"]', "}")
QUERY = {"question": "which?", "table_id": "t", "sql": {"sel": 0, "agg": 0, "conds": []}}
HYBRID_QUESTION = {"question_id": "q", "question": "which?", "table_id": "t", "answer-text": "x"}
TRACED = HYBRID_QUESTION | {"answer-node": [["x", [0, 0], None, "table"]]}
REFERENCE = {"reference": {"q": "x"}, "table": ["q"], "passage": []}
HYBRID_TABLES = {
    "tables_tok/t.json": lines({"header": [["a", []]], "data": [[["x", []]]]}),
    "request_tok/t.json": "{}\n",
}
INTERACTION = 'table: { columns: { text: "a" } rows: { cells: { text: "b" } } } questions: { }'


def of_json_lines(read: Callable, line: dict, **files: str) -> Release:
    """A folder of one's own with train.jsonl and dev.jsonl."""
    of_split = lambda directory, split: read(directory / f"{split}.jsonl")  # noqa: E731
    return Release(of_split, ("train", "dev"), {"train.jsonl": lines(line)} | files)


TSV = "data/random-split-1-train.tsv"
SQA_LINE = "nt-1\t0\t0\twhich?\ttable_csv/0.csv\t['(0, 0)']\t['1']"
FACTS = {"data/all_csv/t.csv": CSV_TABLE.replace(",", "#")}
TESTS = {"tokenized_data/test_examples.json": STATEMENTS, "data/small_test_id.json": '["t.csv"]\n'}
SQL_TABLE = {"id": "t", "header": ["a", "b"], "types": ["real", "text"], "rows": [[1, "x"]]}
LINKED = {"header": ["a"], "rows": [[{"text": "x", "links": ["y"]}]], "passages": {"y": "b c"}}
SPLITS = ("train", "dev", "test")

RELEASES = {
    "WTQ": Release(
        read_wtq,
        SPLITS,
        {
            TSV: lines("id\tutterance\tcontext\ttargetValue", "nt-1\t?\tcsv/0.csv\t1"),
            "csv/0.csv": CSV_TABLE,
        },
    ),
    "SQA": Release(
        read_sqa,
        ("train", "dev", "train_and_dev", "test"),
        {
            "random-split-1-train.tsv": lines("\t".join(SQA_COLUMNS), SQA_LINE),
            "table_csv/0.csv": CSV_TABLE,
        },
    ),
    "WikiSQL": Release(
        read_wikisql,
        SPLITS,
        {"data/train.jsonl": lines(QUERY), "data/train.tables.jsonl": lines(SQL_TABLE)},
    ),
    "TabFact": Release(
        read_tabfact,
        (*SPLITS, "simple_test", "complex_test", "small_test"),
        {"tokenized_data/train_examples.json": STATEMENTS} | FACTS,
    ),
    "TabFact's small test": Release(
        lambda directory, _: read_tabfact(directory, "small_test"), (), TESTS | FACTS
    ),
    "HybridQA": Release(
        read_hybridqa, SPLITS, {"train.json": lines("[", HYBRID_QUESTION, "]")} | HYBRID_TABLES
    ),
    "HybridQA, traced": Release(
        lambda directory, split: read_hybridqa(directory, split, traced=True),
        (),
        {"train.traced.json": lines("[", TRACED, "]")} | HYBRID_TABLES,
    ),
    "HybridQA's reference": Release(
        lambda directory, split: [read_hybridqa_reference(directory, split)],
        (),
        {"train_reference.json": lines(REFERENCE)},
    ),
    "interactions": Release(read_interactions, (), {"train.txtpb": lines(INTERACTION)}),
    "a corpus": Release(
        lambda directory, split: read_corpus("TEXTS", directory, split),
        (),
        {"train.jsonl": lines({"id": "first", "table": {"header": ["a"], "rows": [["b"]]}})},
    ),
    "JSON Lines": of_json_lines(
        read_json_lines,
        {"question": "which?", "table": "t.csv", "answers": ["1"]},
        **{"t.csv": CSV_TABLE},
    ),
    "JSON Lines with links": of_json_lines(
        read_linked_json_lines,
        {"question": "which?", "table": "t.json", "answers": ["b"]},
        **{"t.json": lines(LINKED)},
    ),
    "SST-2": Release(read_sst2, ("train", "dev"), {"train.tsv": lines("fine\t1")}),
}


def write_files(directory: Path, files: Mapping[str, Any]) -> Path:
    """Writes files, by their path, that have a text or else a value in JSON."""
    for file, content in files.items():
        path = directory / file
        path.parent.mkdir(parents=True, exist_ok=True)
        text = content if isinstance(content, str | bytes) else json.dumps(content)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
    return directory


def write_release(directory: Path, release: Release, **changes: bytes) -> Path:
    """Writes the files, those in `changes` with that content."""
    return write_files(directory, release.files | changes)
