"""Tables as a page gets them: a file, or text pasted from a spreadsheet."""

import pathlib
import tempfile

from mate_tf.tables import files as table_files
from mate_tf.tables.table import Table


def given_table(file: str | None, pasted: str) -> Table:
    """The table that somebody pasted, or else the file's.

    Raises:
        ValueError: if there is neither, or what there is is no table; as `read_table` otherwise.
    """
    if pasted.strip():
        return pasted_table(pasted)
    if file is None:
        raise ValueError("expected a table, got none; choose a file or paste one")
    return read_table(file)


def pasted_table(text: str) -> Table:
    """Reads rows separated by tabs, as spreadsheets copy them, or by commas, or as JSON Lines.

    Raises:
        ValueError: as `read_table`; the file's name is "pasted" with its ending.
    """
    text = text.strip("\r\n")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / f"pasted{_suffix(text)}"
        path.write_bytes(text.encode("utf-8", "replace"))
        return read_table(path)


def read_table(path: str | pathlib.Path) -> Table:
    """Reads a file; errors give its name without its folder, a temporary one.

    Raises:
        FileNotFoundError, ModuleNotFoundError, ValueError: as `table_files.read_table`.
    """
    path = pathlib.Path(path)
    try:
        return table_files.read_table(path)
    except (ModuleNotFoundError, ValueError) as error:
        raise type(error)(str(error).replace(str(path), path.name)) from None


def _suffix(text: str) -> str:
    # Not without its tabs: a spreadsheet's first cell may be empty.
    first = next(line for line in text.split("\n") if line.strip())
    if "\t" in first:
        return ".tsv"
    return ".jsonl" if first.lstrip().startswith(("{", "[")) else ".csv"
