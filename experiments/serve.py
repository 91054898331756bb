"""Serves an exported model over HTTP, in KServe's V1 protocol.

    pip install 'mate_tf[serve]'
    python -m experiments.serve --model=out/my_model --port=8080

    curl http://127.0.0.1:8080/v1/models/my_model:predict --json '{"instances": [
        {"question": "which city is in Italy?",
         "table": {"header": ["city", "country"], "rows": [["Rome", "Italy"], ["Paris", "France"]]}}
    ]}'

An answer for each instance, in their order: {"predictions": [{"answer": "Rome", "items": ["Rome"],
"cells": [{"row": 0, "column": 0, "text": "Rome", "score": 0.98}], "aggregation": "NONE",
"value": null, "score": 0.97, "answered": true, "alternatives": [], ...}]}. Cells are texts,
numbers, truth values or null; send as text what has to stay as it is written. Questions that wait
are answered together.

What cannot be answered gets a 4xx and {"error": "expected 2 cells as in the header, got 3",
"code": "ragged", "where": "instances[0].table.rows[4]"}: 400 what is no such request, 413 what is
beyond a limit below or too long for the model, 429 with Retry-After when too much waits, 408 what
comes too slowly. No request makes the server read or write a file.

    GET /v1/models/my_model     whether the model is ready; /v2/health/ready and /v2/health/live too
    GET /metrics                for Prometheus: questions, seconds, batches, queue, refusals, memory

The port opens once the model has answered at the usual lengths and at its longest. SIGTERM ends the
server with 0 after what was asked is answered, or with 1 after --grace_seconds. It speaks plain
HTTP and asks nobody who they are: let others in (--host=0.0.0.0) only behind a proxy that does.
"""

import os
import pathlib
import re
import signal
import socket
import sys

from absl import flags, logging

from experiments import asking, model_flags, terminal

_HOST = flags.DEFINE_string("host", "127.0.0.1", "address to listen at; 0.0.0.0 for all")
_PORT = flags.DEFINE_integer("port", 8080, "port to listen at; 0 for any that is free", 0, 65535)
_NAME = flags.DEFINE_string(
    "name", None, "name of the model in the paths; by default that of its folder"
)
_MIN_SCORE = flags.DEFINE_float(
    "min_score", 0.0, "where the score is lower, there is no answer", 0.0, 1.0
)
_ALTERNATIVES = flags.DEFINE_integer(
    "num_alternatives", 0, "add so many of the next best answers", lower_bound=0
)
_BODY_BYTES = flags.DEFINE_integer(
    "max_body_bytes", 2 * 1024**2, "the most bytes of a request", lower_bound=1
)
_QUESTIONS = flags.DEFINE_integer(
    "max_questions", 16, "the most instances of a request", lower_bound=1
)
_CELLS = flags.DEFINE_integer("max_cells", 16_384, "the most cells of a table", lower_bound=1)
_CELL_CHARACTERS = flags.DEFINE_integer(
    "max_cell_characters", 10_000, "the most characters of a cell", lower_bound=1
)
_QUESTION_CHARACTERS = flags.DEFINE_integer(
    "max_question_characters", 2_000, "the most characters of a question", lower_bound=1
)
_WAITING = flags.DEFINE_integer(
    "max_waiting", 256, "the most questions that wait; more get a 429", lower_bound=1
)
_BATCH = flags.DEFINE_integer(
    "max_batch", 32, "the most questions that are answered at once", lower_bound=1
)
_CONNECTIONS = flags.DEFINE_integer(
    "max_connections", 256, "the most connections at once; more get a 503", lower_bound=1
)
_BODY_SECONDS = flags.DEFINE_float(
    "body_seconds", 10.0, "in which a request has to arrive, its head and then its body", 0.01
)
_REPLY_SECONDS = flags.DEFINE_float(
    "reply_seconds", 60.0, "in which a request has to be answered, or it gets a 503", 0.01
)
_GRACE_SECONDS = flags.DEFINE_float(
    "grace_seconds", 30.0, "for which what was asked is still answered after SIGTERM", 1.0
)
_COMMON_TOKENS = range(128, 2048 + 1, 128)
_COLUMNS = 4  # of the tables that are asked before the first client's


