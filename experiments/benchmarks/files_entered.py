"""Prints how many files of mate_tf are entered by loading the default model and by one answer.

A file is entered where a function of it is called. What runs because a module is imported does not
count, nor does what makes the model's graph: the answer counted is one after it.

    python -m experiments.benchmarks.files_entered
"""

import pathlib
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from absl import app

import mate_tf

PACKAGE = pathlib.Path(mate_tf.__file__).parent


def files_entered(function: Callable[[], Any]) -> tuple[Any, list[str]]:
    """What a function returns, and the files of mate_tf that it enters."""
    entered: set[str] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(str(PACKAGE)) and not _is_import(frame):
            entered.add(pathlib.Path(file).relative_to(PACKAGE).as_posix())

    sys.setprofile(note)
    try:
        result = function()
    finally:
        sys.setprofile(None)
    return result, sorted(entered)


def _is_import(frame: FrameType | None) -> bool:
    """Whether a module of mate_tf is being imported, up to this frame."""
    while frame is not None:
        code = frame.f_code
        if code.co_name == "<module>" and code.co_filename.startswith(str(PACKAGE)):
            return True
        frame = frame.f_back
    return False


def main(argv: list[str]) -> None:
    del argv
    table = mate_tf.Table.from_rows(
        [["Planet", "Moons"], ["Mars", "2"], ["Saturn", "146"]], table_id="planets"
    )
    model, loading = files_entered(mate_tf.from_pretrained)
    model.answer(table, ["how many planets?", "how many moons has Mars?"])  # makes the graph
    _, answering = files_entered(lambda: model.answer(table, "which planet has the most moons?"))
    for what, files in (("loading the default model", loading), ("one answer", answering)):
        print(f"{what}: {len(files)} files")
        print(*files, sep="\n")


if __name__ == "__main__":
    app.run(main)
