"""mate-tf serve: a model behind HTTP."""

import argparse
import asyncio
import dataclasses
import os
import pathlib
import re
import signal
import socket
import threading
import time
from typing import Any

from mate_tf.command_line import arguments
from mate_tf.command_line.arguments import say, showing_logs
from mate_tf.serving.http import Limits

HELP = "serve a model over HTTP"
DESCRIPTION = """\
Serves a model over HTTP, in KServe's V1 and V2 protocols: pip install 'mate_tf[serve]'.

A request has instances, each with a "question" or "questions" and a "table" of rows, columns by
name or CSV text; the reply has {"predictions": [{"answer": "Rome", "score": 0.97, ...}]} in their
order. What cannot be answered gets a 4xx and {"error": "expected 2 cells as in the header, got 3",
"code": "ragged", "where": "instances[0].table.rows[4]"}, and what would be answered later than
--wait-seconds, because of what waits, a 503 with Retry-After. No request makes the server read or
write a file.

  GET /docs                 the interface, and /openapi.json
  GET /v2/health/live       whether the server lives, and /v2/health/ready whether the model does
  GET /metrics              for Prometheus: questions, seconds, queue, refusals, memory

The server listens at once, and prints "ready" when the model has answered its first question, with
the memory that it then takes. --max-tokens is 2048 by default. The server speaks plain HTTP and
asks nobody who they are: let others in (--host=0.0.0.0) only behind a proxy that does.
docs/serving.md and deploy/ have more.
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
_LIMITS = dataclasses.fields(Limits)
_MAX_TOKENS = 2048


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
    arguments.add_answers(parser, most_seconds=5)
    arguments.add_model(parser)
    limits = {field.name: field.default for field in _LIMITS}
    arguments.add(
        parser.add_argument_group("limits"),
        """
        --max-body-bytes=N  most bytes of a request, also once it is unpacked
        --max-questions=N  most questions of a request
        --max-cells=N  most cells of a table
        --max-waiting-bytes=N  most bytes of all requests at once; others wait to be read
        --max-connections=N  most connections at once; then the longest idle one is closed
        --body-seconds=S  in which a request has to arrive, its head and then its body
        --wait-seconds=S  which an answer may be expected to take, or the request gets a 503 at once
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
    try:
        from mate_tf.serving.http import app as serving
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"{error}; pip install 'mate_tf[serve]'") from None
    limits = Limits(**{field.name: getattr(options, field.name) for field in _LIMITS})
    service = serving.Service(model_name, limits)
    app = serving.make_app(service, log=say)
    server = serving.Server(app, limits)
    loading = _Loading(options, service, server)
    with _listener(options) as listener:
        # uvicorn raises the signal again when it has ended, for those who came before it.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)
        host, port = listener.getsockname()[:2]
        address = f"[{host}]" if ":" in host else host
        say(f"POST http://{address}:{port}/v1/models/{model_name}:predict")
        loading.start()
        asyncio.run(server.serve(sockets=[listener]))
    return _end(loading, service, app)


class _Loading(threading.Thread):
    """Loads the model while the server already says that it lives."""

    def __init__(self, options: argparse.Namespace, service: Any, server: Any):
        super().__init__(name="loading", daemon=True)
        self._options, self._service, self._server = options, service, server
        self.error: Exception | None = None  # why it failed

    def run(self) -> None:
        try:
            while not self._server.started:  # before TensorFlow takes the processor
                time.sleep(0.01)
            with showing_logs():
                self._load()
        except Exception as error:
            self.error = error
            self._server.should_exit = True

    def _load(self) -> None:
        from prometheus_client import REGISTRY

        from mate_tf.serving.http.schema import MOST_ALTERNATIVES

        options = self._options
        alternatives, min_score = options.num_alternatives, options.min_score
        options.num_alternatives, options.min_score = MOST_ALTERNATIVES, 0.0
        options.max_tokens = options.max_tokens or _max_tokens(options)
        predictor = arguments.load_model(options)
        _warm_up(predictor)
        self._service.begin(predictor, alternatives, min_score)
        used = REGISTRY.get_sample_value("process_resident_memory_bytes")  # of Linux alone
        memory = "" if used is None else f", {used / 1e6:.0f} MB of memory"
        say(f"ready: {options.max_tokens} tokens at most, by {predictor.computes_by}{memory}")


def _end(loading: _Loading, service: Any, app: Any) -> int:
    """The exit status, once all that waited has its answer or has none."""
    from absl import logging

    if loading.error is not None:
        raise loading.error
    is_cut_off = app.has_cut_off or not (service.questions is None or service.questions.close(1.0))
    if is_cut_off:
        logging.error("not all that was asked was answered within the grace period")
        logging.flush()
    # The interpreter's own end is not safe while TensorFlow is loaded or computes, and waits for
    # bodies that are being read.
    os._exit(int(is_cut_off))


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
    """The address, taken before anything slow; connections are refused until uvicorn runs."""
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    listener = socket.socket(family)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((options.host, options.port))
    except OSError as error:
        listener.close()
        raise OSError(f"{error.strerror} ({options.host}, port {options.port})") from None
    return listener


def _max_tokens(options: argparse.Namespace) -> int:
    """The longest question with its table, as long as few models' memory allows."""
    from mate_tf.serving.stored import find_model

    stored = find_model(arguments.find_model(options.model), options.revision, options.architecture)
    return min(stored.feature_config.max_seq_length or _MAX_TOKENS, _MAX_TOKENS)


def _warm_up(predictor: Any) -> None:
    """Asks a question, so that no client waits for what comes but once."""
    from absl import logging

    from mate_tf.tables.table import Question, Table

    table = Table.from_rows([["a"]], header=["a"])
    for _, _, answer in predictor.answer_all([(table, Question("a"))]):
        if isinstance(answer, ValueError):
            logging.info("not warmed up: %s", answer)
