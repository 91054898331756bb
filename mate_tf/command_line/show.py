"""mate-tf show: a table as it was read."""

import argparse
import itertools
from typing import Any

from mate_tf.command_line import arguments
from mate_tf.command_line.arguments import say, say_json
from mate_tf.reading.files import ENDINGS, read_file

HELP = "show a table as it was read"
DESCRIPTION = f"""\
Shows a table as it was read: what was assumed about the file, the kind of each column, and the
rows. This is what all other commands see of the file.

A table is a file that ends in
{" ".join(ENDINGS)};
"-" reads standard input. What the file is is seen from its content; gzip is unpacked.
"""
EPILOG = """\
examples:
  mate-tf show moon_landings.csv
  mate-tf show report.xlsx --sheet=2024 --rows=50
  mate-tf show page.html --which=2 --json
  mate-tf show statement.csv --skip-rows=3 --encoding=cp1252
"""
_GROUP = 4  # columns of one kind beside each other, which are named together


def add_arguments(parser: Any) -> None:
    """Adds what the command takes."""
    parser.add_argument("table", metavar="TABLE", help="the table's file, or - for standard input")
    arguments.add(
        parser,
        """
        --rows=N  how many rows are shown, from the first one on; --json gives all
        --full  print all rows and columns
        --json  print one JSON object with name, header, rows, assumed, and columns: of each the
            name, kind, values, unit, sum and average
        """,
        types=dict(rows=arguments.number(0)),
        defaults=dict(rows=20),
    )
    arguments.add_table(parser)


def run(options: argparse.Namespace) -> None:
    """Prints the table."""
    from mate_tf.command_line.drawing import Paper
    from mate_tf.tables.drawing import count, quoted, with_names

    table = read_file(options.table, arguments.read_options(options))
    columns = [table.column(index) for index in range(table.num_columns)]
    if options.json:
        record = {
            "name": table.table_id,
            "title": table.document_title,
            "header": table.header,
            "rows": table.rows,
            "assumed": table.all_assumed,
            "columns": [column.to_dict(table.total_rows) for column in columns],
        }
        say_json(record)
        return
    size = f"{count(table.num_rows, 'row')}, {count(table.num_columns, 'column')}"
    say(quoted(f"{table.table_id}: {size}"))
    names = arguments.option_names(options)
    for sentence in table.all_assumed:
        say(quoted(with_names(sentence, names)))
    say("")
    kinds = ["; ".join(filter(None, (column.kind, column.unit))) for column in columns]
    for kind, group in itertools.groupby(range(len(kinds)), kinds.__getitem__):
        alike = [table.header[column] for column in group]
        if len(alike) >= _GROUP:
            alike = [f"{alike[0]} to {alike[-1]}"]
        for name in alike:
            say(quoted(f"{name}: {kind}"))
    say("")
    Paper.stdout(options.full).table(table, rows=range(min(options.rows, table.num_rows)))
