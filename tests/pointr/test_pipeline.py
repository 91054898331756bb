"""All stages on a few small tables, some of which lack something or are beyond every limit."""

import dataclasses
import json
import shutil
from typing import Any

import pytest

from mate_tf.answers.answer import Answer, SelectedCell
from mate_tf.config import AttentionConfig
from mate_tf.evaluation.predictions import read_predictions
from mate_tf.pointr.answering import PointingInputs, PointRConfig, load_pointr
from mate_tf.pointr.pipeline import Pipeline, Source, answer_location, answers_report
from mate_tf.tables.linked_table import LinkedTable
from mate_tf.tables.table import Question, Table
from mate_tf.task_configs import SpanReadingConfig, TableQAConfig
from mate_tf.training.config import SpanReadingTrainingConfig, TableQATrainingConfig
from tests.datasets.linked_tables import CITIES
from tests.small import (
    assert_same,
    assert_same_files,
    cases,
    small_encoder,
    two_devices,
    without_tables,
    write_lines,
    write_vocabulary,
)
from tests.test_examples import passages_example

PARTS = ("[PAD]", "[EMPTY]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", ":", "(", ")", "?")
WORDS = (
    "city land what is the river of oslo rome lima norway italy peru alna tiber rimac has".split()
)
LENGTH = 48
STEPS = 200
SIZES: dict[str, Any] = dict(hidden_size=32, num_layers=2, num_heads=4, intermediate_size=64)
DENSE = AttentionConfig(evaluator="dense", bucket_size=0)
ENCODER = small_encoder(len(PARTS) + len(WORDS), attention=DENSE, position="absolute", **SIZES)


def config_of(num_steps: int) -> PointRConfig:
    """Trainings of both stages that evaluate once, at their end."""
    training: dict[str, Any] = dict(
        encoder=ENCODER,
        max_seq_length=LENGTH,
        learning_rate=2e-3,
        batch_size=4,
        **dict.fromkeys(("num_steps", "eval_interval", "checkpoint_interval"), num_steps),
    )
    pointing: dict[str, Any] = dict(operators=(), select_one_column=False, cell_cross_entropy=True)
    reading = SpanReadingConfig(max_span_length=3, output_dropout=0.0)
    return PointRConfig(
        point=TableQATrainingConfig(task=TableQAConfig(output_dropout=0.0, **pointing), **training),
        read=SpanReadingTrainingConfig(task=reading, **training),
    )


CONFIG = config_of(STEPS)
UNTRAINED = config_of(2)  # for what does not depend on what a model has learned
LANDS = {"oslo": ("norway", "alna"), "rome": ("italy", "tiber"), "lima": ("peru", "rimac")}
TABLE = {
    "id": "cities",
    "header": ["city", "land"],
    "rows": [[{"text": city, "links": [city]}, land] for city, (land, _) in LANDS.items()],
    "passages": {
        city: f"the river of {city} is the {river} ." for city, (_, river) in LANDS.items()
    },
}
# Nothing leads to one passage, and one says nothing.
LACKING = TABLE | {
    "id": "lacking",
    "rows": [
        [{"text": "oslo", "links": ["oslo", "bergen"]}, {"text": "norway", "links": ["land"]}]
    ],
    "passages": {"oslo": "the river of oslo is the alna .", "land": ""},
}
# Its header alone is too long.
LARGE = {"id": "large", "header": ["city"] * LENGTH, "rows": [["oslo"] * LENGTH]}


def questions():
    for city, (land, river) in LANDS.items():
        yield {"question": f"what is the land of {city} ?", "answers": [land], "table": TABLE}
        yield {"question": f"what is the river of {city} ?", "answers": [river], "table": TABLE}


def write_split(folder, name, records):
    named = ({"id": f"{name}-{i}", **record} for i, record in enumerate(records))
    write_lines(folder / f"{name}.jsonl", *named)


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("source")
    nowhere = {"question": "what is the land ?", "answers": ["rome rome"], "table": TABLE}
    lacking = {"question": "what is the land of oslo ?", "answers": ["norway"], "table": LACKING}
    large = {"question": "what is the city ?", "answers": ["oslo"], "table": LARGE}
    write_split(folder, "train", [*questions(), nowhere, large])
    write_split(folder, "dev", [*questions(), nowhere, lacking, large])
    hidden = ({key: asked[key] for key in ("question", "table")} for asked in questions())
    write_split(folder, "hidden", hidden)
    return Source("LINKED_JSONL", str(folder), {name: name for name in ("train", "dev", "hidden")})


@pytest.fixture(scope="module", autouse=True)
def quick_exports():
    with without_tables():
        yield


