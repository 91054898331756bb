"""Folders of tables become files of questions or statements, and nothing is left out unsaid."""

import dataclasses
import hashlib
import re
from collections import Counter

import pytest

from experiments.synthesis import LAYOUTS, MADE
from experiments.synthesis.creation import Files, read_sources, write_questions, write_statements
from experiments.synthesis.questions import QuestionsConfig
from experiments.synthesis.statements import StatementsConfig
from mate_tf.datasets.json_lines import read_json_lines
from mate_tf.datasets.tasks import TASKS, DescribedTable
from mate_tf.features.builder import FeatureBuilder
from mate_tf.features.config import FeatureConfig
from mate_tf.records.conversion import convert_all
from tests.datasets.releases import RELEASES, write_release
from tests.experiments.synthesis.small_tables import CITIES
from tests.small import cases, write_lines

LENGTH = 600
QUESTIONS = QuestionsConfig(
    questions_per_table=8, max_seq_length=LENGTH, max_question_tokens=200, seed=1
)
STATEMENTS = StatementsConfig(
    excerpts_per_table=2, operations_per_excerpt=2, max_seq_length=LENGTH, max_statement_tokens=200
)
TEXTS = ["Lima is in Peru", "nothing of it"]
BAD = {"id": "short", "header": ["a"], "rows": [["1"]]}


def city_table(name: str, number: str) -> dict:
    rows = [[*row[:2], f"{number}{row[2]}", *row[3:]] for row in CITIES.rows]
    return {"id": name, "header": CITIES.header, "rows": rows}


@pytest.fixture(scope="module")
def files(tmp_path_factory, vocab_file):
    """Eight tables with texts, a copy of one, one that is malformed and one that is too small."""
    folder = tmp_path_factory.mktemp("creation")
    lines = [{"table": city_table(f"{i}", f"{i}"), "texts": TEXTS} for i in range(1, 9)]
    lines += [{"table": city_table("copy", "3")}, {"table": BAD | {"rows": []}}, {"table": BAD}]
    write_lines(folder / "train.jsonl", *lines)
    folders = {"input_dir": str(folder), "output_dir": str(folder / "out")}
    return Files(task="TEXTS", vocab_file=str(vocab_file), parts="train=60,dev=40", **folders)


def write(kind: str, files: Files) -> str:
    if kind == "questions":
        return write_questions(files, QUESTIONS)
    return write_statements(files, STATEMENTS, [kind])


