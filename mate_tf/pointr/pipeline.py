"""The stages of a PointR: from tables with passages to two trained models and their answers.

Each stage leaves what it made in a folder of its own, so that one that was interrupted goes on and
one that is done is not done again.
"""

import dataclasses
import json
import pathlib
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from mate_tf.evaluation.hybridqa import write_official
from mate_tf.evaluation.near_misses import Judged, error_report
from mate_tf.evaluation.official import Official, read_official
from mate_tf.evaluation.prediction_file import write_predictions
from mate_tf.evaluation.predictions import Prediction, prediction_of
from mate_tf.evaluation.scoring import score
from mate_tf.pointr.answering import POINTER, READER, load_pointer, load_pointr, save_inputs
from mate_tf.pointr.config import PointRConfig
from mate_tf.pointr.inputs import pointing_task, restrict_pair
from mate_tf.pointr.places import Places
from mate_tf.pointr.reading_data import reading_cells
from mate_tf.tables.conversion import Summary, convert_all
from mate_tf.tables.conversion_file import conversion_of
from mate_tf.tables.datasets.tasks import TASKS, Task, read_split
from mate_tf.tables.feature_config import FeatureConfig
from mate_tf.tables.features import FeatureBuilder
from mate_tf.tables.linked_table import LinkedTable
from mate_tf.tables.records import complete_file
from mate_tf.tables.splits import prepare_folder, read_questions, split_writer
from mate_tf.tables.table import Question, Table
from mate_tf.tables.text_files import complete_text_file, read_json
from mate_tf.tables.wordpiece import Wordpiece
from mate_tf.training.config import FinetuningConfig
from mate_tf.training.examples import SPLITS
from mate_tf.training.exporting import export_run
from mate_tf.training.run import train_run

MODEL = "model"  # the folder of both exported models
_MADE_OF = "made_of.json"
_RANKED = 10  # cells, of a training question

Item = TypeVar("Item")
Progress = Callable[[Iterable[Item], str], Iterable[Item]]


@dataclasses.dataclass(frozen=True)
class Source:
    """The questions of a data set.

    Attributes:
        task: the name of its reader, of tables with passages.
        directory: its folder.
        splits: what it calls the splits "train" and "dev", and others that are answered.
    """

    task: str
    directory: str
    splits: Mapping[str, str]

    def read(self, name: str) -> Iterator[tuple[LinkedTable, Question]]:
        """The questions of a split, by our name for it."""
        return read_split(self.task, self.directory, self.splits[name])


