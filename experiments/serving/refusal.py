"""What a client is told whose request is not answered."""

from typing import Any


class RefusedError(ValueError):
    """A request that is not answered, and why.

    Args:
        code: the reason as a word for programs, such as "too_many_cells".
        message: the reason as a sentence: what was expected, what came.
        where: the place in the request, such as "instances[0].table.rows[3]"; empty where it is
            none in particular.
        status: the HTTP status.
        retry_after: seconds after which the same request may be answered; None where it never is.
    """

    def __init__(
        self,
        code: str,
        message: str,
        where: str = "",
        status: int = 400,
        retry_after: int | None = None,
    ):
        super().__init__(message)
        self.code = code
        self.where = where
        self.status = status
        self.retry_after = retry_after

    @property
    def body(self) -> dict[str, Any]:
        """The reply, without "where" where there is no place."""
        return {"error": str(self), "code": self.code} | (
            {"where": self.where} if self.where else {}
        )

    @property
    def headers(self) -> dict[str, str]:
        return {} if self.retry_after is None else {"retry-after": str(self.retry_after)}


def stopping() -> RefusedError:
    """Of a request that comes, or is not answered yet, when the server ends."""
    return RefusedError("stopping", "the server is stopping", status=503, retry_after=1)
