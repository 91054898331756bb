"""The stages of a PointR: from tables with passages to two trained models and their answers.

Each stage writes to a folder of its own. A training that was interrupted goes on when its stage is
run again; records and answers are then made again.
"""

import contextlib
import dataclasses
import json
import os
import pathlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, get_args

from mate_tf.answers.answer import Answer
from mate_tf.datasets.supervision import supervise_linked
from mate_tf.datasets.tasks import TASKS, Task, read_split
from mate_tf.evaluation.official import Official, read_official, write_official
from mate_tf.evaluation.predictions import write_predictions
from mate_tf.evaluation.scoring import score
from mate_tf.features.builder import FeatureBuilder
from mate_tf.features.config import FeatureConfig
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.pointr.answering import (
    POINTER,
    READER,
    PointRConfig,
    gold_cells,
    load_pointer,
    load_pointr,
    reading_cells,
    restrict,
    restrict_pair,
    save_inputs,
)
from mate_tf.pointr.clozes import cloze_cells
from mate_tf.reading.text_files import complete_text_file, read_json
from mate_tf.records.conversion import Summary, convert_all
from mate_tf.records.conversion_file import conversion_of
from mate_tf.records.splits import prepare_folder, read_questions, split_writer
from mate_tf.serving.export import export_stored
from mate_tf.serving.stored import run_model
from mate_tf.tables.linked_table import LinkedTable
from mate_tf.tables.table import Question, Table
from mate_tf.training.config import FinetuningConfig, SpanReadingTrainingConfig
from mate_tf.training.examples import SPLITS
from mate_tf.training.run import train_run

MODEL = "model"  # the folder of both exported models
_RANKED = 10  # cells, for each question that the reader learns from
_READABLE = ("in table", "in passage")
Location = Literal["in table", "in passage", "missing", "not given"]
# Wraps what takes long, with a name, as tqdm does.
Progress = Callable[[Iterable[Any], str], Iterable[Any]]


@dataclasses.dataclass(frozen=True)
class Source:
    """The questions of a data set of tables with passages, in its folder."""

    task: str  # the name of its reader
    directory: str
    splits: Mapping[str, str]  # its names for "train" and "dev", and for others to answer

    def read(self, name: str) -> Iterator[tuple[LinkedTable, Question]]:
        """The questions of a split, by our name for it; errors as the task's reader."""
        return read_split(self.task, self.directory, self.splits[name])