class Pipeline:
    """The stages, in a folder.

    Args:
        config: of both trainings, and what the pointer sees.
        source: the questions.
        vocab_file: BERT's or TAPAS's vocabulary, of both stages.
        directory: the folder.
        progress: wraps what takes long, with a name, as tqdm does.
    """

    def __init__(
        self,
        config: PointRConfig,
        source: Source,
        vocab_file: str,
        directory: str | pathlib.Path,
        progress: Progress = lambda items, _: items,
    ) -> None:
        self._config = config
        self._source = source
        self._vocab_file = vocab_file
        self._directory = pathlib.Path(directory)
        self._progress = progress

    def create(self) -> str:
        """Makes the pointer's records; says what became of the questions, and where answers are."""
        config = self._config
        features = FeatureConfig(
            max_seq_length=config.point.max_seq_length, trim_cells=True, drop_rows_to_fit=True
        )
        made_of = {
            "source": dataclasses.asdict(self._source),
            "inputs": dataclasses.asdict(config.inputs),
            "features": dataclasses.asdict(features),
        }

        def make() -> str:
            task = pointing_task(TASKS[self._source.task], config.inputs)
            places = {name: Places() for name in self._source.splits}
            splits = {
                name: (task, self._known(places[name].watch(self._source.read(name))))
                for name in self._source.splits
            }
            report = self._write_records("point_data", self._source.task, features, splits)
            for name in places:
                report[name] += f"\n{places[name]}"
                self._write_json(f"point_data/{name}_places.json", places[name].of_question)
            return "\n".join(report.values())

        return self._once("create", made_of, make)

    def point(self, init_checkpoint: str | None = None) -> str:
        """Trains the pointer, from an encoder's weights, and exports it."""
        report = self._train("point", self._config.point, POINTER, init_checkpoint)
        save_inputs(self._directory / MODEL, self._config.inputs)
        return report

    def read(self, init_checkpoint: str | None = None) -> str:
        """Trains the reader on cells that the exported pointer ranks, and exports it."""
        config = self._config
        features = FeatureConfig(
            max_seq_length=config.read.max_seq_length, trim_cells=True, label_answer_spans=True
        )
        made_of = {
            "source": dataclasses.asdict(self._source),
            "inputs": dataclasses.asdict(config.inputs),
            "pointer": dataclasses.asdict(config.point),
            "features": dataclasses.asdict(features),
        }

        def make() -> str:
            pointer = load_pointer(self._directory / MODEL, num_alternatives=_RANKED - 1)
            splits = {
                name: (TASKS["JSONL"], reading_cells(pointer.point_all(self._source.read(name))))
                for name in SPLITS
            }
            return "\n".join(self._write_records("read_data", "JSONL", features, splits).values())

        report = self._once("read_data", made_of, make)
        return f"{report}\n{self._train('read', config.read, READER, init_checkpoint)}"

    def evaluate(self, name: str) -> str:
        """Answers a split and scores the answers.

        Writes answers/{name}.json, .jsonl and .md; the last is what it returns.
        """
        pairs = list(read_questions(self._directory / "point_data", name))
        pointr = load_pointr(self._directory / MODEL)
        answered = pointr.answer_all(self._source.read(name))
        predictions = {
            question.question_id: prediction_of(question.question_id, answer)
            for _, question, answer in self._progress(answered, f"answers {name}")
        }
        folder = self._directory / "answers"
        folder.mkdir(exist_ok=True)
        write_predictions(folder / f"{name}.jsonl", predictions.values())
        write_official(
            folder / f"{name}.json", {id_: answer.text for id_, answer in predictions.items()}
        )
        report = self._report(name, predictions, pairs)
        with complete_text_file(folder / f"{name}.md") as file:
            file.write(report)
        return report

    def _known(
        self, pairs: Iterable[tuple[LinkedTable, Question]]
    ) -> Iterator[tuple[LinkedTable, Question]]:
        for linked, question in pairs:
            yield restrict_pair(linked, question, self._config.inputs.evidence)

    def _report(
        self,
        name: str,
        predictions: Mapping[str, Prediction],
        pairs: list[tuple[Table, Question]],
    ) -> str:
        """The scores of answers, and what is wrong with the wrong ones, in Markdown."""
        errors = [prediction for prediction in predictions.values() if prediction.error]
        lines = [f"# {name}\n\n| | |\n|---|---|\n| questions | {len(predictions)} |\n"]
        lines.append(f"| not accepted | {len(errors)} |\n")
        dropped = sum(prediction.rows_dropped > 0 for prediction in predictions.values())
        lines.append(f"| asked with rows dropped | {dropped} |\n")
        if not all(question.answers for _, question in pairs):
            return "".join(lines)  # hidden answers
        scores = score(self._source.task, predictions, pairs, self._official(name, pairs))
        lines += [f"| {key.replace('_', ' ')} | {value:.2%} |\n" for key, value in scores.items()]
        judged = (
            Judged(
                question.text,
                question.answers[0],
                predictions[question.question_id].text,
                bool({*predictions[question.question_id].cells} & {*question.answer_coordinates}),
            )
            for _, question in pairs
        )
        return "".join([*lines, "\n", error_report(judged)])

    def _official(self, name: str, pairs: list[tuple[Table, Question]]) -> Official:
        """In which part a question is: as the release says, or else as its answer was found."""
        source = self._source
        try:
            return read_official(source.task, source.directory, source.splits[name], pairs)
        except (FileNotFoundError, ValueError):
            places = read_json(self._directory / "point_data" / f"{name}_places.json")
        return Official(
            parts={
                part.replace(" ", "_"): frozenset(id_ for id_ in places if places[id_] == part)
                for part in ("in table", "in passage", "missing")
                if part in places.values()
            }
        )

    def _write_records(
        self,
        folder: str,
        task_name: str,
        features: FeatureConfig,
        splits: Mapping[str, tuple[Task, Iterable[tuple[Any, Question]]]],
    ) -> dict[str, str]:
        """Writes records and questions; says of each split what became of them."""
        directory = self._directory / folder
        conversion = conversion_of(task_name, features, self._vocab_file, None)
        prepare_folder(directory, conversion, list(splits))
        with complete_file(directory / "vocab.txt") as unfinished:
            shutil.copyfile(self._vocab_file, unfinished)
        builder = FeatureBuilder(Wordpiece(self._vocab_file), features)
        report = {}
        for name, (task, pairs) in splits.items():
            outcomes = convert_all(task, builder, pairs, is_training=name == "train")
            summary = Summary()
            with split_writer(str(directory), name) as write:
                for outcome in self._progress(outcomes, f"{folder} {name}"):
                    summary.add(outcome)
                    write(outcome)
            if not summary.num_kept:
                raise ValueError(f"expected examples in the split '{name}', got none: {summary}")
            report[name] = f"{name}: {summary}"
        return report

    def _train(
        self, stage: str, config: FinetuningConfig, exported: str, init_checkpoint: str | None
    ) -> str:
        """Trains on a stage's records and exports the best weights."""
        made_of = {
            "config": dataclasses.asdict(config),
            "made of": read_json(self._directory / f"{stage}_data" / "conversion.json"),
            "init_checkpoint": init_checkpoint,
        }

        def make() -> str:
            run = self._directory / stage
            options = {"reset_heads": True} if init_checkpoint else {}
            data = self._directory / f"{stage}_data"
            train_run(config, data, run, init_checkpoint, **options)
            step = export_run(run, self._directory / MODEL / exported, config.max_seq_length)
            return f"{stage}: exported the weights of step {step} of {config.num_steps}"

        return self._once(stage, made_of, make)

    def _once(self, what: str, made_of: dict[str, Any], make: Callable[[], str]) -> str:
        """What `make` reports; if it was done of the same already, what it reported then."""
        path = self._directory / "done" / f"{what}.json"
        made_of = json.loads(json.dumps(made_of))  # as it is read
        if path.is_file():
            done = read_json(path)
            if done["made_of"] == made_of:
                return done["report"]
        path.unlink(missing_ok=True)
        report = make()
        self._write_json(f"done/{what}.json", {"made_of": made_of, "report": report})
        return report

    def _write_json(self, name: str, content: Any) -> None:
        path = self._directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with complete_text_file(path) as file:
            file.write(json.dumps(content, indent=1) + "\n")
