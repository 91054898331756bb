"""The application: KServe's V1 and V2 protocols, Hugging Face's form, health and metrics.

One thread has the model, and answers the questions that wait.
"""

import asyncio
import itertools
import math
import os
import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Annotated, Any, NamedTuple

import fastapi
import uvicorn
from absl import logging
from fastapi.responses import JSONResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST, Counter, Gauge, Histogram, generate_latest
from pydantic.json_schema import models_json_schema
from starlette.exceptions import HTTPException

import mate_tf
from mate_tf.answers.answer import Answer
from mate_tf.features.config import ConversionError
from mate_tf.serving.http import Limits, RefusedError, busy, schema, stopping
from mate_tf.serving.http.limits import CODE, Connections, RequestLimits
from mate_tf.serving.http.requests import (
    ENCODINGS,
    JSON,
    MODEL_VERSION,
    Body,
    Request,
    read_request,
    read_tensors,
)

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_HEAD_BYTES = 32 * 1024
_START_SECONDS = 1.0  # within which a question is begun where no other waits or is computed
_SCHEMAS = "#/components/schemas/"
_SECONDS_OF_TOKEN = 0.1e-3  # half of what one takes the default model on two cores
_MEMORY = 0.9  # after each answer so much counts of those before
_DOUBLE = 3_000  # tokens in one column, where attention doubles what each takes

# What Prometheus is told beside the Python client's metrics.
_ANSWERED = Counter("mate_tf_questions", "questions that were answered")
_TIMES = Histogram(
    "mate_tf_request_seconds", "seconds from a request's head to its reply", buckets=_SECONDS
)
_WAITING = Gauge("mate_tf_waiting_questions", "questions that wait")
_REFUSED = Counter("mate_tf_refused", "requests that were not answered, by reason", ["code"])


def _count_refused(code: str) -> None:
    _REFUSED.labels(code).inc()


class _Waiting(NamedTuple):
    """A question in the queue."""

    # When it would be answered if nobody else asked. The earliest is answered first, so that a
    # short question passes long ones that came just before it, and none waits for ever.
    due: float
    number: int  # of equal ones the first comes first
    question: Any  # as `Predictor.prepare` made it; None ends the thread
    future: Future[Answer]


def _work(question: Any) -> float:
    """About what a question takes, in the tokens of a short one that take as long."""
    return question.num_tokens * (1 + question.num_tokens / _DOUBLE)


