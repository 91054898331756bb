"""mate-tf page: a page in the browser that asks a model."""

import argparse
from typing import Any

from mate_tf.command_line import arguments
from mate_tf.command_line.terminal import say, showing_logs

HELP = "open a page in the browser that answers questions"
DESCRIPTION = """\
Opens a page that answers questions about tables: pip install 'mate_tf[page]'.

Drop a file or paste a table from a spreadsheet, ask, and see the answer, the table with the chosen
cells by their score, the next best answers, and which cells the answer attended to. An example is
there to begin with.

The page takes nothing from other hosts and tells them nothing. It is served to this machine alone,
unless --host=0.0.0.0 serves it to the network, for a phone in it, say. Ctrl-C ends it.
"""
EPILOG = """\
examples:
  mate-tf page
  mate-tf page --model=my_model --port=8000

exit status:
  0    ended with Ctrl-C
  1    the model cannot be used, the port is taken, or the extra is missing
"""


def add_arguments(parser: Any) -> None:
    """Adds what the command takes."""
    arguments.add(
        parser,
        """
        --host=HOST  the address to serve the page at; by default this machine's own, 127.0.0.1
        --port=N  the port to serve it at; by default the first free one from 7860 on
        """,
        types=dict(port=arguments.number(1, 65535)),
        defaults=dict(host="127.0.0.1"),
    )
    arguments.add_answers(parser, alternatives=3)
    arguments.add_model(parser)


def run(options: argparse.Namespace) -> None:
    """Serves the page until Ctrl-C."""
    from mate_tf.page.app import build_app, import_gradio, launch

    # What may be wrong comes first: it should not have to wait for TensorFlow.
    name = arguments.find_model(options.model)
    import_gradio()
    with showing_logs():
        app = build_app(arguments.load_model(options), name)
        say(f"the page is at {launch(app, options.host, options.port)} (Ctrl-C ends it)")
        app.block_thread()
