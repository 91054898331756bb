"""The questions that a PointR learns from and answers, split by split."""

import dataclasses
import pathlib
from collections.abc import Iterator, Mapping

from mate_tf.tables.datasets.tasks import read_split
from mate_tf.tables.linked_table import LinkedTable
from mate_tf.tables.table import Question


@dataclasses.dataclass(frozen=True)
class Source:
    """The questions of a data set.

    Attributes:
        task: the name of its reader, of tables with passages.
        directory: its folder.
        splits: what it calls the splits "train" and "dev", and others that are answered.
    """

    task: str
    directory: str
    splits: Mapping[str, str]

    def read(self, name: str) -> Iterator[tuple[LinkedTable, Question]]:
        """The questions of a split, by our name for it; errors as the task's reader has them."""
        return read_split(self.task, self.directory, self.splits[name])

    def state(self) -> dict[str, int]:
        """What changes where a file of the folder does, without reading any."""
        files = [entry for entry in pathlib.Path(self.directory).rglob("*") if entry.is_file()]
        states = [file.stat() for file in files]
        return {
            "files": len(files),
            "bytes": sum(state.st_size for state in states),
            "changed": max((state.st_mtime_ns for state in states), default=0),
        }
