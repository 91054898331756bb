"""The HTTP server: KServe's protocols, limits on what a client may take, and refusals."""

import dataclasses
import json

from mate_tf.tables.drawing import error_text


@dataclasses.dataclass(frozen=True)
class Limits:
    """The most that a client may take, as the options of `mate-tf serve` with these names say."""

    max_body_bytes: int = 2 * 1024**2
    max_questions: int = 16
    max_cells: int = 500_000
    max_waiting_bytes: int = 64 * 1024**2
    max_connections: int = 256
    body_seconds: float = 10.0
    wait_seconds: float = 8.0
    reply_seconds: float = 60.0
    grace_seconds: float = 30.0


class RefusedError(ValueError):
    """A request that is not answered, and why.

    Args:
        code: the reason as a word for programs, such as "too_many_cells".
        message: the reason as a sentence: what was expected, what came.
        where: the place in the request, such as "instances[0].table.rows[3]", or "".
        status: the HTTP status; by default 413 for what is beyond a limit, and 400.
        retry_after: seconds after which to send the same request again; 0 for never.
    """

    def __init__(
        self, code: str, message: str, where: str = "", status: int = 0, retry_after: int = 0
    ):
        super().__init__(error_text(message))
        self.code, self.where = code, where
        self.status = status or (413 if code.startswith("too_") else 400)
        self.headers = {"content-type": "application/json"}
        if retry_after:
            self.headers["retry-after"] = str(retry_after)

    @property
    def body(self) -> bytes:
        """The reply, in JSON."""
        where = {"where": error_text(self.where)} if self.where else {}
        return json.dumps({"error": str(self), "code": self.code} | where).encode()


def busy(code: str, message: str) -> RefusedError:
    """The refusal of a request that may be sent again in a second."""
    return RefusedError(code, message, status=503, retry_after=1)


def stopping() -> RefusedError:
    """The refusal of requests that come or wait when the server ends."""
    return busy("stopping", "the server is stopping")