@dataclasses.dataclass
class Pipeline:
    """The stages, in a folder outside of the input's (Eisenschlos et al., 2021, section 4)."""

    config: PointRConfig
    source: Source
    vocab_file: str | os.PathLike[str]  # BERT's or TAPAS's, for both stages
    directory: pathlib.Path
    progress: Progress = lambda items, _: items
    scope: Callable[[], contextlib.AbstractContextManager] = contextlib.nullcontext  # of a strategy

    def __post_init__(self) -> None:
        self.directory, source = pathlib.Path(self.directory), self.source.directory
        if self.directory.resolve().is_relative_to(pathlib.Path(source).resolve()):
            raise ValueError(
                f"expected a folder to work in outside of the input's, {source}, got "
                f"{self.directory}"
            )

    def create(self) -> str:
        """Makes the pointer's records (section 4.1); says what became of each split's questions.

        Errors are those of the source's reader, and a ValueError if "train" or "dev" is empty.
        """
        inputs = self.config.inputs
        task = TASKS[self.source.task]._replace(supervise=supervise_linked, expand=inputs.expand)
        length = self.config.point.max_seq_length
        features = FeatureConfig(max_seq_length=length, trim_cells=True, drop_rows_to_fit=True)
        names = list(self.source.splits)
        write = self._writer("point", self.source.task, task, features, names)
        reports = []
        locations: dict[str, Location] = {}

        def restricted(name: str) -> Iterator[tuple[LinkedTable, Question]]:
            for linked, question in self.source.read(name):
                locations[question.question_id] = answer_location(linked, question)
                yield restrict_pair(linked, question, inputs.evidence)

        for name in names:
            locations.clear()
            reports.append(write(name, restricted(name)))
            with complete_text_file(self._locations_file(name)) as file:
                json.dump(locations, file)
            counts = Counter(locations.values()).most_common()
            reports.append(f"  answers: {', '.join(f'{n} {location}' for location, n in counts)}")
        return "\n".join(reports)

    def _writer(
        self,
        stage: str,
        task_name: str,
        task: Task,
        features: FeatureConfig,
        names: Sequence[str],
        max_answer_length: int | None = None,
    ) -> Callable[[str, Iterable[tuple[Any, Question]]], str]:
        """Prepares the folder of a stage for splits with the names.

        Returns a function that writes a split's records and questions, and says what became of
        them. An answer that can be read has at most so many tokens; None for no limit. ValueError
        if "train" or "dev" is empty.
        """
        folder = self.directory / f"{stage}_data"
        conversion = conversion_of(task_name, features, self.vocab_file, None)
        prepare_folder(folder, conversion, names, self.vocab_file)
        builder = FeatureBuilder(Wordpiece(folder / "vocab.txt"), features)

        def write_split(name: str, pairs: Iterable[tuple[Any, Question]]) -> str:
            outcomes = convert_all(task, builder, pairs, is_training=name == "train")
            summary, num_long = Summary(), 0
            with split_writer(str(folder), name) as write:
                for outcome in self.progress(outcomes, f"{folder.name} {name}"):
                    summary.add(outcome)
                    if max_answer_length is not None and outcome.features is not None:
                        num_long += int(outcome.features["label_ids"].sum()) > max_answer_length
                    write(outcome)
            if name in ("train", "dev") and not summary.num_kept:
                raise ValueError(f"expected examples in the split '{name}', got none: {summary}")
            report = f"{name}: {summary}\n  whole within {features.max_seq_length} tokens: "
            report += f"{summary.counts['whole']} of {summary.num_sized}"
            return f"{report}\n  answers too long to be read: {num_long}" if num_long else report

        return write_split

    def point(self, init_checkpoint: str | None = None) -> str:
        """Trains the pointer, from an encoder's weights, and exports it (section 4.1).

        FileNotFoundError if there are no records yet; ValueError as of `train_run`.
        """
        self._read_locations("train")
        self._train(POINTER, self.config.point, init_checkpoint)
        report = self._export(POINTER, self.config.point)
        save_inputs(self.directory / MODEL, self.config.inputs)
        return report

    def clozes(self, init_checkpoint: str | None = None) -> str:
        """Trains the reader on sentences of passages without a name or a number (`cloze_cells`).

        Nothing if the config has none of it; ValueError as of `train_run`.
        """
        config = self.config.clozes
        if config is None:
            return "clozes: none in this config"
        write, reports = self._cells_writer("clozes", config), []
        for name in SPLITS:
            tables = {linked.table.table_id: linked for linked, _ in self.source.read(name)}
            reports.append(write(name, cloze_cells(tables.values())))
        self._train("clozes", config, init_checkpoint)
        return "\n".join(reports)

    def read(self, init_checkpoint: str | None = None) -> str:
        """Trains the reader on cells that the exported pointer ranks, and exports it (4.2).

        It starts from what it learned of clozes, if the config has them, or else from weights.
        FileNotFoundError if there is no pointer, or no such run, yet; ValueError as of `point`.
        """
        self._check_exported(POINTER)
        config = self.config.read
        is_first = self.config.clozes is None
        if not is_first:
            init_checkpoint = str(self.directory / "clozes")
            _check_done("clozes", self.directory / "clozes" / "checkpoint")
        with self.scope():
            pointer = load_pointer(self.directory / MODEL, num_alternatives=_RANKED - 1)
        write, reports = self._cells_writer("read", config), []
        for name in SPLITS:
            locations = self._read_locations(name)
            pairs = (
                one for one in self.source.read(name) if locations[one[1].question_id] in _READABLE
            )
            reports.append(write(name, reading_cells(pointer.point_all(pairs))))
            unread = Counter(it for it in locations.values() if it not in _READABLE)
            reports += [f"  not read: {count} {location}" for location, count in unread.items()]
        self._train(READER, config, init_checkpoint, reset_heads=is_first)
        return "\n".join([*reports, self._export(READER, config)])

    def _cells_writer(
        self, stage: str, config: SpanReadingTrainingConfig
    ) -> Callable[[str, Iterable[tuple[Any, Question]]], str]:
        """A function that writes a split's cells with passages, as the reader sees them."""
        length, longest = config.max_seq_length, config.task.max_span_length
        features = FeatureConfig(max_seq_length=length, trim_cells=True, label_answer_spans=True)
        return self._writer(stage, "JSONL", TASKS["JSONL"], features, SPLITS, longest)

    def evaluate(self, name: str) -> str:
        """Answers a split with the exported models, and scores the answers.

        Writes answers/{name}.json for the official evaluation, {name}.jsonl with cells and scores,
        and {name}.md, which it returns.
        """
        locations = self._read_locations(name)
        self._check_exported(POINTER)
        self._check_exported(READER)
        folder = self.directory / "answers"
        pairs = list(read_questions(self.directory / "point_data", name))
        with self.scope():
            pointr = load_pointr(self.directory / MODEL)
        answered = pointr.answer_all(self.source.read(name))
        predictions = {
            question.question_id: Answer.of(answer)
            for _, question, answer in self.progress(answered, f"answers {name}")
        }
        folder.mkdir(exist_ok=True)
        write_predictions(folder / f"{name}.jsonl", predictions.items())
        write_official("HYBRIDQA", folder / f"{name}.json", predictions)
        report = answers_report(name, predictions, pairs, self.source, locations)
        with complete_text_file(folder / f"{name}.md") as file:
            file.write(report)
        return report

    def _locations_file(self, name: str) -> pathlib.Path:
        return self.directory / "point_data" / f"{name}_places.json"

    def _read_locations(self, name: str) -> Mapping[str, Any]:
        """Where the answers of a split stand, which the stage "create" has found."""
        _check_done("create", self._locations_file(name))
        return read_json(self._locations_file(name))

    def _check_exported(self, stage: str) -> None:
        _check_done(stage, self.directory / MODEL / stage / "saved_model.pb")

    def _train(
        self,
        stage: str,
        config: FinetuningConfig,
        init_checkpoint: str | None,
        reset_heads: bool = True,
    ) -> None:
        """Trains on a stage's records; weights to start from get a new head, by default."""
        options: Any = {"reset_heads": reset_heads} if init_checkpoint else {}
        with self.scope():
            run = self.directory / stage
            train_run(config, self.directory / f"{stage}_data", run, init_checkpoint, **options)

    def _export(self, stage: str, config: FinetuningConfig) -> str:
        stored = run_model(self.directory / stage, max_seq_length=config.max_seq_length)
        export_stored(stored, self.directory / MODEL / stage)
        return f"{stage}: exported the weights of step {stored.step} of {config.num_steps}"


