"""What a data set's release has for scores, and its formats for answers."""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mate_tf.answers.answer import Answer
from mate_tf.datasets.hybridqa import read_hybridqa_reference
from mate_tf.datasets.sqa import split_question_id
from mate_tf.datasets.tabfact import read_table_ids
from mate_tf.evaluation import hybridqa, wtq
from mate_tf.tables.table import Coordinates, Question, Table
from mate_tf.tables.text_files import complete_text_file

PARTS = ("simple", "complex", "small")


def read_parts(
    directory: str | Path, pairs: Iterable[tuple[Table, Question]]
) -> dict[str, frozenset[str]]:
    """The ids of statements in each part of TabFact's test split (Chen et al., 2020).

    Args:
        directory: the release, with `data/simple_test_id.json` or others of the lists.
        pairs: statements with their tables.

    Raises:
        FileNotFoundError: if there is no list.
        ValueError: if one is not a list of texts, or no statement is in any part.
    """
    files = {part: Path(directory) / "data" / f"{part}_test_id.json" for part in PARTS}
    lists = {part: set(read_table_ids(file)) for part, file in files.items() if file.exists()}
    if not lists:
        raise FileNotFoundError(f"expected {', '.join(map(str, files.values()))}; found none")
    table_ids = {  # as the release names tables, or the original one
        question.question_id: table.table_id.removeprefix("table_csv/") for table, question in pairs
    }
    parts = {
        part: frozenset(id_ for id_, table_id in table_ids.items() if table_id in of_part)
        for part, of_part in lists.items()
    }
    if not any(parts.values()):
        raise ValueError(
            f"expected statements about tables of the test split, got {len(table_ids)} about "
            f"others ('{directory}')"
        )
    return {part: ids for part, ids in parts.items() if ids}


_Pairs = Iterable[tuple[Table, Question]]


@dataclass(frozen=True)
class Official:
    """What the release's own files say of a split's questions.

    Attributes:
        golds: gold answers by question id, which replace the questions' own.
        parts: the ids of questions in parts that are scored separately, by the parts' names.
    """

    golds: Mapping[str, tuple[str | wtq.Denotation, ...]] = field(default_factory=dict)
    parts: Mapping[str, frozenset[str]] = field(default_factory=dict)


def read_official(task: str, directory: str | Path, split: str, pairs: _Pairs) -> Official:
    """Reads what the release has for scores beyond the questions.

    Args:
        task: WTQ, for the numbers and dates of gold answers in `tagged/data`; TABFACT, for the
            simple, complex and small parts of its test split; or HYBRIDQA, for which answers stand
            in the table and which in a passage.
        directory: the release, as its reader takes it.
        split: "dev", "train" or "test".
        pairs: the questions with their tables.

    Raises:
        FileNotFoundError: if the files are missing.
        ValueError: if they are not as in the release, lack a question, or the task has none.
    """
    if task not in _READERS:
        raise ValueError(
            f"expected a task with official files for its scores, one of {list(_READERS)}, got "
            f"{task}"
        )
    return _READERS[task](Path(directory), split, list(pairs))


def write_official(task: str, path: str | Path, predictions: Mapping[str, Answer]) -> None:
    """Writes answers in the format of the release's evaluation.

    Args:
        task: WTQ (tab-separated id and items), SQA (tab-separated, with cells) or HYBRIDQA (a JSON
            list).
        path: the file.
        predictions: the answers by question id; one that was not given is written as empty.

    Raises:
        ValueError: if the task has no format, or an id does not suit it.
    """
    _check_has_format(task)
    _WRITERS[task](path, predictions)


def check_official_format(task: str, question_ids: Iterable[str]) -> None:
    """ValueError where a task has no official format for answers to these questions."""
    _check_has_format(task)
    _WRITERS[task](os.devnull, {id_: Answer() for id_ in question_ids})


def write_sqa_cells(path: str | Path, cells: Mapping[str, Coordinates]) -> None:
    """Writes cells by question id for SQA's evaluation, separated by tabs.

    Raises:
        ValueError: if an id does not name sequence, annotator and position.
    """
    lines = ["id\tannotator\tposition\tanswer_coordinates"]
    for question_id, coordinates in cells.items():
        sequence, position = split_question_id(question_id)
        id_, separator, annotator = sequence.rpartition("-")
        if not separator:
            raise ValueError(f"expected an id such as 'nt-639-0_1', got '{question_id}'")
        lines.append(f"{id_}\t{annotator}\t{position}\t{[str(cell) for cell in coordinates]}")
    with complete_text_file(path) as file:
        file.write("\n".join(lines) + "\n")


def _check_has_format(task: str) -> None:
    if task not in _WRITERS:
        raise ValueError(
            f"expected a task with an official format for answers, one of {list(_WRITERS)}, got "
            f"{task}"
        )


def _read_wtq(directory: Path, split: str, pairs: list[tuple[Table, Question]]) -> Official:
    folder = directory / "tagged" / "data"
    files = sorted(folder.glob("*.tagged"))
    if not files:
        raise FileNotFoundError(f"expected .tagged files in {folder}, found none")
    golds = {id_: tuple(gold) for file in files for id_, gold in wtq.read_golds(file).items()}
    return Official({id_: golds[name] for id_, name in _names(pairs, golds, folder)})


def _read_tabfact(directory: Path, split: str, pairs: list[tuple[Table, Question]]) -> Official:
    return Official(parts=read_parts(directory, pairs))


def _read_hybridqa(directory: Path, split: str, pairs: list[tuple[Table, Question]]) -> Official:
    reference = read_hybridqa_reference(directory, split)
    names = _names(pairs, reference.answers, directory)
    return Official(
        {id_: (reference.answers[name],) for id_, name in names},
        {
            "in_table": frozenset(id_ for id_, name in names if name in reference.in_table),
            "in_passage": frozenset(id_ for id_, name in names if name in reference.in_passage),
        },
    )


def _names(
    pairs: list[tuple[Table, Question]], known: Mapping[str, object], where: Path
) -> list[tuple[str, str]]:
    """Each question's id, and its name in the release."""
    names = [(question.question_id, _release_id(question.question_id)) for _, question in pairs]
    if unknown := [id_ for id_, name in names if name not in known]:
        raise ValueError(
            f"expected the gold answers of {len(names)} questions, got none for {len(unknown)} of "
            f"them, the first '{unknown[0]}' ('{where}')"
        )
    return names


def _release_id(question_id: str) -> str:
    """The id without the ending that the TAPAS release adds."""
    return question_id.removesuffix("-0_0")


def _write_wtq(path: str | Path, predictions: Mapping[str, Answer]) -> None:
    wtq.write_predictions(path, {_release_id(id_): p.items for id_, p in predictions.items()})


def _write_sqa(path: str | Path, predictions: Mapping[str, Answer]) -> None:
    write_sqa_cells(path, {id_: p.coordinates for id_, p in predictions.items()})


def _write_hybridqa(path: str | Path, predictions: Mapping[str, Answer]) -> None:
    hybridqa.write_official(path, {_release_id(id_): p.text for id_, p in predictions.items()})


_READERS: Mapping[str, Callable[[Path, str, list[tuple[Table, Question]]], Official]] = {
    "WTQ": _read_wtq,
    "TABFACT": _read_tabfact,
    "HYBRIDQA": _read_hybridqa,
}
_WRITERS: Mapping[str, Callable[[str | Path, Mapping[str, Answer]], None]] = {
    "WTQ": _write_wtq,
    "SQA": _write_sqa,
    "HYBRIDQA": _write_hybridqa,
}
