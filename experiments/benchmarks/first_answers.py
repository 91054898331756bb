"""How long questions take in a process that lives, the first about a table and later ones.

    python -m experiments.benchmarks.first_answers
    python -m experiments.benchmarks.first_answers --dtype=mixed_bfloat16
    python -m experiments.benchmarks.first_answers --runtime=onnx

Prints the processor's model and the CPU seconds, in a new process each, of a question about the
first table, of 12 rows, about a second one of 50 and a third one of 200, and then the median of
more questions about it. Medians of --rounds.
"""

import statistics
import time
from typing import Any

from absl import app, flags

from experiments.benchmarks.runners import in_its_own_process, processor

_ROUNDS = flags.DEFINE_integer("rounds", 3, "how many processes are started", lower_bound=1)
_RUNTIME = flags.DEFINE_enum("runtime", "tensorflow", ["tensorflow", "onnx"], "what computes")
_DTYPE = flags.DEFINE_string("dtype", None, "as of from_pretrained")
_MORE = 9  # questions about each table
_ROWS = {"first table": 12, "second table": 50, "third table": 200}


def main(_: Any) -> None:
    """Prints the medians."""
    print(processor())
    given = _RUNTIME.value, _DTYPE.value
    rounds = [in_its_own_process(ask, *given) for _ in range(_ROUNDS.value)]
    for (name, num_rows), times in zip(_ROWS.items(), zip(*rounds, strict=True), strict=True):
        first, more = map(statistics.median, zip(*times, strict=True))
        print(f"{name}, {num_rows} rows: {first:.2f} CPU seconds, then {more:.3f}")


def ask(runtime: Any, dtype: str | None) -> list[tuple[float, float]]:
    """Asks about the tables; the CPU seconds of the first question about each, and of others.

    They are without those of loading the model.
    """
    import mate_tf

    predictor, seconds = mate_tf.from_pretrained(runtime=runtime, dtype=dtype), []
    for num_rows in _ROWS.values():
        rows = tuple(
            (f"name {i}", str(7 * i), f"city {i % 50}", str(1900 + i % 100), f"{i}.5")
            for i in range(num_rows)
        )
        table = mate_tf.Table(("name", "number", "city", "year", "share"), rows)
        times = []
        for city in range(1 + _MORE):
            start = time.process_time()
            predictor.answer(table, f"how many are in city {city}?")
            times.append(time.process_time() - start)
        seconds.append((times[0], statistics.median(times[1:])))
    return seconds


if __name__ == "__main__":
    app.run(main)
