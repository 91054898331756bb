"""Questions in sequences, answered with the model's own answers before them (SQA)."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from mate_tf.answers.answer import Answer
from mate_tf.datasets.sqa import split_question_id
from mate_tf.tables.table import Question, Table

Pairs = Iterable[tuple[Table, Question]]
Answered = Iterator[tuple[Table, Question, Answer | ValueError]]


def answer_sequences(answer_all: Callable[[Pairs], Answered], pairs: Pairs) -> Answered:
    """Answers each question with the model's answer to the question before it as its history.

    The first questions of all sequences are answered together, then the second, and so on. To
    answer with the gold history of the data, call `answer_all` itself.

    Args:
        answer_all: answers independent questions in their order, such as `Predictor.answer_all`.
        pairs: the questions with their tables, in any order, held in memory. Their ids say sequence
            and position, such as "nt-639-0_1"; positions may be missing.

    Yields:
        The table, the question with its history of predicted cells and texts, and the answer, round
        by round. After a question that was refused or not answered there is no history.

    Raises:
        ValueError: if an id does not say sequence and position, an id comes twice, or a sequence
            is about several tables.
    """
    previous: dict[str, Answer | ValueError] = {}
    for turns in _rounds(pairs):
        asked = (
            (table, with_history(question, previous.get(_sequence(question))))
            for table, question in turns
        )
        for table, question, answer in answer_all(asked):
            yield table, question, answer
            # Only now: each question of a round is of another sequence.
            previous[_sequence(question)] = answer


def with_history(question: Question, previous: Answer | ValueError | None) -> Question:
    """The question with texts and cells of the answer before it; none after an error or None."""
    if not isinstance(previous, Answer):
        return replace(question, previous_coordinates=(), previous_answers=())
    return replace(
        question,
        previous_coordinates=previous.coordinates,
        previous_answers=previous.items,
    )


def _sequence(question: Question) -> str:
    return split_question_id(question.question_id)[0]


def _rounds(pairs: Pairs) -> Iterator[list[tuple[Table, Question]]]:
    """The first questions of all sequences, then the second ones, ..."""
    sequences: defaultdict[str, dict[int, tuple[Table, Question]]] = defaultdict(dict)
    for table, question in pairs:
        sequence, position = split_question_id(question.question_id)
        turns = sequences[sequence]
        where = f"(question '{question.question_id}')"
        if position in turns:
            raise ValueError(f"expected each question of a sequence once, got one again {where}")
        for first, _ in list(turns.values())[:1]:
            if first.table_id != table.table_id:
                raise ValueError(
                    f"expected a sequence about one table, '{first.table_id}', got "
                    f"'{table.table_id}' {where}"
                )
        turns[position] = table, question
    in_order = [[turns[position] for position in sorted(turns)] for turns in sequences.values()]
    for number in range(max(map(len, in_order), default=0)):
        yield [turns[number] for turns in in_order if number < len(turns)]
