"""The stages of a PointR: from tables with passages to two trained models and their answers.

Each stage writes to a folder of its own, and notes in the folder "done" what its output was made
of. A stage that was interrupted goes on, and one that was done with the same is not done again.
"""

import contextlib
import dataclasses
import functools
import json
import os
import pathlib
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from mate_tf.answers.answer import Answer
from mate_tf.dataclass_json import differences
from mate_tf.datasets.tasks import TASKS
from mate_tf.evaluation.hybridqa import write_official
from mate_tf.evaluation.predictions import write_predictions
from mate_tf.features.config import FeatureConfig
from mate_tf.pointr.answering import POINTER, READER, load_pointer, load_pointr, save_inputs
from mate_tf.pointr.inputs import (
    PointRConfig,
    Progress,
    Source,
    pointing_features,
    pointing_task,
    prepare_records,
    reading_cells,
    restrict_pair,
    write_split,
)
from mate_tf.pointr.report import Places, answers_report
from mate_tf.records.conversion_file import file_sha256
from mate_tf.records.splits import read_questions
from mate_tf.serving.export import export_stored
from mate_tf.serving.loading import run_model
from mate_tf.tables.linked_table import LinkedTable
from mate_tf.tables.table import Question
from mate_tf.tables.text_files import complete_text_file, read_json
from mate_tf.training.config import FinetuningConfig
from mate_tf.training.examples import SPLITS
from mate_tf.training.run import INPUTS_FILE, data_files, load_inputs, train_run

MODEL = "model"  # the folder of both exported models
_RANKED = 10  # cells, for each question that the reader learns from
_READABLE = ("in table", "in passage")


def as_read(content: Any) -> Any:
    """The content as JSON gives it back, without tuples."""
    return json.loads(json.dumps(content))