@pytest.fixture(scope="module")
def vocab_file(tmp_path_factory):
    return write_vocabulary(tmp_path_factory.mktemp("vocab") / "vocab.txt", (*PARTS, *WORDS))


@pytest.fixture(scope="module")
def pipeline(source, vocab_file):
    """Makes a pipeline in a folder."""
    return lambda folder, config=CONFIG, of=source: Pipeline(config, of, vocab_file, folder)


@pytest.fixture(scope="module")
def made(pipeline, tmp_path_factory):
    """A PointR's folder, and what its stages said."""
    directory = tmp_path_factory.mktemp("pointr")
    stages = pipeline(directory)
    said = [stages.create(), stages.point(), stages.read()]
    return directory, [*said, stages.evaluate("dev"), stages.evaluate("hidden")]


@pytest.fixture
def copied(made, tmp_path):
    """A copy of the folder, to change something in."""
    return shutil.copytree(made[0], tmp_path / "copy")


def test_what_becomes_of_each_question_is_said(made):
    _, (created, pointed, read, _, _) = made
    train, rest = created.split("dev: ")
    assert "6 of 8 questions kept" in train
    assert "left out: 1 answer not found" in train and "left out: 1 too long" in train
    for place in ("4 in table", "3 in passage", "1 missing"):
        assert place in train.split("answers: ")[1], place
    assert "8 of 9 questions kept" in rest
    assert "whole within 48 tokens: 8 of 9" in rest
    notes = "no labels (answer not found): 1", "links without a passage: 1", "left out: 1 too long"
    for note in (*notes, "passages without text: 1"):
        assert note in rest, note
    exported = f"exported the weights of step {STEPS} of {STEPS}"
    assert pointed == f"point: {exported}"
    assert "not read: 1 missing" in read and f"read: {exported}" in read


def test_every_question_is_answered_for_the_official_evaluation_and_it_learns(made, source):
    directory, (*_, report, hidden) = made
    answers = json.loads((directory / "answers" / "dev.json").read_text(encoding="utf-8"))
    assert [answer["question_id"] for answer in answers] == [f"dev-{i}" for i in range(9)]
    assert answers[-1]["pred"] == ""
    lines = (directory / "answers" / "dev.jsonl").read_text(encoding="utf-8").splitlines()
    assert "expected at most 48 tokens" in json.loads(lines[-1])["error"]
    assert (directory / "answers" / "dev.md").read_text(encoding="utf-8") == report
    rows = ("| questions | 9 |", "| not accepted | 1 |", "| exact match in table |", "hits at 5")
    assert not [row for row in rows if row not in report]
    assert "| questions | 6 |" in hidden and "exact match" not in hidden
    rows = report.splitlines()[4:20]
    scores = dict(row.strip("| ").split(" | ") for row in rows if row.count("|") == 3)
    # Of the nine questions one is too long, one has no answer, and one table is like no other.
    assert float(scores["hits at 1"].rstrip("%")) >= 66.0
    assert float(scores["exact match"].rstrip("%")) >= 66.0


def test_two_devices_point_and_read_as_one(made, pipeline, copied):
    stages = dataclasses.replace(pipeline(copied), scope=two_devices().scope)
    stages.read()
    assert_same_files(copied / "read_data", made[0] / "read_data")
    assert stages.evaluate("dev") == made[1][3]
    one, two = (read_predictions(folder / "answers" / "dev.jsonl") for folder in (made[0], copied))
    assert {name: answer.items for name, answer in one.items()} == {
        name: answer.items for name, answer in two.items()
    }
    scores = ([answer.score for answer in of.values()] for of in (one, two))
    assert_same(*scores, rtol=0, atol=1e-5)


def test_both_models_answer_without_the_pipeline(made):
    directory, _ = made
    pointr = load_pointr(directory / "model")
    table = Table(("city", "land"), (("oslo", "norway"), ("rome", "italy")))
    linked = LinkedTable.from_links(table, [[["a"], []], [[], []]], {"a": "oslo has the alna ."})
    answer = pointr.answer(linked, "what is the river of oslo ?")
    assert answer.answered and answer.text
    assert len(answer.alternatives) == 3
    names: dict[str, Any] = {}  # the guide's example
    exec(passages_example().replace("out/pointr/model", str(directory / "model")), names)
    assert names["answer"].cells


@pytest.mark.parametrize("evidence", ["table", "passages"])
def test_a_run_does_not_go_on_with_records_of_other_inputs(pipeline, copied, evidence):
    stages = pipeline(copied, dataclasses.replace(CONFIG, inputs=PointingInputs(evidence)))
    assert "train: 3 of 8 questions kept" in stages.create()  # about lands, or about rivers
    with pytest.raises(ValueError, match=r"expected the data that the run in .* began with"):
        stages.point()


