"""What Prometheus is told, beside what KServe and the Python client tell it."""

from collections.abc import Callable

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_QUESTIONS = (1, 2, 4, 8, 16, 32, 64, 128)


class Metrics:
    """Counts of what a server does.

    Attributes:
        questions: questions that were answered.
        seconds: of each request, from its first byte to its reply.
        batch: how many questions were answered at once.
        refused: requests that were not answered, by the code that the client got.
    """

    def __init__(self, registry: CollectorRegistry = REGISTRY):
        self._registry = registry
        self.questions = Counter(
            "mate_tf_questions", "questions that were answered", registry=registry
        )
        self.seconds = Histogram(
            "mate_tf_request_seconds",
            "seconds from a request's head to its reply",
            buckets=_SECONDS,
            registry=registry,
        )
        self.batch = Histogram(
            "mate_tf_batch_questions",
            "questions that were answered at once",
            buckets=_QUESTIONS,
            registry=registry,
        )
        self.refused = Counter(
            "mate_tf_refused",
            "requests that were not answered, by reason",
            ["code"],
            registry=registry,
        )

    def watch_queue(self, length: Callable[[], int]) -> None:
        """Tells how many questions wait, which the function says when it is asked."""
        Gauge(
            "mate_tf_waiting_questions", "questions that wait", registry=self._registry
        ).set_function(length)
