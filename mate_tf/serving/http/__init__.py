"""The HTTP server, in KServe's protocol, and what a client may take of it."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Limits:
    """What a client may take; these are options of `mate-tf serve`, which says more of each.

    Attributes:
        max_body_bytes: of a request.
        max_questions: instances of a request.
        max_cells: of a table's body.
        max_cell_characters: in a cell or a column's name.
        max_question_characters: in a question.
        max_waiting, max_batch: questions that wait, and that are answered at once.
        max_connections: at once.
        body_seconds: for a request's head, and then its body, to arrive.
        reply_seconds: for its answer.
        grace_seconds: for answers to earlier questions, once the server is told to stop.
    """

    max_body_bytes: int = 2 * 1024**2
    max_questions: int = 16
    max_cells: int = 16_384
    max_cell_characters: int = 10_000
    max_question_characters: int = 2_000
    max_waiting: int = 256
    max_batch: int = 32
    max_connections: int = 256
    body_seconds: float = 10.0
    reply_seconds: float = 60.0
    grace_seconds: float = 30.0