def _check_done(stage: str, output: pathlib.Path) -> None:
    """FileNotFoundError where a stage has not left its output."""
    if not output.is_file():
        raise FileNotFoundError(
            f"expected the stage '{stage}' to be done, found no {output}; run that stage first"
        )


def answer_location(linked: LinkedTable, question: Question) -> Location:
    """Where an answer stands: in a cell's own text, or otherwise in a passage of a cell."""
    if not question.answers:
        return "not given"
    question = dataclasses.replace(question, answer_coordinates=())
    if gold_cells(restrict(linked, "table"), question):
        return "in table"
    return "in passage" if gold_cells(linked, question) else "missing"


def answers_report(
    name: str,
    predictions: Mapping[str, Answer],
    pairs: Sequence[tuple[Table, Question]],
    source: Source,
    locations: Mapping[str, str],
) -> str:
    """A report on a split's answers, one for each question by its id, in Markdown.

    Exact match and F1 are those of the official definition, in total and for answers in the table
    and in passages, as HybridQA's reference says, or else `locations`. Questions without a gold
    answer are not scored. The pairs have the pointer's tables and the cells that hold the answers.
    """
    scored = [(table, question) for table, question in pairs if question.answers]
    counts = {
        "questions": len(pairs),
        "without a gold answer": len(pairs) - len(scored),
        "not accepted": sum(bool(prediction.error) for prediction in predictions.values()),
        "not answered": sum(not p.answered and not p.error for p in predictions.values()),
        "asked with rows dropped": sum(p.rows_dropped > 0 for p in predictions.values()),
    }
    lines = [f"# {name}\n\n| | |\n|---|---|\n"]
    lines += [f"| {what} | {count} |\n" for what, count in counts.items()]
    if not scored:
        return "".join(lines)
    ids = {
        part.replace(" ", "_"): frozenset(id_ for id_ in locations if locations[id_] == part)
        for part in get_args(Location)
    }
    official = Official(parts={part: questions for part, questions in ids.items() if questions})
    if source.task == "HYBRIDQA":
        with contextlib.suppress(FileNotFoundError):  # the release's reference
            official = read_official(source.task, source.directory, source.splits[name], scored)
    asked = {question.question_id: predictions[question.question_id] for _, question in scored}
    scores = score(source.task, asked, scored, official)
    lines += [f"| {what.replace('_', ' ')} | {value:.2%} |\n" for what, value in scores.items()]
    return "".join(lines)