def main(_) -> int:
    sys.argv = sys.argv[:1]  # kserve reads it when it is imported, and has other flags
    try:
        from mate_tf.serving.http import app as serving
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"{error}; pip install 'mate_tf[serve]'") from None
    from mate_tf.serving.http.app import Metrics
    from mate_tf.serving.http.batching import Batcher
    from mate_tf.serving.http.requests import Limits

    name = _name()
    with _listener() as listener:
        predictor = asking.load(min_score=_MIN_SCORE.value, num_alternatives=_ALTERNATIVES.value)
        _warm_up(predictor)
        metrics = Metrics()
        batcher = Batcher(
            predictor.answer_all, _BATCH.value, _WAITING.value, on_batch=metrics.batch.observe
        )
        metrics.watch_queue(lambda: batcher.num_waiting)
        limits = Limits(
            questions=min(_QUESTIONS.value, _WAITING.value),
            cells=_CELLS.value,
            cell_characters=_CELL_CHARACTERS.value,
            question_characters=_QUESTION_CHARACTERS.value,
        )
        patience = serving.Patience(
            _BODY_BYTES.value,
            _BODY_SECONDS.value,
            _REPLY_SECONDS.value,
            _CONNECTIONS.value,
            _GRACE_SECONDS.value,
        )
        model = serving.TableModel(name, batcher, metrics)
        app = serving.make_app(model, limits, patience, metrics)
        # uvicorn raises the signal again when it has ended, for those who came before it.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)
        host, port = listener.getsockname()[:2]
        address = f"[{host}]" if ":" in host else host
        print(f"POST http://{address}:{port}/v1/models/{name}:predict", flush=True)
        serving.run(app, listener, patience, metrics)
    if not batcher.close(timeout=1.0):
        logging.error("the model still computes after the grace period; its answers are lost")
        logging.flush()
        os._exit(1)  # the interpreter's own end is not safe while TensorFlow computes
    if app.has_cut_off:
        logging.error("not all that was asked was answered within the grace period")
    return int(app.has_cut_off)


def _name() -> str:
    name = _NAME.value or pathlib.Path(model_flags.model_path()).resolve().name
    if not re.fullmatch(r"[A-Za-z0-9._-]+", name):
        raise ValueError(
            f"expected letters, digits, '.', '_' and '-' as the model's name, got {name!r}; "
            "choose one with --name"
        )
    return name


def _listener() -> socket.socket:
    """The address, taken before the model is loaded; connections are refused until uvicorn runs."""
    family = socket.AF_INET6 if ":" in _HOST.value else socket.AF_INET
    listener = socket.socket(family)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((_HOST.value, _PORT.value))
    except OSError as error:
        listener.close()
        raise OSError(f"{error.strerror} ({_HOST.value}, port {_PORT.value})") from None
    return listener


def _warm_up(predictor) -> None:
    """Asks once at each length that is common, and at the longest, which takes the most memory.

    What the server holds after that is about what it will hold.
    """
    from mate_tf.tables.table import Question, Table

    longest = predictor.max_seq_length or _COMMON_TOKENS[-1]
    for num_tokens in sorted({longest, *(n for n in _COMMON_TOKENS if n < longest)}):
        num_rows = max(1, (num_tokens - 3) // _COLUMNS - 1)  # [CLS] question [SEP], the header
        table = Table.from_rows([["a"] * _COLUMNS] * num_rows, header=["a"] * _COLUMNS)
        for _, _, answer in predictor.answer_all([(table, Question("a"))]):
            if isinstance(answer, ValueError):
                logging.info("not warmed up at %d tokens: %s", num_tokens, answer)


if __name__ == "__main__":
    terminal.run(main)
