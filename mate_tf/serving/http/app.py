"""KServe's model server with a predictor behind it, and only the routes that tables need.

KServe gives the model's frame, the V1 and V2 endpoints and their metrics. Its own start would also
open gRPC, V2 inference of tensors, loading by name and CloudEvents, so the routes are listed here.
"""

import asyncio
import socket
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import fastapi
import kserve
import orjson
import uvicorn
from absl import logging
from kserve.errors import ModelNotFound, ModelNotReady
from kserve.protocol.dataplane import DataPlane
from kserve.protocol.rest.server import metrics_handler
from kserve.protocol.rest.v1_endpoints import V1Endpoints
from kserve.protocol.rest.v2_endpoints import V2Endpoints
from prometheus_client import Counter, Gauge, Histogram
from starlette.exceptions import HTTPException

from mate_tf.features.config import ConversionError
from mate_tf.serving.http import Limits
from mate_tf.serving.http.batching import Batcher, Pair
from mate_tf.serving.http.limits import Connection, RefusedError, RequestLimits
from mate_tf.serving.http.requests import read_request

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_QUESTIONS = (1, 2, 4, 8, 16, 32, 64, 128)


class Metrics:
    """What Prometheus is told beside KServe's and the Python client's metrics.

    Attributes:
        questions: questions that were answered.
        seconds: of each request, from its first byte to its reply.
        batch: how many questions were answered at once.
        refused: requests that were not answered, by the code that the client got.
    """

    def __init__(self) -> None:
        self.questions = Counter("mate_tf_questions", "questions that were answered")
        self.seconds = Histogram(
            "mate_tf_request_seconds",
            "seconds from a request's head to its reply",
            buckets=_SECONDS,
        )
        self.batch = Histogram(
            "mate_tf_batch_questions", "questions that were answered at once", buckets=_QUESTIONS
        )
        self.refused = Counter(
            "mate_tf_refused", "requests that were not answered, by reason", ["code"]
        )

    def watch_queue(self, length: Callable[[], int]) -> None:
        """Reports how many questions wait, which the function returns."""
        Gauge("mate_tf_waiting_questions", "questions that wait").set_function(length)


_JSON = ("application/json", "application/x-www-form-urlencoded")  # the latter is curl's for --data


