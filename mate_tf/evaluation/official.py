"""A release's own data for scores, and its formats for answers."""

import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mate_tf.answers.answer import Answer
from mate_tf.datasets.hybridqa import read_hybridqa_reference
from mate_tf.datasets.tabfact import read_table_ids
from mate_tf.datasets.wtq import read_wtq_tsv, split_list, split_question_id
from mate_tf.features.english import normalize_denotation
from mate_tf.reading.text_files import complete_text_file
from mate_tf.tables.table import Question, Table

PARTS = ("simple", "complex", "small")
_TOLERANCE = 1e-6
_Pairs = Iterable[tuple[Table, Question]]


@dataclass(frozen=True)
class Denotation:
    """One item of an answer: its normalised text and, where it is one, its number or date.

    A date is (year, month, day), with None for what is unknown.
    """

    text: str  # as `normalize_denotation` leaves it
    value: float | tuple[int | None, ...] | str

    @classmethod
    def from_text(cls, text: str, canonical: str | None = None) -> "Denotation":
        """Reads an item; `canonical` is its number or date in the official annotation."""
        normalized = normalize_denotation(text)
        source = (canonical or text).replace("_", "?")  # only Python reads underscores in numbers
        number = _parse_number(source)
        value = number if number is not None else _parse_date(source)
        return cls(normalized, normalized if value is None else value)

    def matches(self, other: "Denotation") -> bool:
        """Whether texts, dates, or numbers up to 1e-6, are equal."""
        if isinstance(self.value, float) and isinstance(other.value, float):
            return self.text == other.text or abs(self.value - other.value) < _TOLERANCE
        return self.text == other.text or self.value == other.value


def denotation_correct(
    predicted_items: Sequence[str], gold_items: Sequence[str | Denotation]
) -> bool:
    """Whether two answers hold the same items, as sets; gold ones also as of `read_golds`."""
    predicted, gold = _distinct(predicted_items), _distinct(gold_items)
    return len(predicted) == len(gold) and all(
        any(item.matches(other) for other in predicted) for item in gold
    )


def read_golds(path: str | Path) -> dict[str, list[Denotation]]:
    """Reads gold answers from an official .tsv file, or with annotation from a .tagged one.

    FileNotFoundError if there is no such file, ValueError if it is not as the release has it.
    """
    golds = {}
    for row in read_wtq_tsv(path, ("id", "targetValue")):
        texts = split_list(row["targetValue"])
        canonical = split_list(row["targetCanon"]) if "targetCanon" in row else texts
        if len(texts) != len(canonical):
            raise ValueError(
                f"expected {len(texts)} canonical values, got {len(canonical)} "
                f"(file '{path}', question '{row['id']}')"
            )
        golds[row["id"]] = list(map(Denotation.from_text, texts, canonical))
    return golds


def _distinct(items: Sequence[str | Denotation]) -> list[Denotation]:
    parsed = [Denotation.from_text(item) if isinstance(item, str) else item for item in items]
    return list({item.value: item for item in reversed(parsed)}.values())


def _parse_number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    if not math.isfinite(number):
        return None
    if abs(number - round(number)) < _TOLERANCE:
        return float(int(number))  # the official program truncates
    return number


def _parse_date(text: str) -> float | tuple[int | None, ...] | None:
    parts = text.lower().split("-")
    if len(parts) != 3:
        return None
    unknown = (("xx", "xxxx"), ("xx",), ("xx",))
    try:
        date = tuple(
            None if part in names else int(part) for part, names in zip(parts, unknown, strict=True)
        )
    except ValueError:
        return None
    year, month, day = date
    if month is None and day is None:
        return None if year is None else float(year)
    in_range = (month is None or 1 <= month <= 12) and (day is None or 1 <= day <= 31)
    return date if in_range else None


@dataclass(frozen=True)
class Official:
    """The release's own data about a split's questions.

    Gold answers by question id, which replace the questions' own, and the ids of questions in parts
    that are scored separately, by the parts' names.
    """

    golds: Mapping[str, tuple[str | Denotation, ...]] = field(default_factory=dict)
    parts: Mapping[str, frozenset[str]] = field(default_factory=dict)


