"""mate-tf page: a page in the browser that asks a model."""

import argparse
import time
from typing import Any

from mate_tf.command_line import arguments
from mate_tf.command_line.arguments import say, showing_logs

HELP = "open a page in the browser that answers questions"
DESCRIPTION = """\
Opens a page that answers questions about tables: pip install 'mate_tf[page]'.

Drop a file or paste a table from a spreadsheet, and ask. The answer comes with the table and its
cells in colour, what was computed from them, whether the model is sure, and the next best answers.
Where TensorFlow is installed, a button loads it and shows where the model looked. A follow-up is
asked about the rows of the answer before it.

The page takes nothing from other hosts and tells them nothing. It is served to this machine alone,
unless --host=0.0.0.0 serves it to the network, for a phone in it, say. It asks nobody who they are.
Visitors' files are kept for an hour at most, and none is left when the page ends.
"""
EPILOG = """\
examples:
  mate-tf page
  mate-tf page --model=my_model --port=8000
"""


def add_arguments(parser: Any) -> None:
    """Adds what the command takes."""
    arguments.add(
        parser,
        """
        --host=HOST  the address to serve the page at; by default this machine's own, 127.0.0.1
        --port=N  the port to serve it at; by default the first free one from 7860 on
        --names=NAMES  further names, with commas, by which a proxy asks for the page
        """,
        types=dict(port=arguments.number(1, 65535), names=arguments.names),
        defaults=dict(host="127.0.0.1", names=[]),
    )
    arguments.add_answers(parser, alternatives=3, most_seconds=5)
    arguments.add_model(parser)


def run(options: argparse.Namespace) -> None:
    """Serves the page until SIGTERM or Ctrl-C."""
    from mate_tf.page.app import end_on_signals, import_gradio, serving

    # What may be wrong comes first: it should not have to wait for TensorFlow.
    name = arguments.find_model(options.model)
    import_gradio()
    with showing_logs():
        predictor = arguments.load_model(options)
        end_on_signals()
        address = (options.host, options.port)
        with serving(predictor, name, *address, options.names) as url:
            say(f"the page is at {url} (Ctrl-C ends it)")
            while True:
                time.sleep(3600)
