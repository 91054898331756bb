"""The HTTP server, in KServe's protocols, and what a client may take of it."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Limits:
    """What a client may take; the options of `mate-tf serve` with these names say the rest."""

    max_body_bytes: int = 2 * 1024**2
    max_questions: int = 16
    max_cells: int = 16_384
    max_cell_characters: int = 10_000
    max_question_characters: int = 2_000
    max_alternatives: int = 10
    max_waiting_bytes: int = 64 * 1024**2
    max_batch_tokens: int = 1024
    max_connections: int = 256
    body_seconds: float = 10.0
    reply_seconds: float = 60.0
    grace_seconds: float = 30.0