def read_official(task: str, directory: str | Path, split: str, pairs: _Pairs) -> Official:
    """Reads what the release, as its reader takes it, has for scores beyond the questions.

    Of WTQ these are the numbers and dates of gold answers in `tagged/data`; of TABFACT the simple,
    complex and small parts of its test split; of HYBRIDQA which answers stand in the table and
    which in a passage. The split is "dev", "train" or "test". FileNotFoundError if the files are
    missing; ValueError if they are not as in the release, lack a question, or the task has none.
    """
    read = _function_for(_READERS, task, "files for its scores")
    return read(Path(directory), split, list(pairs))


def write_official(task: str, path: str | Path, predictions: Mapping[str, Answer]) -> None:
    """Writes answers, by question id, in the format of the release's evaluation.

    That of WTQ is tab-separated id and items, of SQA tab-separated with cells, of HYBRIDQA a JSON
    list. An answer that was not given is written as empty. ValueError if the task has no format, or
    an id does not suit it.
    """
    lines = _function_for(_FORMATS, task, "format for answers")(predictions)
    with complete_text_file(path) as file:
        file.writelines(f"{line}\n" for line in lines)


def _function_for(functions: Mapping[str, Callable], task: str, what: str) -> Callable:
    if task not in functions:
        known = list(functions)
        raise ValueError(f"expected a task with an official {what}, one of {known}, got {task}")
    return functions[task]


def check_official_format(task: str, question_ids: Iterable[str]) -> None:
    """ValueError where a task has no official format for answers to these questions."""
    write_official(task, os.devnull, {id_: Answer() for id_ in question_ids})


def _read_wtq(directory: Path, split: str, pairs: list[tuple[Table, Question]]) -> Official:
    folder = directory / "tagged" / "data"
    files = sorted(folder.glob("*.tagged"))
    if not files:
        raise FileNotFoundError(f"expected .tagged files in {folder}, found none")
    golds = {id_: tuple(gold) for file in files for id_, gold in read_golds(file).items()}
    return Official({id_: golds[name] for id_, name in _names(pairs, golds, folder)})


def _read_tabfact(directory: Path, split: str, pairs: list[tuple[Table, Question]]) -> Official:
    files = {part: directory / "data" / f"{part}_test_id.json" for part in PARTS}
    lists = {part: set(read_table_ids(file)) for part, file in files.items() if file.exists()}
    if not lists:
        raise FileNotFoundError(f"expected {', '.join(map(str, files.values()))}; found none")
    table_ids = {  # as the release names tables, or the original one
        question.question_id: table.table_id.removeprefix("table_csv/") for table, question in pairs
    }
    by_part = {
        part: frozenset(id_ for id_, table_id in table_ids.items() if table_id in part_tables)
        for part, part_tables in lists.items()
    }
    parts = {part: ids for part, ids in by_part.items() if ids}
    if not parts:
        raise ValueError(
            f"expected statements about tables of the test split, got {len(table_ids)} about "
            f"others ('{directory}')"
        )
    return Official(parts=parts)


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
    return question_id.removesuffix("-0_0")  # which the TAPAS release adds


def _wtq_lines(predictions: Mapping[str, Answer]) -> Iterator[str]:
    for id_, answer in predictions.items():
        # White space within an item makes no difference in comparisons.
        yield "\t".join([_release_id(id_), *(" ".join(item.split()) for item in answer.items)])


def _sqa_lines(predictions: Mapping[str, Answer]) -> Iterator[str]:
    yield "id\tannotator\tposition\tanswer_coordinates"
    for question_id, answer in predictions.items():
        sequence, position = split_question_id(question_id)
        id_, separator, annotator = sequence.rpartition("-")
        if not separator:
            raise ValueError(f"expected an id such as 'nt-639-0_1', got '{question_id}'")
        yield f"{id_}\t{annotator}\t{position}\t{[str(cell) for cell in answer.coordinates]}"


def _hybridqa_lines(predictions: Mapping[str, Answer]) -> Iterator[str]:
    entries = [{"question_id": _release_id(id_), "pred": p.text} for id_, p in predictions.items()]
    yield json.dumps(entries, indent=1)


_READERS = {"WTQ": _read_wtq, "TABFACT": _read_tabfact, "HYBRIDQA": _read_hybridqa}
_FORMATS = {"WTQ": _wtq_lines, "SQA": _sqa_lines, "HYBRIDQA": _hybridqa_lines}
