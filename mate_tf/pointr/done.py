"""What is done already, and of what it was made."""

import json
import pathlib
from collections.abc import Callable
from typing import Any

from mate_tf.tables.text_files import complete_text_file, read_json


def as_read(content: Any) -> Any:
    """The content as JSON gives it back, without tuples."""
    return json.loads(json.dumps(content))


class Done:
    """A folder with a file for each thing that was completely made.

    Args:
        directory: the folder.
    """

    def __init__(self, directory: pathlib.Path) -> None:
        self._directory = directory

    def once(self, what: str, made_of: Any, make: Callable[[], str], output: pathlib.Path) -> str:
        """Makes something, unless it was made of the same.

        Args:
            what: its name.
            made_of: what JSON can say of all that it depends on.
            make: makes it, and reports on it.
            output: the file without which it is not there.

        Returns:
            The report, of now or of then.
        """
        if self.has(what, made_of, output):
            return read_json(self._path(what))["report"]
        self._path(what).unlink(missing_ok=True)
        report = make()
        write_json(self._path(what), {"made_of": made_of, "report": report})
        return report

    def has(self, what: str, made_of: Any, output: pathlib.Path) -> bool:
        """Whether something was made of this, and is still there."""
        path = self._path(what)
        return output.exists() and path.is_file() and self.made_of(what, "") == as_read(made_of)

    def made_of(self, what: str, stage: str) -> Any:
        """Of what something was made.

        Args:
            what: its name.
            stage: the stage that makes it, for the error.

        Raises:
            FileNotFoundError: if it was not made yet.
        """
        path = self._path(what)
        if not path.is_file():
            raise FileNotFoundError(
                f"expected the stage '{stage}' to be done, found no {path}; run --stage={stage} "
                "first"
            )
        return read_json(path)["made_of"]

    def _path(self, what: str) -> pathlib.Path:
        return self._directory / f"{what}.json"


def write_json(path: pathlib.Path, content: Any) -> None:
    """Writes a file, which appears once it is complete, and its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with complete_text_file(path) as file:
        file.write(json.dumps(content, indent=1) + "\n")
