"""KServe's model server with a predictor behind it, and only the routes that tables need.

KServe gives the model's frame, the V1 and V2 endpoints and their metrics. Its own start would also
open gRPC, loading by name and CloudEvents, so the routes are listed here. One thread has the model,
and answers waiting questions together.
"""

import asyncio
import functools
import heapq
import itertools
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import fastapi
import kserve
import orjson
import uvicorn
from absl import logging
from kserve.errors import ModelNotFound, ModelNotReady, ServerNotReady
from kserve.protocol.dataplane import DataPlane
from kserve.protocol.rest.server import metrics_handler
from kserve.protocol.rest.v1_endpoints import V1Endpoints
from kserve.protocol.rest.v2_endpoints import V2Endpoints
from prometheus_client import Counter, Gauge, Histogram
from pydantic import BaseModel
from starlette.exceptions import HTTPException

import mate_tf
from mate_tf.answers.answer import Answer
from mate_tf.answers.predictor import ASKS_NOTHING
from mate_tf.features.builder import padded_length
from mate_tf.features.config import ConversionError
from mate_tf.serving.http import Limits
from mate_tf.serving.http.limits import (
    CODE,
    Connections,
    GuardedLoop,
    RefusedError,
    RequestLimits,
    stopping,
)
from mate_tf.serving.http.requests import Request, read_request, read_tensors
from mate_tf.serving.http.schema import (
    OUTPUTS,
    REPLY_SCHEMA,
    TENSORS,
    TENSORS_REPLY_SCHEMA,
    request_schema,
    tensors_schema,
)

_SECONDS_OF_TOKEN = 0.1e-3  # half of what one takes the default model on two cores
_SMALL_BODY = 32 * 1024  # bytes; the largest body takes seconds to read, and no small one waits


class _Waiting(NamedTuple):
    """A question in the queue."""

    # When it would be answered if nobody else asked. The earliest is answered first, so that a
    # short question passes long ones that came just before it, and none waits for ever.
    due: float
    number: int  # of equal ones the first comes first
    num_tokens: int  # with its padding
    asked: Any  # the question, as `Predictor.prepare` made it
    future: "Future[Answer]"


