import dataclasses
import json

import pytest

from mate_tf.datasets.described_tables import DescribedTable
from mate_tf.datasets.json_lines import write_json_lines
from mate_tf.datasets.tasks import Division
from mate_tf.synthesis.pairs import LAYOUTS, Source, read_sources
from mate_tf.synthesis.statements import CreationSummary, SyntheticConfig, create_part, maker
from mate_tf.tables.table import Table
from tests.datasets.releases import CSV_TABLE, RELEASES, write_release
from tests.synthesis.small_tables import CITIES

DIVISION = Division.from_text("tables:train=60,dev=40")
CONFIG = SyntheticConfig(
    excerpts_per_table=2, operations_per_excerpt=2, max_seq_length=600, max_statement_tokens=200
)
SENTENCE = "Lima is in Peru"


def other(name: str) -> Table:
    rows = tuple((*row[:2], f"{name}{row[2]}", *row[3:]) for row in CITIES.rows)
    return dataclasses.replace(CITIES, table_id=name, rows=rows)


SOURCES: list[Source] = [
    *(DescribedTable(f"{i}", other(f"{i}"), (SENTENCE, "nothing of it")) for i in range(1, 9)),
    DescribedTable("copy", dataclasses.replace(other("3"), table_id="copy")),
    ValueError("expected a table"),
    DescribedTable("short", Table.from_rows([("x", "1")], ["a", "b"], "short")),
]


def create(part: str, kind: str, wordpiece):
    summary = CreationSummary()
    pairs = create_part(SOURCES, part, DIVISION, [maker(kind, wordpiece, CONFIG)], summary)
    return list(pairs), summary


@pytest.mark.parametrize("kind", ["synthetic", "counterfactual"])
def test_parts_share_no_table_and_leave_out_none_without_a_reason(wordpiece, kind):
    made = {part: create(part, kind, wordpiece) for part in DIVISION.names}
    tables = {
        part: {table.table_id.split("#")[0] for table, _ in pairs}
        for part, (pairs, _) in made.items()
    }
    assert tables["train"] and tables["dev"]
    assert not tables["train"] & tables["dev"]
    assert tables["train"] | tables["dev"] == {str(i) for i in range(1, 9)}
    for pairs, summary in made.values():
        labels = [question.class_index for _, question in pairs]
        assert labels == [1, 0] * (len(labels) // 2)
        assert f"{len(pairs)} statements about {summary.tables_used} of" in str(summary)
    both = made["train"][1].left_out + made["dev"][1].left_out
    of_kind = {
        "synthetic": {"table: one row": 1},
        "counterfactual": {"sentence: no entity of the table": 8, "table: no sentence": 1},
    }
    assert both == {"table: a copy of another": 1, "table: malformed": 1} | of_kind[kind]
    assert "    expected a table\n" in f"{made['train'][1]}\n"


def test_a_file_that_is_not_complete_is_not_there(wordpiece, tmp_path):
    def interrupted():
        yield SOURCES[0]
        raise KeyboardInterrupt

    makers = [maker("synthetic", wordpiece, CONFIG)]
    division = Division.from_text("tables:all=100")
    pairs = create_part(interrupted(), "all", division, makers, CreationSummary())
    with pytest.raises(KeyboardInterrupt):
        write_json_lines(tmp_path / "all.jsonl", pairs)
    assert not list(tmp_path.iterdir())


def test_an_unknown_kind_is_refused(wordpiece):
    with pytest.raises(ValueError, match=r"expected a kind of .*synthetic.*, got 'other'"):
        maker("other", wordpiece, CONFIG)


@pytest.mark.parametrize(
    "kind, release, sources",
    [
        ("WTQ", "WTQ", [("csv/0.csv", ())]),
        ("TABLES", "WTQ", [("csv/0.csv", ()), ("data/random-split-1-train.tsv", ())]),
        ("TABFACT", "TabFact", [("t.csv", ("so",))]),
    ],
)
def test_tables_come_from_folders_and_releases(tmp_path, kind, release, sources):
    write_release(tmp_path, RELEASES[release])
    read = [
        (source.table.table_id, source.texts)
        for source in read_sources(kind, tmp_path, ["train"])
        if isinstance(source, DescribedTable)
    ]
    assert read == sources


def test_tables_come_from_lines_of_json(tmp_path):
    (tmp_path / "t.csv").write_text(CSV_TABLE)
    lines = [
        {"table": {"id": "own", "header": ["a"], "rows": [["b"]]}, "texts": ["so"]},
        {"table": {"header": ["a"], "rows": [["c"]]}},
        {"table": {"header": ["a"], "rows": [["c"]]}},
        {"table": "t.csv"},
        {"table": {"header": ["a"], "rows": []}},
    ]
    (tmp_path / "train.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    read = list(read_sources("TEXTS", tmp_path, ["train"]))
    names = [str(s) if isinstance(s, ValueError) else s.table.table_id for s in read]
    own, first, again, in_file, error = names
    assert (own, in_file) == ("own", "t.csv")
    assert first == again  # what is the same is one table, which one part of a division has
    assert [source.name for source in read[:4]] == ["train-1", "train-2", "train-3", "train-4"]
    assert "expected at least 1 row below the header" in error
    assert read[0].texts == ("so",)


def test_a_malformed_line_is_an_error(tmp_path):
    (tmp_path / "train.jsonl").write_text('{"table": 3}')
    with pytest.raises(ValueError, match=r"expected a text or an object for 'table'.*line 1\)"):
        list(read_sources("TEXTS", tmp_path, ["train"]))


@pytest.mark.parametrize("kind", LAYOUTS)
def test_a_folder_without_tables_is_an_error(tmp_path, kind):
    with pytest.raises(FileNotFoundError, match=r"expected .*found none"):
        list(read_sources(kind, tmp_path, ["train"]))
