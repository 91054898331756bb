"""Paths on this machine and on others: gs://bucket/folder is read and written by TensorFlow.

TensorFlow's build says which schemes there are: gs, and ram, its own memory, in tests.
"""

import contextlib
import io
import os
import pathlib
import uuid
from collections.abc import Iterator
from typing import Any

Path = str | os.PathLike[str]

_SCHEME = "://"


class RemotePath(pathlib.PosixPath):
    """A path with a scheme. What is not below would be a path of this machine: do not use it."""

    def __str__(self) -> str:
        return super().__str__().replace(":/", _SCHEME, 1)  # pathlib has taken a slash away

    def __fspath__(self) -> str:
        return str(self)

    def exists(self, **_: Any) -> bool:
        return _gfile().exists(str(self))

    def is_dir(self, **_: Any) -> bool:
        return _gfile().isdir(str(self))

    def is_file(self, **_: Any) -> bool:
        return self.exists() and not self.is_dir()

    def iterdir(self) -> Any:
        return (self / name.rstrip("/") for name in _gfile().listdir(str(self)))

    def glob(self, pattern: str, **_: Any) -> Any:
        return map(type(self), _gfile().glob(str(self / pattern)))

    def mkdir(self, *_: Any, **__: Any) -> None:
        _gfile().makedirs(str(self))

    def unlink(self, missing_ok: bool = False) -> None:
        if self.exists() or not missing_ok:
            _gfile().remove(str(self))

    def rmdir(self) -> None:
        _gfile().rmtree(str(self))

    def replace(self, target: str | os.PathLike[str]) -> "RemotePath":
        _gfile().rename(str(self), os.fspath(target), overwrite=True)
        return type(self)(target)

    def resolve(self, strict: bool = False) -> "RemotePath":
        return self

    def absolute(self) -> "RemotePath":
        return self

    def write_bytes(self, data: Any) -> int:
        with self.open("wb") as file:
            file.write(bytes(data))
        return len(data)

    def open(self, mode: str = "r", *_: Any, **options: Any) -> Any:
        """A file of bytes in memory to read; to write, TensorFlow's own."""
        if "w" in mode:
            return _gfile().GFile(str(self), mode)
        if not self.is_file():
            raise FileNotFoundError(f"expected a file at '{self}', found none")
        with _gfile().GFile(str(self), "rb") as file:
            content = io.BytesIO(file.read())
        if "b" in mode:
            return content
        options = {name: options.get(name) for name in ("encoding", "errors", "newline")}
        return io.TextIOWrapper(content, **options)


def _gfile() -> Any:
    import tensorflow as tf

    return tf.io.gfile


def is_remote(path: str | os.PathLike[str]) -> bool:
    """Whether a path has a scheme."""
    return _SCHEME in os.fspath(path)


def as_path(path: str | os.PathLike[str]) -> pathlib.Path:
    """A path on this machine, or a `RemotePath`."""
    return RemotePath(path) if is_remote(path) else pathlib.Path(path)


def absolute(path: str | os.PathLike[str]) -> str:
    """The whole path from the root, or with its scheme."""
    return os.fspath(path) if is_remote(path) else os.path.abspath(path)


@contextlib.contextmanager
def complete_file(path: Path) -> Iterator[str]:
    """Yields a name to write a file under. The file gets its own name once it is complete."""
    # A unique name, because a Beam runner may let two workers write the same file.
    unfinished = f"{os.fspath(path)}.{uuid.uuid4().hex}.unfinished"
    try:
        yield unfinished
        as_path(unfinished).replace(path)
    finally:
        as_path(unfinished).unlink(missing_ok=True)
