"""mate-tf show: a table as it was read."""

import argparse
import json
from typing import Any

from mate_tf.command_line import arguments
from mate_tf.command_line.terminal import say
from mate_tf.tables.files import ENDINGS

HELP = "show a table as it was read"
DESCRIPTION = f"""\
Shows a table as it was read: its size, its header, and its rows. This is what all other commands
see of the file.

A table is a file that ends in
{" ".join(ENDINGS)};
"-" reads CSV from standard input.
"""
EPILOG = """\
examples:
  mate-tf show moon_landings.csv
  mate-tf show report.xlsx --sheet=2024 --rows=50
  mate-tf show page.html --which=2 --json

exit status:
  0    the table was read
  1    it cannot be read; one sentence says why
"""


def add_arguments(parser: Any) -> None:
    """Adds what the command takes."""
    parser.add_argument("table", metavar="TABLE", help="the table's file, or - for CSV")
    arguments.add(
        parser,
        """
        --rows=N  how many rows are shown, from the first one on; --json gives all
        --json  print one JSON object with name, header and rows, all as texts
        """,
        types=dict(rows=arguments.number(0)),
        defaults=dict(rows=20),
    )
    arguments.add_table(parser)


def run(options: argparse.Namespace) -> None:
    """Prints the table."""
    from mate_tf.command_line.answer_lines import draw_table

    table = arguments.read_table(options)
    if options.json:
        record = {"name": table.table_id, "header": table.header, "rows": table.rows}
        say(json.dumps(record, ensure_ascii=False))
        return
    say(f"{table.table_id}: {table.num_rows} rows, {table.num_columns} columns\n")
    say(draw_table(table, marked=(), max_rows=options.rows))
