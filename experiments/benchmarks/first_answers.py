"""How long the first questions take in a process that lives, with the runtime of TensorFlow.

    python -m experiments.benchmarks.first_answers

Prints the processor's model and the CPU seconds, in a new process each, of a question about the
first table, of 12 rows, about a second one of 50 and a third one of 200. Medians of --rounds.
"""

import statistics
import time
from typing import Any

from absl import app, flags

from experiments.benchmarks.runners import in_its_own_process, processor

_ROUNDS = flags.DEFINE_integer("rounds", 3, "how many processes are started", lower_bound=1)
_ROWS = {"first table": 12, "second table": 50, "third table": 200}


def main(_: Any) -> None:
    """Prints the medians."""
    print(processor())
    rounds = [in_its_own_process(ask) for _ in range(_ROUNDS.value)]
    for (name, num_rows), seconds in zip(_ROWS.items(), zip(*rounds, strict=True), strict=True):
        print(f"{name}, {num_rows} rows: {statistics.median(seconds):.2f} CPU seconds")


def ask() -> list[float]:
    """Asks about the tables; the CPU seconds of each, without those of loading the model."""
    import mate_tf

    predictor, seconds = mate_tf.from_pretrained(runtime="tensorflow"), []
    for num_rows in _ROWS.values():
        rows = tuple(
            (f"name {i}", str(7 * i), f"city {i % 50}", str(1900 + i % 100), f"{i}.5")
            for i in range(num_rows)
        )
        table = mate_tf.Table(("name", "number", "city", "year", "share"), rows)
        start = time.process_time()
        predictor.answer(table, "how many are in city 7?")
        seconds.append(time.process_time() - start)
    return seconds


if __name__ == "__main__":
    app.run(main)
