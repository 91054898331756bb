"""How a value that cannot work is refused."""


def require(condition: bool, message: str) -> None:
    """ValueError with the message, "expected X, got Y", unless the condition holds."""
    if not condition:
        raise ValueError(message)