@cases(
    "kind, left_out",
    ("questions", {"table: fewer than two columns to ask about": 1}),
    ("synthetic", {"table: one row": 1}),
    ("counterfactual", {"table: no sentence": 1, "sentence: no entity of the table": 8}),
)
def test_parts_share_no_table_and_say_what_is_left_out(files, wordpiece, tmp_path, kind, left_out):
    files = dataclasses.replace(files, output_dir=str(tmp_path))
    report = write(kind, files)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dev.jsonl", "train.jsonl"]
    tables = {}
    builder = FeatureBuilder(wordpiece, FeatureConfig(max_seq_length=LENGTH))
    for part in ("train", "dev"):
        pairs = list(read_json_lines(tmp_path / f"{part}.jsonl"))
        tables[part] = {table.table_id.split("#")[0] for table, _ in pairs}
        what = "questions" if kind == "questions" else "statements"
        assert f"{part}: {len(pairs)} {what} about {len(tables[part])} of" in report
        if what == "statements":
            assert [q.class_index for _, q in pairs] == [1, 0] * (len(pairs) // 2)
        outcomes = list(convert_all(TASKS["JSONL"], builder, pairs, is_training=True))
        assert len(outcomes) == len(pairs) > 0
        for outcome, (_, question) in zip(outcomes, pairs, strict=True):
            assert outcome.features is not None, outcome.message
            if what == "questions":
                assert outcome.features["label_ids"].sum() > 0
            else:
                assert outcome.features["classification_class_index"] == [question.class_index]
    assert not tables["train"] & tables["dev"]
    assert tables["train"] | tables["dev"] == {str(i) for i in range(1, 9)}
    counts: Counter[str] = Counter()
    for count, reason in re.findall(r"left out: (\d+) (.+)", report):
        counts[reason] += int(count)
    assert counts == {"table: a copy of another": 1, "table: malformed": 1} | left_out
    assert "    expected at least 1 row below the header" in report


@cases(
    "kind, digest",
    ("questions", "23e316842fc50b19"),
    # The default model's statements had no first, last and range: d6347c67ca6a952a.
    ("synthetic", "9bfb18210431da68"),
    ("counterfactual", "d6514f066ca51f1a"),
)
def test_a_seed_gives_the_same_files_in_every_version(files, tmp_path, kind, digest):
    """The default model was trained on such files; another draw or wording makes another model."""
    write(kind, dataclasses.replace(files, output_dir=str(tmp_path)))
    assert hashlib.sha256((tmp_path / "train.jsonl").read_bytes()).hexdigest()[:16] == digest


def test_made_tables_need_a_number_and_no_folder(files):
    for folder, number in (("", 0), (files.input_dir, 3)):
        with pytest.raises(ValueError, match="expected num_tables and no input_dir for tables"):
            dataclasses.replace(files, task=MADE, input_dir=folder, num_tables=number)
    made = dataclasses.replace(files, task=MADE, input_dir="", num_tables=3)
    assert len(list(made.sources())) == 3
    with pytest.raises(ValueError, match="expected input_dir, the folder with the tables"):
        dataclasses.replace(files, input_dir="")


@cases(
    "changes, kinds, message",
    ({}, ["other"], r"expected kinds of .*synthetic.*, got \['other'\]"),
    ({}, [], "expected kinds of .*, got none"),
    ({"task": "SQA"}, ["synthetic"], "expected a layout of .*TEXTS.*, got 'SQA'"),
    ({"output_dir": ""}, ["synthetic"], "expected another folder than the input's"),
    ({"output_dir": "gs://b/o"}, ["synthetic"], "a folder of this machine as output_dir, got gs:"),
    ({"parts": "train=60"}, ["synthetic"], "percentages .* that add up to 100"),
)
def test_what_cannot_be_made_is_refused(files, tmp_path, changes, kinds, message):
    changes = {name: value or files.input_dir for name, value in changes.items()}
    with pytest.raises(ValueError, match=message):
        files = dataclasses.replace(files, **({"output_dir": str(tmp_path)} | changes))
        write_statements(files, STATEMENTS, kinds)


def test_few_tables_leave_no_part_empty_and_no_file_of_an_earlier_run(files, tmp_path):
    folder = tmp_path / "in"
    files = dataclasses.replace(files, input_dir=str(folder), output_dir=str(tmp_path))
    (tmp_path / "dev.jsonl").write_text("of an earlier run")
    for count in (3, 1):
        lines = [{"table": city_table(f"{i}", f"{i}")} for i in range(1, 1 + count)]
        write_lines(folder / "train.jsonl", *lines)
        if count == 3:
            write_questions(dataclasses.replace(files, parts="train=98,dev=2"), QUESTIONS)
            read = {part: read_json_lines(tmp_path / f"{part}.jsonl") for part in ("train", "dev")}
            tables = {part: {table.table_id[0] for table, _ in read[part]} for part in read}
            assert (len(tables["train"]), len(tables["dev"])) == (2, 1)
            assert tables["train"] | tables["dev"] == {"1", "2", "3"}
    with pytest.raises(ValueError, match=r"in each part, got none in (dev|train):\ntrain: "):
        write_questions(files, QUESTIONS)
    assert len(list(tmp_path.glob("*.jsonl"))) == 1


@cases(
    "kind, release, sources",
    # For TEXTS see tests/datasets/test_tasks.py.
    ("WTQ", "WTQ", [("csv/0.csv", ())]),
    ("TABLES", "WTQ", [("csv/0.csv", ()), ("data/random-split-1-train.tsv", ())]),
    ("TABFACT", "TabFact", [("t.csv", ("so",))]),
)
def test_tables_come_from_folders_and_releases(tmp_path, kind, release, sources):
    write_release(tmp_path, RELEASES[release])
    read = [
        (source.table.table_id, source.texts)
        for source in read_sources(kind, tmp_path, ["train"])
        if isinstance(source, DescribedTable)
    ]
    assert read == sources


@pytest.mark.parametrize("kind", [kind for kind in LAYOUTS if kind != MADE])
def test_a_folder_without_tables_is_an_error(tmp_path, kind):
    with pytest.raises(FileNotFoundError, match=r"expected .*found none"):
        list(read_sources(kind, tmp_path, ["train"]))
