"""mate-tf mcp: tools for assistants, over standard input and output."""

import argparse
import itertools
import os
import pathlib
from typing import Annotated, Any

from mate_tf.command_line import arguments
from mate_tf.command_line.ask import tables_below
from mate_tf.private_apis import import_extra
from mate_tf.reading.files import read_file
from mate_tf.reading.sources import read_table

HELP = "let assistants ask tables on this machine"
DESCRIPTION = """\
Serves two tools of the Model Context Protocol to an assistant that starts this command:
pip install 'mate_tf[mcp]'.

ask_table answers a question about a file's table or about a table as text, with the cells that show
it and how sure it is; list_tables names the files. Files are read below FOLDER alone, by default
the folder in which the command starts. Nothing is sent anywhere.

docs/tables.md has the lines for an assistant's settings.
"""
EPILOG = """\
examples:
  mate-tf mcp ~/Documents
  mate-tf mcp my_tables --model=my_model
"""
_MOST = 500  # files that are listed
_INPUTS = {
    "question": "In English, short, in words of the table, which holds the answer.",
    "path": "A file of list_tables, as it is named there; empty with a text.",
    "text": "A table as text: CSV with a header, JSON, Markdown or HTML; empty with a path.",
    "folder": "A folder in which to look; empty for all that may be read.",
}


def add_arguments(parser: Any) -> None:
    """Adds what the command takes."""
    parser.add_argument("folders", metavar="FOLDER", nargs="*", help="whose tables may be read")
    arguments.add_answers(parser, alternatives=1)
    arguments.add_model(parser)


def run(options: argparse.Namespace) -> None:
    """Serves the tools until standard input ends."""
    pydantic = import_extra("pydantic", "mcp", "to serve assistants")
    fast = import_extra("mcp.server.fastmcp", "mcp", "to serve assistants")
    folders = [pathlib.Path(given).resolve() for given in options.folders or ["."]]
    for folder in folders:
        if not folder.is_dir():
            raise FileNotFoundError(f"expected a folder of tables at {folder}, found none")
    predictor = arguments.load_model(options)
    server = fast.FastMCP("mate-tf", log_level="WARNING")

    def readable(given: str) -> pathlib.Path:
        """The path that is meant; ValueError unless it is below one of the folders."""
        for folder in folders:
            path = (folder / given).resolve()
            if path.is_relative_to(folder) and path.exists():
                return path
        names = ", ".join(map(str, folders))
        raise ValueError(f"expected a path below {names}, got {given!r}; list_tables names files")

    question, path, text, folder_ = (
        Annotated[str, pydantic.Field(description=meaning)] for meaning in _INPUTS.values()
    )

    @server.tool()
    def ask_table(question: question, path: path = "", text: text = "") -> dict[str, Any]:  # type: ignore[valid-type]
        """Answers a question about a table by a small model that reads the table alone.

        It looks cells up ("which city hosted in 1992?"), counts rows, adds up, averages, takes
        differences and compares two rows. "answer" is its text; "confidence" is sure, probably or
        not sure; "score" is how likely it is right; "cells" are those it was read from, rows from 0
        without the header; "aggregation" is what was computed from them; "assumed" says how the
        file was read.
        """
        if bool(path) == bool(text):
            raise ValueError("expected either path or text, got both or neither")
        table = read_file(str(readable(path))) if path else read_table(text)
        return predictor.answer(table, question).to_dict() | {"assumed": table.all_assumed}

    @server.tool()
    def list_tables(folder: folder_ = "") -> dict[str, Any]:  # type: ignore[valid-type]
        """Names the files with tables in a folder and those in it."""
        below = [readable(folder)] if folder else folders
        files = itertools.chain.from_iterable(map(tables_below, below))
        names = [os.path.relpath(file, folders[0]) for file in itertools.islice(files, _MOST + 1)]
        more = {"more": "there are others; name a folder"} if len(names) > _MOST else {}
        return {"files": names[:_MOST], **more}

    server.run("stdio")
