"""Times the conversion of WikiTableQuestions to records, in one process, and its memory.

    python -m experiments.benchmarks.conversion --wtq_dir=WikiTableQuestions --vocab_file=vocab.txt
    python -m experiments.benchmarks.conversion --vocab_file=vocab.txt \\
        --memory_examples=1000,100000

From a table and a question to a written record, in the split's own order, with all caches empty
at the beginning; reading the official files and tracing the tokenizer's graph are not counted.
"shared" is as create_data does it: what questions of a table have in common is done once. "alone"
empties the caches before each question. Prints a Markdown table of records written per second.

With --memory_examples also converts JSON Lines files of so many made-up tables of ten rows with a
question each, by create_data in a process of its own, and prints a table of the most memory held.
"""

import gc
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from absl import flags

from experiments import program

_WTQ = flags.DEFINE_string("wtq_dir", None, "folder of the official release, for the speed")
_SPLIT = flags.DEFINE_string("split", "dev", "its split")
_VOCAB = flags.DEFINE_string("vocab_file", None, "BERT's or TAPAS's vocabulary", required=True)
_LENGTHS = flags.DEFINE_list("lengths", ["512", "2048"], "tokens of an example")
_LIMIT = flags.DEFINE_integer("limit", None, "only so many questions", lower_bound=1)
_ALONE = flags.DEFINE_integer(
    "alone", 500, "questions of which the time alone is measured", lower_bound=1
)
_MEMORY = flags.DEFINE_list("memory_examples", [], "numbers of examples, for the memory")


def clear_caches() -> None:
    """Empties every functools cache of the library's modules."""
    for name, module in list(sys.modules.items()):
        if name.startswith(("mate_tf.tables", "mate_tf.features", "mate_tf.datasets")):
            for function in vars(module).values():
                getattr(function, "cache_clear", lambda: None)()
    gc.collect()


def records_per_second(wordpiece, pairs, length: int, is_shared: bool) -> float:
    """Converts the questions to a file in a temporary folder."""
    from mate_tf.datasets.tasks import TASKS
    from mate_tf.features.builder import FeatureBuilder
    from mate_tf.features.config import FeatureConfig
    from mate_tf.records.conversion import convert_all
    from mate_tf.records.records import record_writer, serialize_example

    config = FeatureConfig(max_seq_length=length, trim_cells=True)
    count, seconds = 0, 0.0
    with tempfile.TemporaryDirectory() as folder, record_writer(f"{folder}/timed") as writer:
        for part in [pairs] if is_shared else [[pair] for pair in pairs]:
            clear_caches()
            builder = FeatureBuilder(wordpiece, config)
            begin = time.perf_counter()
            for outcome in convert_all(TASKS["WTQ"], builder, part, is_training=False):
                if outcome.features is not None:
                    writer.write(serialize_example(outcome.features))
                    count += 1
            seconds += time.perf_counter() - begin
    return count / seconds


def peak_memory(folder: pathlib.Path, count: int) -> float:
    """The most memory that create_data holds for so many examples, in megabytes."""
    source = folder / f"in_{count}"
    source.mkdir()
    with open(source / "train.jsonl", "w", encoding="utf-8") as file:
        for number in range(count):
            rows = [[f"city {number} {row}", f"{number * row % 977}"] for row in range(10)]
            table = {"id": f"table {number}", "header": ["city", "people"], "rows": rows}
            question = {"question": "which city?", "answers": [rows[3][0]], "table": table}
            file.write(json.dumps(question) + "\n")
    command = [
        *(sys.executable, "-m", "experiments.create_data", "--task=JSONL", "--max_seq_length=128"),
        f"--input_dir={source}",
        f"--output_dir={folder / f'out_{count}'}",
        f"--vocab_file={_VOCAB.value}",
    ]
    with open(folder / "log", "w+", encoding="utf-8") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            log.seek(0)
            raise OSError(f"create_data failed: {log.read().strip().splitlines()[-1]}")
    return usage.ru_maxrss / 1024


def main(_) -> None:
    from mate_tf.datasets.wtq import read_wtq
    from mate_tf.features.wordpiece import Wordpiece

    if _WTQ.value:
        lengths = [int(length) for length in _LENGTHS.value]
        wordpiece = Wordpiece(_VOCAB.value)
        wordpiece.ids(["one", "two"])
        pairs = list(itertools.islice(read_wtq(_WTQ.value, _SPLIT.value), _LIMIT.value))
        print(f"{len(pairs)} questions of {_SPLIT.value}, {len({t for t, _ in pairs})} tables\n")
        print("| records per second |" + "".join(f" {length:,} tokens |" for length in lengths))
        print("|---|" + "---:|" * len(lengths))
        for name, is_shared in (("shared", True), ("alone", False)):
            some = pairs if is_shared else pairs[: _ALONE.value]
            cells = [records_per_second(wordpiece, some, n, is_shared) for n in lengths]
            print(f"| {name} |" + "".join(f" {cell:,.0f} |" for cell in cells), flush=True)
    if _MEMORY.value:
        print("\n| examples | most memory, MB |\n|---:|---:|")
        with tempfile.TemporaryDirectory() as folder:
            for count in map(int, _MEMORY.value):
                megabytes = peak_memory(pathlib.Path(folder), count)
                print(f"| {count:,} | {megabytes:,.0f} |", flush=True)


if __name__ == "__main__":
    program.run(main)
