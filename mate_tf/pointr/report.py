"""Where answers stand (Eisenschlos et al., table 2), their scores, and what the wrong ones lack."""

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, get_args

from mate_tf.answers.answer import Answer
from mate_tf.datasets.supervision import SupervisionError, supervise_linked
from mate_tf.evaluation.hybridqa import Judged, error_report, exact_match, f1
from mate_tf.evaluation.official import Official, read_official
from mate_tf.evaluation.scoring import score
from mate_tf.pointr.inputs import restrict
from mate_tf.tables.linked_table import LinkedTable
from mate_tf.tables.table import Question, Table

Place = Literal["in table", "in passage", "missing", "not given"]
PLACES: tuple[Place, ...] = get_args(Place)


def place_of_answer(linked: LinkedTable, question: Question) -> Place:
    """Where an answer stands: in a cell's own text, or otherwise in a passage of a cell."""
    if not question.answers:
        return "not given"
    if _is_in(restrict(linked, "table"), question):
        return "in table"
    return "in passage" if _is_in(linked, question) else "missing"


def _is_in(linked: LinkedTable, question: Question) -> bool:
    try:
        supervise_linked(linked, dataclasses.replace(question, answer_coordinates=()))
    except SupervisionError:
        return False
    return True


class Places:
    """Counts where answers stand as their questions pass by."""

    def __init__(self) -> None:
        self.of_question: dict[str, Place] = {}

    def watch(
        self, pairs: Iterable[tuple[LinkedTable, Question]]
    ) -> Iterator[tuple[LinkedTable, Question]]:
        """The same questions, each counted as it passes."""
        for linked, question in pairs:
            self.of_question[question.question_id] = place_of_answer(linked, question)
            yield linked, question

    def __str__(self) -> str:
        counts = Counter(self.of_question.values())
        return "  answers: " + ", ".join(f"{n} {place}" for place, n in counts.most_common())


def answers_report(
    name: str,
    predictions: Mapping[str, Answer],
    pairs: Sequence[tuple[Table, Question]],
    task: str,
    directory: str | Path,
    split: str,
    places: Mapping[str, str],
) -> str:
    """A report on a split's answers, in Markdown.

    Exact match and F1 are those of the official definition, in total and for answers in the table
    and in passages. Which is which is told by HybridQA's release (its reference or traced file) if
    it has that, otherwise by `places`. Questions without a gold answer are counted and not scored.

    Args:
        name: the split's, for the title.
        predictions: by question id, one for each question.
        pairs: the questions with the pointer's tables, and the cells that hold the answers.
        task: of the data set, HYBRIDQA or LINKED_JSONL.
        directory: its folder.
        split: its name for the split.
        places: where each question's answer was found.

    Raises:
        ValueError: if the release's reference is malformed.
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
    official = _official(task, directory, split, scored) or Official(
        parts={
            part.replace(" ", "_"): frozenset(id_ for id_ in places if places[id_] == part)
            for part in PLACES
            if part in places.values()
        }
    )
    asked = {question.question_id: predictions[question.question_id] for _, question in scored}
    scores = score(task, asked, scored, official)
    lines += [f"| {what.replace('_', ' ')} | {value:.2%} |\n" for what, value in scores.items()]
    judged = [_judged(question, asked[question.question_id], official) for _, question in scored]
    return "".join([*lines, "\n", error_report(judged)])


def _official(
    task: str, directory: str | Path, split: str, pairs: Sequence[tuple[Table, Question]]
) -> Official | None:
    """What the release says about the answers; None if it says nothing."""
    if task != "HYBRIDQA":
        return None
    try:
        return read_official(task, directory, split, pairs)
    except FileNotFoundError:
        return None


def _judged(question: Question, prediction: Answer, official: Official) -> Judged:
    """An answer beside the gold one that is most like it."""
    golds = [str(gold) for gold in official.golds.get(question.question_id, question.answers)]
    text = prediction.text
    gold = max(golds, key=lambda gold: (exact_match(text, gold), f1(text, gold)))
    best = prediction.ranked_cells[:1]
    return Judged(question.text, gold, text, bool({*best} & {*question.answer_coordinates}))