def write_json(path: pathlib.Path, content: Any) -> None:
    """Writes a file, which appears once it is complete, and makes its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with complete_text_file(path) as file:
        file.write(json.dumps(content, indent=1) + "\n")


class Done:
    """A folder with a file for each thing that was completed.

    Args:
        directory: the folder.
    """

    def __init__(self, directory: pathlib.Path) -> None:
        self._directory = directory

    def once(self, what: str, made_of: Any, make: Callable[[], str], output: pathlib.Path) -> str:
        """Makes something, unless it was made of the same before.

        Args:
            what: its name.
            made_of: all that it depends on, for JSON.
            make: makes it, and reports on it.
            output: a file that is there if it was made.

        Returns:
            The report, of now or of then.
        """
        if self.has(what, made_of, output):
            return read_json(self._path(what))["report"]
        self._path(what).unlink(missing_ok=True)
        report = make()
        write_json(self._path(what), {"made_of": made_of, "report": report})
        return report

    def has(self, what: str, made_of: Any, output: pathlib.Path) -> bool:
        """Whether something was made of this, and its output is still there."""
        path = self._path(what)
        return output.exists() and path.is_file() and self.made_of(what, "") == as_read(made_of)

    def made_of(self, what: str, stage: str) -> Any:
        """What something was made of.

        Args:
            what: its name.
            stage: the stage that makes it, for the error.

        Raises:
            FileNotFoundError: if it was not made yet.
        """
        path = self._path(what)
        if not path.is_file():
            raise FileNotFoundError(
                f"expected the stage '{stage}' to be done, found no {path}; run that stage first"
            )
        return read_json(path)["made_of"]

    def _path(self, what: str) -> pathlib.Path:
        return self._directory / f"{what}.json"


class Pipeline:
    """The stages, in a folder (Eisenschlos et al., 2021, section 4).

    Args:
        config: both trainings, and what the pointer sees.
        source: the questions.
        vocab_file: BERT's or TAPAS's vocabulary, for both stages.
        directory: the folder.
        progress: wraps what takes long, with a name, as tqdm does.
        scope: the scope of the strategy to train with; one device by default.

    Raises:
        ValueError: if the folder is within the input's folder, which would change with it.
    """

    def __init__(
        self,
        config: PointRConfig,
        source: Source,
        vocab_file: str | os.PathLike[str],
        directory: str | pathlib.Path,
        progress: Progress = lambda items, _: items,
        scope: Callable[[], contextlib.AbstractContextManager] = contextlib.nullcontext,
    ) -> None:
        self._directory = pathlib.Path(directory)
        if self._directory.resolve().is_relative_to(pathlib.Path(source.directory).resolve()):
            raise ValueError(
                f"expected a folder to work in outside of the input's, {source.directory}, got "
                f"{directory}"
            )
        self._config = config
        self._source = source
        self._vocab_file = vocab_file
        self._done = Done(self._directory / "done")
        self._progress = progress
        self._scope = scope

    def create(self) -> str:
        """Makes the pointer's records (section 4.1).

        Returns:
            For each split, what became of its questions and where their answers stand.

        Raises:
            FileNotFoundError, ValueError: as the source's reader, and if "train" or "dev" is empty.
        """
        task = pointing_task(TASKS[self._source.task], self._config.inputs)
        features = pointing_features(self._config.point.max_seq_length)

        def make(name: str) -> str:
            places = Places()
            pairs = (
                restrict_pair(linked, question, self._config.inputs.evidence)
                for linked, question in places.watch(self._source.read(name))
            )
            report = write_split(
                self._directory / "point_data", name, task, features, pairs, self._progress
            )
            write_json(self._places_file(name), places.of_question)
            return f"{report}\n{places}"

        made_of = self._created_of()
        return self._make_records("point_data", self._source.task, features, made_of, make)

    def point(self, init_checkpoint: str | None = None) -> str:
        """Trains the pointer, from an encoder's weights, and exports it (section 4.1).

        Raises:
            FileNotFoundError: if there are no records yet.
            ValueError: as `train_run`, and if the folder has a run of other records or weights.
        """
        return self._train("point", self._config.point, POINTER, init_checkpoint)

    def read(self, init_checkpoint: str | None = None) -> str:
        """Trains the reader on cells that the exported pointer ranks, and exports it (4.2).

        Raises:
            FileNotFoundError: if there is no pointer yet.
            ValueError: as `point`, and if the input has changed since its records were made.
        """
        config = self._config.read
        features = FeatureConfig(
            max_seq_length=config.max_seq_length, trim_cells=True, label_answer_spans=True
        )
        pointed = self._trained_of("point", self._config.point)
        pointer = functools.cache(
            lambda: load_pointer(self._directory / MODEL, num_alternatives=_RANKED - 1)
        )

        def make(name: str) -> str:
            self._records_of(name)
            places = read_json(self._places_file(name))
            pairs = (pair for pair in self._source.read(name) if _is_readable(pair, places))
            cells = reading_cells(pointer().point_all(pairs))
            report = write_split(
                self._directory / "read_data",
                name,
                TASKS["JSONL"],
                features,
                cells,
                self._progress,
                config.task.max_span_length,
            )
            unread = Counter(place for place in places.values() if place not in _READABLE)
            left = [f"\n  not read: {count} {place}" for place, count in unread.items()]
            return "".join([report, *left])

        created = self._created_of()
        made_of = {
            name: {
                "input": created[name],
                "pointer": pointed,
                "features": dataclasses.asdict(features),
            }
            for name in SPLITS
        }
        report = self._make_records("read_data", "JSONL", features, made_of, make)
        return f"{report}\n{self._train('read', config, READER, init_checkpoint)}"

    def evaluate(self, name: str) -> str:
        """Answers a split with the exported models, and scores the answers.

        Writes answers/{name}.json for the official evaluation, {name}.jsonl with cells and scores,
        and {name}.md, which it returns.

        Raises:
            FileNotFoundError: if a stage before it is not done.
            ValueError: if the input has changed since its records were made, or a model was
                trained with another config.
        """
        made_of = [
            self._records_of(name),
            self._trained_of("point", self._config.point),
            self._trained_of("read", self._config.read),
        ]
        folder = self._directory / "answers"

        def make() -> str:
            pairs = list(read_questions(self._directory / "point_data", name))
            answered = load_pointr(self._directory / MODEL).answer_all(self._source.read(name))
            predictions = {
                question.question_id: Answer.of(answer)
                for _, question, answer in self._progress(answered, f"answers {name}")
            }
            folder.mkdir(exist_ok=True)
            write_predictions(folder / f"{name}.jsonl", predictions.items())
            texts = {id_: prediction.text for id_, prediction in predictions.items()}
            write_official(folder / f"{name}.json", texts)
            report = answers_report(
                name,
                predictions,
                pairs,
                self._source.task,
                self._source.directory,
                self._source.splits[name],
                read_json(self._places_file(name)),
            )
            with complete_text_file(folder / f"{name}.md") as file:
                file.write(report)
            return report

        return self._done.once(f"answers_{name}", made_of, make, folder / f"{name}.md")

    def _created_of(self) -> dict[str, Any]:
        """What the pointer's records of each split are made of."""
        shared = {
            "source": [self._source.task, self._source.directory, self._source.state()],
            "inputs": dataclasses.asdict(self._config.inputs),
            "max_seq_length": self._config.point.max_seq_length,
            "vocabulary": file_sha256(self._vocab_file),
        }
        return {name: shared | {"split": split} for name, split in self._source.splits.items()}

    def _records_of(self, name: str) -> Any:
        """What a split's records are made of; ValueError if the input has changed."""
        made_of = self._done.made_of(f"point_data_{name}", "create")
        if made_of != as_read(self._created_of()[name]):
            raise ValueError(
                f"expected records in {self._directory} that are made of the input as it is, got "
                f"others (split '{name}'); run the stage 'create', and train in another folder"
            )
        return made_of

    def _trained_of(self, stage: str, config: FinetuningConfig) -> Any:
        """What a model was trained with; ValueError if it was another config."""
        made_of = self._done.made_of(stage, stage)
        if different := differences(made_of["config"], as_read(dataclasses.asdict(config))):
            raise ValueError(
                f"expected the config that the stage '{stage}' in {self._directory} was trained "
                f"with, got another: {', '.join(different)}"
            )
        return made_of

    def _places_file(self, name: str) -> pathlib.Path:
        return self._directory / "point_data" / f"{name}_places.json"

    def _make_records(
        self,
        folder: str,
        task: str,
        features: FeatureConfig,
        made_of: Mapping[str, Any],
        make: Callable[[str], str],
    ) -> str:
        """Makes the splits of a folder of records that are missing; says what is in each."""
        directory = self._directory / folder
        missing = [
            name
            for name in made_of
            if not self._done.has(f"{folder}_{name}", made_of[name], directory / f"{name}.tfrecord")
        ]
        if missing:
            prepare_records(directory, task, features, self._vocab_file, missing)
        return "\n".join(
            self._done.once(
                f"{folder}_{name}",
                made_of[name],
                functools.partial(make, name),
                directory / f"{name}.tfrecord",
            )
            for name in made_of
        )

    def _train(
        self, stage: str, config: FinetuningConfig, exported: str, init_checkpoint: str | None
    ) -> str:
        """Trains on a stage's records and exports the best weights."""
        data = self._directory / f"{stage}_data"
        self._done.made_of(f"{data.name}_train", "create" if stage == "point" else stage)
        run, model = self._directory / stage, self._directory / MODEL / exported
        made_of = {
            "config": dataclasses.asdict(config),
            "records": [[file.name, file.sha256] for file in data_files(data, list(SPLITS))],
            "init_checkpoint": init_checkpoint,
        }

        def make() -> str:
            _check_same_start(run, init_checkpoint)
            with self._scope():
                options = {"reset_heads": True} if init_checkpoint else {}
                train_run(config, data, run, init_checkpoint, **options)
            stored = run_model(run, max_seq_length=config.max_seq_length)
            export_stored(stored, model)
            if exported == POINTER:
                save_inputs(self._directory / MODEL, self._config.inputs)
            return f"{stage}: exported the weights of step {stored.step} of {config.num_steps}"

        return self._done.once(stage, made_of, make, model / "saved_model.pb")


def _is_readable(pair: tuple[LinkedTable, Question], places: Mapping[str, str]) -> bool:
    return places[pair[1].question_id] in _READABLE


def _check_same_start(run: pathlib.Path, init_checkpoint: str | None) -> None:
    """ValueError if a run that is to go on began with other weights."""
    if not (run / INPUTS_FILE).is_file():
        return
    there = load_inputs(run)
    if not there.began_with(init_checkpoint):
        raise ValueError(
            f"expected {there.init_checkpoint} as the weights that the run in {run} began with, "
            f"got {init_checkpoint}; choose another folder"
        )