def test_another_config_and_a_folder_within_the_input_are_refused(copied, pipeline, source):
    other = dataclasses.replace(CONFIG.point, learning_rate=0.5)
    with pytest.raises(ValueError, match=r"got another: learning_rate=0\.5"):
        pipeline(copied, dataclasses.replace(CONFIG, point=other)).point()
    with pytest.raises(ValueError, match="a folder to work in outside of the input's"):
        pipeline(f"{source.directory}/out")


def test_the_reader_may_learn_from_passages_first(pipeline, copied):
    stages = pipeline(copied, dataclasses.replace(UNTRAINED, clozes=UNTRAINED.read))
    with pytest.raises(FileNotFoundError, match=r"stage 'clozes' .* run that stage first"):
        stages.read()
    made = stages.clozes()
    assert "train: " in made and "dev: " in made
    shutil.rmtree(copied / "read")
    assert "read: exported the weights of step 2 of 2" in stages.read()
    inputs = json.loads((copied / "read" / "inputs.json").read_text(encoding="utf-8"))
    assert str(copied / "clozes") in json.dumps(inputs)
    assert pipeline(copied).clozes() == "clozes: none in this config"


@cases("stage, first", ("point", "create"), ("read", "point"), ("evaluate", "create"))
def test_a_stage_names_the_one_before_it(pipeline, tmp_path, stage, first):
    arguments = ("dev",) if stage == "evaluate" else ()
    with pytest.raises(FileNotFoundError, match=f"stage '{first}' .* run that stage first"):
        getattr(pipeline(tmp_path), stage)(*arguments)


def test_an_interrupted_stage_goes_on(pipeline, tmp_path, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt("in the export")

    pipeline(tmp_path, UNTRAINED).create()
    with monkeypatch.context() as patch:
        patch.setattr("mate_tf.pointr.pipeline.export_stored", interrupted)
        with pytest.raises(KeyboardInterrupt, match="in the export"):
            pipeline(tmp_path, UNTRAINED).point()
    checkpoint = tmp_path / "point" / "ckpt-2.index"
    before = checkpoint.stat().st_mtime_ns
    said = pipeline(tmp_path, UNTRAINED).point()
    assert said == "point: exported the weights of step 2 of 2"
    assert checkpoint.stat().st_mtime_ns == before


def test_passages_alone_say_nothing_of_the_table(pipeline, tmp_path):
    stages = pipeline(tmp_path, dataclasses.replace(UNTRAINED, inputs=PointingInputs("passages")))
    stages.create()
    stages.point()
    stages.read()
    rows = stages.evaluate("dev").splitlines()
    assert "| hits at 1 in table | 0.00% |" in rows
    assert "| exact match in table | 0.00% |" in rows


@cases(
    "answers, cells, place",
    (("Oslo",), (), "in table"),  # also in its passage
    (("many parks",), (), "in passage"),
    (("many parks",), ((1, 1),), "in passage"),  # cells that are given say nothing of it
    (("Lima",), (), "missing"),
    ((), (), "not given"),
)
def test_places(answers, cells, place):
    question = Question("?", answers=answers, answer_coordinates=cells)
    assert answer_location(CITIES, question) == place


def test_questions_without_an_answer_are_counted_and_not_scored():
    table = Table(("city",), (("oslo",),))
    asked = Question("?", "a", ("oslo", "the oslo"), ((0, 0),))
    pairs = [(table, asked), (table, Question("?", "b"))]
    predictions = dict.fromkeys("ab", Answer(("Oslo",), (SelectedCell(0, 0, "oslo", 1.0),)))
    places = {"a": "in table", "b": "not given"}
    source = Source("LINKED_JSONL", "", {"dev": "dev"})
    report = answers_report("dev", predictions, pairs, source, places)
    for row in ("questions | 2", "without a gold answer | 1", "exact match | 100.00%"):
        assert f"| {row} |" in report, row
    assert "| exact match in table | 100.00% |" in report


def test_a_broken_reference_is_no_missing_one(tmp_path):
    (tmp_path / "dev_reference.json").write_text("[]", encoding="utf-8")
    table = Table(("city",), (("oslo",),))
    pairs = [(table, Question("?", "a", ("oslo",)))]
    source = Source("HYBRIDQA", str(tmp_path), {"dev": "dev"})
    with pytest.raises(ValueError, match=r"dev_reference\.json"):
        answers_report("dev", {"a": Answer(("Oslo",))}, pairs, source, {})