class Questions:
    """Answers questions one after the other, each on all cores.

    It measures how long a token takes, and refuses at once what would be answered late.

    Args:
        answer: answers a question, as `Predictor.answer_prepared`; one thread calls it. A question
            has `num_tokens`.
        wait_seconds: the most that a request may be expected to take while others wait.
        clock: the time in seconds.
    """

    def __init__(
        self,
        answer: Callable[[Sequence[Any]], Sequence[Answer]],
        wait_seconds: float = math.inf,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._answer, self._wait_seconds, self._clock = answer, wait_seconds, clock
        self._seconds_of_work = 2 * _SECONDS_OF_TOKEN  # until it is measured
        self._seconds = self._work_done = 0.0  # measured; older ones count less
        self._running_until: float | None = None  # when what is computed should have its answer
        self._numbers = itertools.count()
        self._waiting: queue.PriorityQueue[_Waiting] = queue.PriorityQueue()
        self._is_closed = False
        # A daemon, so that an endless computation does not keep the process.
        self._thread = threading.Thread(target=self._run, name="model", daemon=True)
        self._thread.start()

    @property
    def num_waiting(self) -> int:
        """How many questions wait whose clients still wait."""
        return len(self._work_waiting())

    def check_wait(self, questions: Sequence[Any] = (), waited: float = 0.0) -> None:
        """Refuses a request that came some seconds ago and would be answered late.

        What is long by itself is accepted when nothing else waits or is computed.

        Raises:
            RefusedError: with status 503, and the seconds after which it would be accepted.
        """
        now, running_until = self._clock(), self._running_until
        # What takes longer than it should is expected to take as long again.
        before = 0.0 if running_until is None else abs(running_until - now)
        before += sum(self._work_waiting()) * self._seconds_of_work
        wait = waited + before + sum(map(_work, questions)) * self._seconds_of_work
        if (too_long := min(before, wait - self._wait_seconds)) > 0:
            most = f"{self._wait_seconds:g}"
            message = f"expected an answer within {most} s, it would take {wait:.0f}"
            raise RefusedError("late", message, status=503, retry_after=math.ceil(too_long))

    def submit(self, questions: Sequence[Any], waited: float = 0.0) -> list[Future[Answer]]:
        """Takes all questions; one whose future is cancelled in time is not asked.

        Raises:
            RefusedError: with status 503 after `close`, or as `check_wait`.
        """
        if self._is_closed:
            raise stopping()
        self.check_wait(questions, waited)
        futures: list[Future[Answer]] = [Future() for _ in questions]
        now = self._clock()
        for question, future in zip(questions, futures, strict=True):
            self._put(now + question.num_tokens * _SECONDS_OF_TOKEN, question, future)
        return futures

    def close(self, timeout: float | None = None) -> bool:
        """Answers what waits and accepts no more; returns whether the time was enough."""
        self._is_closed = True
        self._put(float("inf"), None, Future())
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _work_waiting(self) -> list[float]:
        return [
            _work(one.question)
            for one in self._waiting.queue[:]
            if one.question is not None and not one.future.cancelled()
        ]

    def _put(self, due: float, question: Any, future: Future[Answer]) -> None:
        self._waiting.put(_Waiting(due, next(self._numbers), question, future))

    def _run(self) -> None:
        while (one := self._waiting.get()).question is not None:
            if one.future.set_running_or_notify_cancel():  # somebody waits for it
                try:
                    one.future.set_result(self._timed(one.question))
                except Exception as error:
                    logging.exception("a question was not answered")
                    one.future.set_exception(error)

    def _timed(self, question: Any) -> Answer:
        """The answer, whose time is measured."""
        start, work = self._clock(), _work(question)
        self._running_until = start + work * self._seconds_of_work
        try:
            (answer,) = self._answer([question])
        finally:
            self._running_until = None
        self._seconds = _MEMORY * self._seconds + self._clock() - start
        self._work_done = _MEMORY * self._work_done + work
        self._seconds_of_work = self._seconds / self._work_done
        return answer


class Service:
    """Answers questions about tables, once it is ready; its name is that in the paths."""

    def __init__(self, name: str, limits: Limits):
        self.name, self.limits = name, limits
        self._predictor: Any = None
        self._defaults = (0, 0.0)
        # Of JSON and tables, beside the event loop; small bodies have their own.
        self._readers = [ThreadPoolExecutor(1, name) for name in ("reader", "small_reader")]
        self.questions: Questions | None = None

    def begin(self, predictor: Any, alternatives: int, min_score: float) -> None:
        """Answers from now on, by default with so many alternatives and from a score on.

        The predictor gives `schema.MOST_ALTERNATIVES`, and answers of any score.
        """
        self._predictor = predictor
        self._defaults = (alternatives, min_score)
        self.questions = questions = Questions(predictor.answer_prepared, self.limits.wait_seconds)
        _WAITING.set_function(lambda: questions.num_waiting)

    def check_ready(self) -> bool:
        """True; RefusedError while the model is being loaded."""
        if self.questions is None:
            message = "the model is being loaded"
            raise RefusedError("not_ready", message, status=503, retry_after=5)
        return True

    async def answer(self, body: Body, read: Callable[[Body, Limits, str], Request]) -> Any:
        """The reply to a body; RefusedError if it is no request or beyond the model's limits."""
        assert self.questions is not None, "expected a model that is ready"
        start = time.monotonic()
        self.questions.check_wait()  # before anything is read
        run = asyncio.get_running_loop().run_in_executor
        reader = self._readers[body.is_small]
        request = await run(reader, read, body, self.limits, self.name)
        prepared = await run(reader, self._predictor.prepare, request.pairs)
        for location, question in zip(request.locations, prepared, strict=True):
            if isinstance(question, ConversionError):
                raise RefusedError(question.reason.replace(" ", "_"), question.problem, location)
        waited, most = time.monotonic() - start, self.limits.wait_seconds
        futures = self.questions.submit(prepared, waited)
        waiting = [asyncio.wrap_future(future) for future in futures]
        until_late = max(most - waited, _START_SECONDS)
        try:
            await asyncio.wait(waiting, timeout=until_late, return_when=asyncio.FIRST_EXCEPTION)
            if not any(future.running() or future.done() for future in futures):
                raise busy("late", f"expected an answer within {most:g} s, others took longer")
            answers = await asyncio.gather(*waiting)
        finally:
            for future in waiting:  # nobody waits for them where one of them failed
                future.cancel()
        _ANSWERED.inc(len(answers))
        return request.reply([request.finished(one, *self._defaults) for one in answers])


class _App(fastapi.FastAPI):
    """An application whose document also has the requests, which it reads itself."""

    def openapi(self) -> dict[str, Any]:
        document = super().openapi()
        _, schemas = models_json_schema(
            [(kind, "validation") for kind in _TAKEN], ref_template=f"{_SCHEMAS}{{model}}"
        )
        document["components"]["schemas"] |= schemas["$defs"]
        return document


_TAKEN: list[Any] = []  # the kinds of requests that paths take


def _takes(*kinds: type) -> dict[str, Any]:
    """The description of a path that takes a request of one of these kinds, for OpenAPI."""
    _TAKEN.extend(kinds)
    references = [{"$ref": _SCHEMAS + kind.__name__} for kind in kinds]
    content = {JSON: {"schema": {"anyOf": references} if len(kinds) > 1 else references[0]}}
    packing = {
        "name": "content-encoding",
        "in": "header",
        "description": "gzip for a body that is packed by it",
        "schema": {"enum": list(ENCODINGS), "default": ENCODINGS[1]},
    }
    return {"parameters": [packing], "requestBody": {"required": True, "content": content}}


async def _service(request: fastapi.Request) -> Service:
    return request.app.state.service


async def _named(request: fastapi.Request, model_name: str) -> Service:
    """The service, if its name is in the path."""
    service = await _service(request)
    if model_name.endswith(":predict"):
        raise HTTPException(405, "expected POST", {"Allow": "POST"})
    if model_name != service.name:
        raise HTTPException(404, "expected the name of the model that is served")
    return service


async def _is_known(model_version: str) -> None:
    if model_version != MODEL_VERSION:
        raise HTTPException(404, f"expected version {MODEL_VERSION}, the only one of the model")


Served = Annotated[Service, fastapi.Depends(_service)]
Named = Annotated[Service, fastapi.Depends(_named)]
_routes = fastapi.APIRouter(generate_unique_id_function=lambda route: route.name)
_VERSION: Any = {"dependencies": [fastapi.Depends(_is_known)]}
_MODEL = "/v2/models/{model_name}"
_MODEL_VERSION = f"{_MODEL}/versions/{{model_version}}"


@_routes.get("/")
async def alive() -> dict[str, str]:
    """Whether the server lives, as V1 asks it."""
    return {"status": "alive"}


@_routes.get("/v1/models")
@_routes.get("/v2/models", name="models_v2")
async def models(service: Served) -> dict[str, list[str]]:
    """The models, of which there is one."""
    return {"models": [service.name]}


@_routes.post(
    "/v1/models/{model_name}:predict",
    response_model=schema.PredictReply | schema.PipelineAnswer | list[schema.PipelineAnswer],
    openapi_extra=_takes(schema.PredictRequest, schema.PipelineRequest),
)
async def predict(service: Named, request: fastapi.Request) -> Response:
    """Answers questions about tables."""
    return await _reply(service, request, read_request)


@_routes.get("/v1/models/{model_name}")
@_routes.get(f"{_MODEL}/ready", name="model_ready_v2")
@_routes.get(f"{_MODEL_VERSION}/ready", name="version_ready", **_VERSION)
async def model_ready(service: Named) -> dict[str, str | bool]:
    """Whether the model has answered its first question."""
    return {"name": service.name, "ready": service.check_ready()}


@_routes.get("/v2")
async def server() -> dict[str, str | list[str]]:
    """The server's name and version."""
    extensions = ["binary_tensor_data"]  # of requests
    return {"name": "mate_tf", "version": mate_tf.__version__, "extensions": extensions}


@_routes.get("/v2/health/live")
@_routes.head("/v2/health/live", include_in_schema=False)  # some load balancers ask so
async def live() -> dict[str, bool]:
    """Whether the server lives."""
    return {"live": True}


@_routes.get("/v2/health/ready")
@_routes.head("/v2/health/ready", include_in_schema=False)
async def ready(service: Served) -> dict[str, bool]:
    """Whether the model has answered its first question."""
    return {"ready": service.check_ready()}


@_routes.get(_MODEL)
@_routes.get(_MODEL_VERSION, name="version", **_VERSION)
async def model(service: Named) -> dict[str, Any]:
    """The model's tensors."""
    inputs, outputs = (
        [{"name": name, "datatype": kind, "shape": [-1]} for name, kind in tensors.items()]
        for tensors in (schema.INPUTS, schema.OUTPUTS)
    )
    about = {"name": service.name, "versions": [MODEL_VERSION], "platform": "mate_tf"}
    return about | {"inputs": inputs, "outputs": outputs}


_INFER: Any = {"response_model": schema.InferReply, "openapi_extra": _takes(schema.InferRequest)}


@_routes.post(f"{_MODEL}/infer", **_INFER)
@_routes.post(f"{_MODEL_VERSION}/infer", name="version_infer", **_INFER, **_VERSION)
async def infer(service: Named, request: fastapi.Request) -> Response:
    """Answers questions that come as tensors of text."""
    return await _reply(service, request, read_tensors)


@_routes.get("/metrics", include_in_schema=False)
async def metrics() -> Response:
    """The metrics, for Prometheus."""
    return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)