class TableModel(kserve.Model):
    """Answers questions about tables through a batcher."""

    def __init__(self, name: str, batcher: Batcher, metrics: Metrics):
        super().__init__(name)
        self._batcher = batcher
        self._metrics = metrics
        self.load()

    async def predict(
        self,
        payload: Sequence[Pair],
        headers: Mapping[str, str] | None = None,
        response_headers: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """The answers to all questions of a request.

        Raises:
            RefusedError: if too many questions wait, or one is beyond the model's limits.
        """
        waiting = [asyncio.wrap_future(future) for future in self._batcher.submit(payload)]
        try:
            results = await asyncio.gather(*waiting)
        finally:
            for future in waiting:  # nobody waits for them where one of them failed
                future.cancel()
        predictions = []
        for index, result in enumerate(results):
            if isinstance(result, ValueError):
                raise _beyond_the_model(result, f"instances[{index}]")
            predictions.append(result.to_dict())
        self._metrics.questions.inc(len(predictions))
        return {"predictions": predictions}


def _beyond_the_model(error: ValueError, where: str) -> RefusedError:
    reason = error.reason if isinstance(error, ConversionError) else "not accepted"
    return RefusedError(reason.replace(" ", "_"), str(error), where, 413)


class _TablesOnly(DataPlane):
    """A data plane that takes only requests of `read_request`, whatever their headers say."""

    def __init__(self, models: kserve.ModelRepository, limits: Limits):
        super().__init__(models)
        self._limits = limits

    def decode(self, body: bytes, headers: Mapping[str, str], *_: Any, **__: Any) -> Any:
        kind = headers.get("content-type", _JSON[0]).partition(";")[0].strip().lower()
        if kind not in _JSON:
            raise RefusedError(
                "not_json", f"expected {_JSON[0]} as content-type, got {kind!r}", "", 415
            )
        return read_request(body, self._limits), {}

    def encode(self, model_name: str, response: Any, *_: Any, **__: Any) -> Any:
        return orjson.dumps(response), {"content-type": _JSON[0]}


def make_app(model: TableModel, limits: Limits, metrics: Metrics) -> RequestLimits:
    """The ASGI application that serves one model."""
    models = kserve.ModelRepository()
    models.update(model)
    plane = _TablesOnly(models, limits)
    v1, v2 = V1Endpoints(plane), V2Endpoints(plane)
    app = fastapi.FastAPI(openapi_url=None, redirect_slashes=False)
    app.add_api_route("/", plane.live)
    app.add_api_route("/metrics", metrics_handler)
    app.add_api_route("/v1/models", v1.models)
    # Before the next, whose name has no end.
    app.add_api_route(
        "/v1/models/{model_name}:predict", v1.predict, methods=["POST"], response_model=None
    )
    app.add_api_route("/v1/models/{model_name}:predict", _not_allowed)
    app.add_api_route("/v1/models/{model_name}", v1.model_ready)
    app.add_api_route("/v2/health/live", v2.live, methods=["GET", "HEAD"])
    app.add_api_route("/v2/health/ready", v2.ready, methods=["GET", "HEAD"])
    app.add_api_route("/v2/models/{model_name}/ready", v2.model_ready)
    _say_errors_alike(app, metrics)
    return RequestLimits(
        app,
        limits.max_body_bytes,
        limits.body_seconds,
        limits.reply_seconds,
        on_refused=lambda code: metrics.refused.labels(code).inc(),
        on_reply=metrics.seconds.observe,
    )


async def _not_allowed() -> None:
    raise HTTPException(405, headers={"Allow": "POST"})


def _say_errors_alike(app: fastapi.FastAPI, metrics: Metrics) -> None:
    def refuse(refused: RefusedError, headers: Mapping[str, str] | None = None) -> fastapi.Response:
        metrics.refused.labels(refused.code).inc()
        sent = refused.headers | dict(headers or {})
        return fastapi.Response(refused.body, refused.status, sent, _JSON[0])

    @app.exception_handler(RefusedError)
    async def refused(_: fastapi.Request, error: RefusedError) -> fastapi.Response:
        return refuse(error)

    @app.exception_handler(ModelNotFound)
    async def no_model(_: fastapi.Request, error: ModelNotFound) -> fastapi.Response:
        return refuse(
            RefusedError("not_found", "expected the name of a model that is served", "", 404)
        )

    @app.exception_handler(ModelNotReady)
    async def not_ready(_: fastapi.Request, error: ModelNotReady) -> fastapi.Response:
        return refuse(RefusedError("not_ready", str(error), status=503, retry_after=1))

    @app.exception_handler(HTTPException)
    async def not_routed(_: fastapi.Request, error: HTTPException) -> fastapi.Response:
        code = {404: "not_found", 405: "wrong_method"}.get(error.status_code, "not_accepted")
        return refuse(
            RefusedError(code, str(error.detail), status=error.status_code), error.headers
        )

    @app.exception_handler(Exception)
    async def failed(_: fastapi.Request, error: Exception) -> fastapi.Response:
        logging.error("a request failed", exc_info=error)
        return refuse(
            RefusedError("failed", "the model failed; the server's log says how", "", 500)
        )


def run(app: Any, listener: socket.socket, limits: Limits, metrics: Metrics) -> None:
    """Serves until SIGTERM or SIGINT, then answers what waits, within the grace period."""

    class Limited(Connection):
        max_connections = limits.max_connections
        head_seconds = limits.body_seconds
        on_refused = staticmethod(lambda code: metrics.refused.labels(code).inc())

    config = uvicorn.Config(
        app,
        http=Limited,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="error",  # not a warning for each request that is not HTTP
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=max(1, round(limits.grace_seconds)),
    )
    uvicorn.Server(config).run(sockets=[listener])
