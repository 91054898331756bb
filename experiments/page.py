"""Opens a page that asks an exported model.

    python -m experiments.page --model=out/my_model

Drop a file or paste a table from a spreadsheet, ask, and see the answer, the table with the chosen
cells by their score, the next best answers, and which cells the answer attended to by each group of
heads. An example is there to begin with. The page takes nothing from other hosts and tells them
nothing; it is served to this machine alone unless --host=0.0.0.0 serves it to the network, a phone
in it included. Ends with Ctrl-C. Exits with 1 and one sentence where the model cannot be used or
Gradio is not installed (`pip install 'mate_tf[page]'`).
"""

from absl import flags

from experiments import asking, model_flags, terminal
from mate_tf.page.app import build_app, import_gradio, launch
from mate_tf.serving.folder import check_named

_ALTERNATIVES = flags.DEFINE_integer(
    "num_alternatives", 3, "show so many of the next best answers", lower_bound=0
)
_MIN_SCORE = flags.DEFINE_float(
    "min_score", 0.0, "where the score is lower, there is no answer", 0.0, 1.0
)
_HOST = flags.DEFINE_string("host", "127.0.0.1", "the address to serve the page at")
_PORT = flags.DEFINE_integer(
    "port", None, "the port to serve it at; by default the first free one from 7860 on", 1, 65535
)


def main(_) -> None:
    # The folder first, then what is missing: neither should have to wait for TensorFlow.
    check_named(model_flags.model_path())
    import_gradio()

    predictor = asking.load(min_score=_MIN_SCORE.value, num_alternatives=_ALTERNATIVES.value)
    app = build_app(predictor, model_flags.model_path())
    print(f"the page is at {launch(app, _HOST.value, _PORT.value)} (Ctrl-C ends it)", flush=True)
    app.block_thread()


if __name__ == "__main__":
    terminal.run(main)