async def _reply(
    service: Service, request: fastapi.Request, read: Callable[..., Request]
) -> Response:
    service.check_ready()
    body = Body.of(await request.body(), request.headers, read is read_tensors)
    try:
        return JSONResponse(await service.answer(body, read))
    except RefusedError:
        raise
    except Exception as error:
        logging.error("a request failed", exc_info=error)
        message = "the model failed; the server's log says how"
        raise RefusedError("failed", message, status=500) from None


def make_app(service: Service, log: Callable[[str], None]) -> RequestLimits:
    """The ASGI application that serves one model."""
    app = _App(
        title="mate_tf",
        summary="Questions about tables, in KServe's protocols.",
        version=mate_tf.__version__,
        redoc_url=None,
        redirect_slashes=False,
        responses={status: {"model": schema.Refusal} for status in ("4XX", "5XX")},
    )
    app.state.service = service
    app.include_router(_routes)

    async def refuse(request: fastapi.Request, error: Any) -> Response:
        if isinstance(error, HTTPException):
            code = {404: "not_found", 405: "wrong_method"}.get(error.status_code, "not_accepted")
            refused = RefusedError(code, str(error.detail), status=error.status_code)
            refused.headers |= error.headers or {}
        else:
            refused = error
        request.scope[CODE] = refused.code
        return Response(refused.body, refused.status, refused.headers)

    app.add_exception_handler(HTTPException, refuse)
    app.add_exception_handler(RefusedError, refuse)
    return RequestLimits(app, service.limits, _count_refused, _TIMES.observe, log)


class Server(uvicorn.Server):
    """Serves an application until SIGTERM or SIGINT, or until `should_exit`.

    It then answers what waits, and is gone within the grace period whatever still computes.
    """

    def __init__(self, app: RequestLimits, limits: Limits):
        config = uvicorn.Config(
            app,
            http="h11",
            h11_max_incomplete_event_size=_HEAD_BYTES,
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="error",  # not a warning for each request that is not HTTP
            access_log=False,
            server_header=False,
            proxy_headers=False,  # the log has the address of whoever is connected
            timeout_graceful_shutdown=max(1, int(limits.grace_seconds) - 1),
        )
        connections = Connections(limits.max_connections, limits.body_seconds, _count_refused)
        config.load()
        inner: Any = config.http_protocol_class
        config.http_protocol_class = connections.protocol(inner)
        super().__init__(config)
        self._grace_seconds = limits.grace_seconds

    def handle_exit(self, sig: int, frame: Any) -> None:
        end = threading.Timer(self._grace_seconds, os._exit, [1])
        end.daemon = True
        end.start()
        super().handle_exit(sig, frame)