class Batcher:
    """Answers what waits in batches of so many tokens.

    Args:
        answer: answers questions in their order, as `Predictor.answer_prepared`; one thread calls
            it. A question has `num_tokens`.
        batch_tokens: the most tokens of a batch, with padding; a longer question is answered alone.
        on_batch: gets the number of questions each time.
    """

    def __init__(
        self,
        answer: Callable[[Sequence[Any]], Sequence[Answer]],
        batch_tokens: int = Limits.max_batch_tokens,
        on_batch: Callable[[int], None] = lambda size: None,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._answer_all = answer
        self._batch_tokens = batch_tokens
        self._on_batch = on_batch
        self._clock = clock
        self._numbers = itertools.count()
        self._waiting: list[_Waiting] = []  # a heap
        self._changed = threading.Condition()
        self._closed = False
        # A daemon, so that an endless computation does not keep the process.
        self._thread = threading.Thread(target=self._run, name="model", daemon=True)
        self._thread.start()

    @property
    def num_waiting(self) -> int:
        """How many questions wait whose clients still wait."""
        with self._changed:
            return sum(not one.future.cancelled() for one in self._waiting)

    def submit(self, questions: Sequence[Any]) -> list["Future[Answer]"]:
        """Takes all questions; one whose future is cancelled in time is not asked.

        Raises:
            RefusedError: with status 503 after `close`.
        """
        futures: list[Future[Answer]] = [Future() for _ in questions]
        with self._changed:
            if self._closed:
                raise stopping()
            now = self._clock()
            for one, future in zip(questions, futures, strict=True):
                num_tokens = padded_length(one.num_tokens)
                due = now + num_tokens * _SECONDS_OF_TOKEN
                waiting = _Waiting(due, next(self._numbers), num_tokens, one, future)
                heapq.heappush(self._waiting, waiting)
            self._changed.notify()
        return futures

    def close(self, timeout: float | None = None) -> bool:
        """Answers what waits and accepts no more; returns whether the time was enough."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while taken := self._take():
            self._on_batch(len(taken))
            self._answer(taken)

    def _take(self) -> list[_Waiting]:
        """The next batch; empty once there are no more and the batcher is closed."""
        taken: list[_Waiting] = []
        tokens = 0
        with self._changed:
            while not taken:
                self._changed.wait_for(lambda: self._waiting or self._closed)
                if not self._waiting:
                    return []
                while self._waiting:
                    if taken and tokens + self._waiting[0].num_tokens > self._batch_tokens:
                        break
                    one = heapq.heappop(self._waiting)
                    if one.future.set_running_or_notify_cancel():  # somebody waits for it
                        taken.append(one)
                        tokens += one.num_tokens
        return taken

    def _answer(self, taken: list[_Waiting]) -> None:
        try:
            answers = self._answer_all([one.asked for one in taken])
            for one, answer in zip(taken, answers, strict=True):
                one.future.set_result(answer)
        except Exception as error:
            logging.exception("%d questions were not answered", len(taken))
            if len(taken) == 1:
                taken[0].future.set_exception(error)
                return
            for one in taken:  # one by one, so that the others are answered
                self._answer([one])


_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_QUESTIONS = (1, 2, 4, 8, 16, 32, 64, 128)


class Metrics:
    """What Prometheus is told beside KServe's and the Python client's metrics."""

    def __init__(self) -> None:
        self.questions = Counter("mate_tf_questions", "questions that were answered")
        what = "seconds from a request's head to its reply"
        self.seconds = Histogram("mate_tf_request_seconds", what, buckets=_SECONDS)
        what = "questions that were answered at once"
        self.batch = Histogram("mate_tf_batch_questions", what, buckets=_QUESTIONS)
        what = "requests that were not answered, by reason"
        self._refused = Counter("mate_tf_refused", what, ["code"])

    def refuse(self, code: str) -> None:
        """Counts a request that was not answered, by the code that the client got."""
        self._refused.labels(code).inc()


_JSON = ("application/json", "application/x-www-form-urlencoded")  # the latter is curl's for --data
_ENCODINGS = ("gzip", "identity")


class Unread(NamedTuple):
    """A request that is not read yet."""

    read: Callable[[Limits], Request]
    is_small: bool

    @classmethod
    def of(
        cls, read: Callable[..., Request], body: bytes, headers: Mapping[str, str], **options: Any
    ) -> "Unread":
        """What `read` will make of a body; RefusedError if its headers say that it is no JSON."""
        encoding = _encoding(headers)
        is_small = len(body) <= _SMALL_BODY and encoding != _ENCODINGS[0]
        return cls(functools.partial(read, body, encoding=encoding, **options), is_small)


class Refusal(BaseModel):
    """Why a request was not answered."""

    error: str
    code: str
    where: str = ""


class TableModel(kserve.Model):
    """Answers questions about tables, once it is ready; its name is that in the paths."""

    def __init__(self, name: str, limits: Limits, metrics: Metrics):
        super().__init__(name)
        self._limits = limits
        self._metrics = metrics
        self._predictor: Any = None
        self._defaults = (0, 0.0)
        # Of JSON and tables, beside the event loop; small bodies have their own.
        self._readers = [ThreadPoolExecutor(1, name) for name in ("reader", "small_reader")]
        self.batcher: Batcher | None = None

    def begin(self, predictor: Any, alternatives: int, min_score: float) -> None:
        """Answers from now on, by default with so many alternatives and from a score on.

        The predictor gives `Limits.max_alternatives`, and answers of any score.
        """
        self._predictor = predictor
        self._defaults = (alternatives, min_score)
        most, on_batch = self._limits.max_batch_tokens, self._metrics.batch.observe
        self.batcher = Batcher(predictor.answer_prepared, most, on_batch)
        waiting = Gauge("mate_tf_waiting_questions", "questions that wait")
        waiting.set_function(lambda: self.batcher.num_waiting if self.batcher else 0)
        self.ready = True

    def load(self) -> bool:
        """Whether it is ready; `begin` makes it so."""
        return bool(self.ready)

    def get_input_types(self) -> list[dict[str, Any]]:
        """The tensors of a request in the V2 protocol."""
        return [{"name": name, "datatype": "BYTES", "shape": [-1]} for name in TENSORS]

    def get_output_types(self) -> list[dict[str, Any]]:
        """The tensors of its reply."""
        return [{"name": name, "datatype": kind, "shape": [-1]} for name, kind in OUTPUTS.items()]

    async def preprocess(self, payload: Unread, headers: Any = None) -> tuple[Request, list[Any]]:
        """Reads a request beside the event loop."""

        def read() -> tuple[Request, list[Any]]:
            request = payload.read(self._limits)
            return request, self._predictor.prepare(request.pairs)

        reader = self._readers[payload.is_small]
        return await asyncio.get_running_loop().run_in_executor(reader, read)

    async def predict(
        self,
        payload: tuple[Request, list[Any]],
        headers: Mapping[str, str] | None = None,
        response_headers: Mapping[str, str] | None = None,
    ) -> Any:
        """The reply to a request.

        Raises:
            RefusedError: if a question is beyond the model's limits.
        """
        request, prepared = payload
        for place, one in zip(request.places, prepared, strict=True):
            if isinstance(one, ConversionError):
                status = 400 if one.reason == ASKS_NOTHING else 413
                raise RefusedError(one.reason.replace(" ", "_"), one.problem, place, status)
        assert self.batcher is not None
        waiting = [asyncio.wrap_future(future) for future in self.batcher.submit(prepared)]
        try:
            answers = await asyncio.gather(*waiting)
        finally:
            for future in waiting:  # nobody waits for them where one of them failed
                future.cancel()
        self._metrics.questions.inc(len(answers))
        return request.reply([request.finished(one, *self._defaults) for one in answers])


class _TablesOnly(DataPlane):
    """A data plane that takes only requests of requests.py, whatever their headers say."""

    async def ready(self) -> bool:
        models = self.model_registry.get_models()
        return all([await self.model_registry.is_model_ready(name) for name in models])

    def decode(self, body: bytes, headers: Mapping[str, str], *_: Any, **__: Any) -> Any:
        return Unread.of(read_request, body, headers), {}

    def encode(self, model_name: str, response: Any, *_: Any, **__: Any) -> Any:
        return orjson.dumps(response), {"content-type": _JSON[0]}


def _encoding(headers: Mapping[str, str]) -> str:
    """How a body is packed; RefusedError where it is no JSON, or packed in an unknown way."""
    kind = headers.get("content-type", _JSON[0]).partition(";")[0].strip().lower()
    if kind not in _JSON:
        message = f"expected {_JSON[0]} as content-type, got {kind!r}"
        raise RefusedError("not_json", message, "", 415)
    encoding = headers.get("content-encoding", _ENCODINGS[1]).strip().lower()
    if encoding not in _ENCODINGS:
        message = f"expected {' or '.join(_ENCODINGS)} as content-encoding, got {encoding!r}"
        raise RefusedError("not_gzip", message, "", 415)
    return encoding


def make_app(
    model: TableModel,
    limits: Limits,
    metrics: Metrics,
    connections: Connections,
    log: Callable[[str], None],
) -> RequestLimits:
    """The ASGI application that serves one model."""
    models = kserve.ModelRepository()
    models.update(model)
    plane = _TablesOnly(models)
    v1, v2 = V1Endpoints(plane), V2Endpoints(plane)

    async def infer(model_name: str, request: fastapi.Request) -> fastapi.Response:
        """Answers questions that come as tensors of text."""
        if not await plane.model_ready(model_name):
            raise ModelNotReady(model_name)
        body = await request.body()
        unread = Unread.of(read_tensors, body, request.headers, model_name=model_name)
        response, _ = await plane.infer(model_name, unread)
        return fastapi.Response(orjson.dumps(response), media_type=_JSON[0])

    app = fastapi.FastAPI(
        title="mate_tf",
        summary="Questions about tables, in KServe's protocols.",
        version=mate_tf.__version__,
        redoc_url=None,
        redirect_slashes=False,
        responses={status: {"model": Refusal} for status in ("4XX", "5XX")},
    )
    get = ["GET"]
    predict = "/v1/models/{model_name}:predict"
    of_predict = _described(request_schema(limits), REPLY_SCHEMA)
    of_infer = _described(tensors_schema(limits), TENSORS_REPLY_SCHEMA)
    for path, endpoint, methods, described in (
        ("/", plane.live, get, None),
        ("/v1/models", v1.models, get, None),
        # Before the next, whose name has no end.
        (predict, v1.predict, ["POST"], of_predict),
        ("/v1/models/{model_name}", v1.model_ready, get, None),
        ("/v2", v2.metadata, get, None),
        ("/v2/health/live", v2.live, get, None),
        ("/v2/health/ready", v2.ready, get, None),
        ("/v2/models", v2.models, get, None),
        ("/v2/models/{model_name}", v2.model_metadata, get, None),
        ("/v2/models/{model_name}/ready", v2.model_ready, get, None),
        ("/v2/models/{model_name}/infer", infer, ["POST"], of_infer),
    ):
        options: dict[str, Any] = {}
        if described:
            options = {"openapi_extra": described, "response_model": None}
        app.add_api_route(path, endpoint, methods=methods, **options)
        if endpoint == v1.predict:
            app.add_api_route(path, _not_allowed, include_in_schema=False)
    for probe in (v2.live, v2.ready):  # some load balancers ask so
        path = f"/v2/health/{probe.__name__}"
        app.add_api_route(path, probe, methods=["HEAD"], include_in_schema=False)
    app.add_api_route("/metrics", metrics_handler, include_in_schema=False)
    _say_errors_alike(app, metrics)
    return RequestLimits(app, limits, connections, metrics.refuse, metrics.seconds.observe, log)


def _described(of_request: dict[str, Any], of_reply: dict[str, Any]) -> dict[str, Any]:
    """What OpenAPI is told of a path that is asked."""
    packing = {
        "name": "content-encoding",
        "in": "header",
        "description": "gzip for a body that is packed by it",
        "schema": {"enum": list(_ENCODINGS), "default": _ENCODINGS[1]},
    }
    body = {"required": True, "content": {_JSON[0]: {"schema": of_request}}}
    reply = {"content": {_JSON[0]: {"schema": of_reply}}}
    return {"parameters": [packing], "requestBody": body, "responses": {"200": reply}}


async def _not_allowed() -> None:
    raise HTTPException(405, headers={"Allow": "POST"})


def _refusal(error: Exception) -> RefusedError:
    """What a client is told of an error."""
    if isinstance(error, RefusedError):
        return error
    if isinstance(error, ModelNotFound):
        message = "expected the name of a model that is served"
        return RefusedError("not_found", message, status=404)
    if isinstance(error, NotImplementedError):
        message = "expected no model_version, for the model has no versions"
        return RefusedError("not_accepted", message)
    if isinstance(error, ServerNotReady | ModelNotReady):
        return RefusedError("not_ready", "the model is being loaded", status=503, retry_after=5)
    if isinstance(error, HTTPException):
        code = {404: "not_found", 405: "wrong_method"}.get(error.status_code, "not_accepted")
        return RefusedError(code, str(error.detail), status=error.status_code)
    logging.error("a request failed", exc_info=error)
    return RefusedError("failed", "the model failed; the server's log says how", status=500)


def _say_errors_alike(app: fastapi.FastAPI, metrics: Metrics) -> None:
    async def refuse(request: fastapi.Request, error: Exception) -> fastapi.Response:
        refused = _refusal(error)
        request.scope[CODE] = refused.code
        metrics.refuse(refused.code)
        headers = refused.headers | dict(getattr(error, "headers", None) or {})
        return fastapi.Response(refused.body, refused.status, headers, _JSON[0])

    # Starlette raises again what only the handler of Exception takes.
    ours = (RefusedError, ModelNotFound, NotImplementedError, ServerNotReady, ModelNotReady)
    for kind in (*ours, HTTPException, Exception):
        app.add_exception_handler(kind, refuse)


def make_server(app: RequestLimits, limits: Limits) -> uvicorn.Server:
    """Serves an application until SIGTERM or SIGINT, or until `should_exit`.

    It then answers what waits, within the grace period.
    """
    return uvicorn.Server(
        uvicorn.Config(
            app,
            http="h11",  # whose heads have a limit, 64 KB
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="error",  # not a warning for each request that is not HTTP
            access_log=False,
            server_header=False,
            proxy_headers=False,  # a connection is known by its address
            timeout_graceful_shutdown=max(1, round(limits.grace_seconds)),
        )
    )


def serve(server: uvicorn.Server, connections: Connections, listener: socket.socket) -> None:
    """Serves at an address; returns at the end."""
    with asyncio.Runner(loop_factory=lambda: GuardedLoop(connections)) as runner:
        runner.run(server.serve(sockets=[listener]))
