"""mate-tf serve: a model behind HTTP."""

import argparse
import dataclasses
import os
import pathlib
import re
import signal
import socket
import sys
from typing import Any

from mate_tf.command_line import arguments
from mate_tf.command_line.terminal import say, showing_logs
from mate_tf.serving.http import Limits

HELP = "serve a model over HTTP"
DESCRIPTION = """\
Serves a model over HTTP, in KServe's V1 protocol: pip install 'mate_tf[serve]'.

The answers come in the order of the instances: {"predictions": [{"answer": "Rome", "items":
["Rome"], "cells": [{"row": 0, "column": 0, "text": "Rome", "score": 0.98}], "aggregation": "NONE",
"value": null, "score": 0.97, "answered": true, "alternatives": [], ...}]}. Cells are texts,
numbers, truth values or null; send as text what has to stay as it is written. Questions that wait
are answered together.

What cannot be answered gets a 4xx and {"error": "expected 2 cells as in the header, got 3",
"code": "ragged", "where": "instances[0].table.rows[4]"}: 400 for what is no such request, 413 for
what is beyond a limit or too long for the model, 429 with Retry-After if too much waits, 408 for
what comes too slowly. No request makes the server read or write a file.

  GET /v1/models/my_model   whether the model is ready; /v2/health/ready and /v2/health/live too
  GET /metrics              for Prometheus: questions, seconds, batches, queue, refusals, memory

The port opens once the model has answered at the usual lengths and at its longest. The server
speaks plain HTTP and asks nobody who they are: let others in (--host=0.0.0.0) only behind a proxy
that does.
"""
EPILOG = """\
example:
  mate-tf serve --model=my_model --port=8080
  curl http://127.0.0.1:8080/v1/models/my_model:predict --json '{"instances": [
    {"question": "which city is in Italy?",
     "table": {"header": ["city", "country"], "rows": [["Rome", "Italy"], ["Paris", "France"]]}}
  ]}'

exit status:
  0    ended by SIGTERM or Ctrl-C, after what was asked was answered
  1    the model or the address cannot be used, the extra is missing, or not all that was asked was
       answered within --grace-seconds
"""
_COMMON_TOKENS = range(128, 2048 + 1, 128)
_COLUMNS = 4  # of the tables that are asked before the first client's


def add_arguments(parser: Any) -> None:
    """Adds what the command takes."""
    arguments.add(
        parser,
        """
        --host=HOST  address to listen at; 0.0.0.0 for all
        --port=N  port to listen at; 0 for any that is free
        --name=NAME  name of the model in the paths; by default that of its folder
        """,
        types=dict(port=arguments.number(0, 65535)),
        defaults=dict(host="127.0.0.1", port=8080),
    )
    arguments.add_answers(parser)
    arguments.add_model(parser)
    limits = {field.name: field.default for field in dataclasses.fields(Limits)}
    arguments.add(
        parser.add_argument_group("limits"),
        """
        --max-body-bytes=N  most bytes of a request
        --max-questions=N  most instances of a request
        --max-cells=N  most cells of a table
        --max-cell-characters=N  most characters of a cell
        --max-question-characters=N  most characters of a question
        --max-waiting=N  most questions that wait; more get a 429
        --max-batch=N  most questions that are answered at once
        --max-connections=N  most connections at once; more get a 503
        --body-seconds=S  in which a request has to arrive, its head and then its body
        --reply-seconds=S  in which a request has to be answered, or it gets a 503
        --grace-seconds=S  for which what was asked is still answered after SIGTERM
        """,
        types={
            name: arguments.number(1)
            if name.startswith("max_")
            else arguments.number(1.0 if name == "grace_seconds" else 0.01, kind=float)
            for name in limits
        },
        defaults=limits,
    )


def run(options: argparse.Namespace) -> int:
    """Serves until SIGTERM or Ctrl-C; EPILOG says what it returns."""
    model_name = _name(options)
    with showing_logs():
        return _serve(options, model_name)


def _serve(options: argparse.Namespace, model_name: str) -> int:
    from absl import logging

    sys.argv = sys.argv[:1]  # kserve reads it when it is imported, and has other options
    try:
        from mate_tf.serving.http import app as serving
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"{error}; pip install 'mate_tf[serve]'") from None
    from mate_tf.serving.http.batching import Batcher

    with _listener(options) as listener:
        predictor = arguments.load_model(options)
        _warm_up(predictor)
        metrics = serving.Metrics()
        batcher = Batcher(
            predictor.answer_all,
            options.max_batch,
            options.max_waiting,
            on_batch=metrics.batch.observe,
        )
        metrics.watch_queue(lambda: batcher.num_waiting)
        options.max_questions = min(options.max_questions, options.max_waiting)
        names = [field.name for field in dataclasses.fields(Limits)]
        limits = Limits(**{name: getattr(options, name) for name in names})
        model = serving.TableModel(model_name, batcher, metrics)
        app = serving.make_app(model, limits, metrics)
        # uvicorn raises the signal again when it has ended, for those who came before it.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)
        host, port = listener.getsockname()[:2]
        address = f"[{host}]" if ":" in host else host
        say(f"POST http://{address}:{port}/v1/models/{model_name}:predict")
        serving.run(app, listener, limits, metrics)
    if not batcher.close(timeout=1.0):
        logging.error("the model still computes after the grace period; its answers are lost")
        logging.flush()
        os._exit(1)  # the interpreter's own end is not safe while TensorFlow computes
    if app.has_cut_off:
        logging.error("not all that was asked was answered within the grace period")
    return int(app.has_cut_off)


def _name(options: argparse.Namespace) -> str:
    """The model's name in the paths; says before anything slow where there can be no model."""
    name = options.name or pathlib.Path(arguments.find_model(options.model)).resolve().name
    if not re.fullmatch(r"[A-Za-z0-9._-]+", name):
        raise ValueError(
            f"expected letters, digits, '.', '_' and '-' as the model's name, got {name!r}; "
            "choose one with --name"
        )
    return name


def _listener(options: argparse.Namespace) -> socket.socket:
    """The address, taken before the model is loaded; connections are refused until uvicorn runs."""
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    listener = socket.socket(family)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((options.host, options.port))
    except OSError as error:
        listener.close()
        raise OSError(f"{error.strerror} ({options.host}, port {options.port})") from None
    return listener


def _warm_up(predictor: Any) -> None:
    """Asks once at each common length, and at the longest, which takes the most memory.

    What the server holds after that is about what it will hold.
    """
    from absl import logging

    from mate_tf.tables.table import Question, Table

    longest = predictor.max_seq_length or _COMMON_TOKENS[-1]
    for num_tokens in sorted({longest, *(n for n in _COMMON_TOKENS if n < longest)}):
        num_rows = max(1, (num_tokens - 3) // _COLUMNS - 1)  # [CLS] question [SEP], the header
        table = Table.from_rows([["a"] * _COLUMNS] * num_rows, header=["a"] * _COLUMNS)
        for _, _, answer in predictor.answer_all([(table, Question("a"))]):
            if isinstance(answer, ValueError):
                logging.info("not warmed up at %d tokens: %s", num_tokens, answer)
