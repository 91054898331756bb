"""Times what comes before the model: records of WikiTableQuestions, and tables with passages.

    python -m experiments.benchmarks.conversion --wtq_dir=WikiTableQuestions --vocab_file=vocab.txt
    python -m experiments.benchmarks.conversion --vocab_file=vocab.txt \\
        --memory_examples=1000,100000
    python -m experiments.benchmarks.conversion --hybridqa_dir=HybridQA --vocab_file=vocab.txt

--wtq_dir prints how many records one process writes per second. All caches are empty at the start.
"shared" converts the split in its order, as create_data does, so questions about one table share
its work. "alone" empties the caches before each question.

--memory_examples writes JSON Lines files with that many generated tables of ten rows, each with one
question. It prints the peak memory of create_data for each file.

--hybridqa_dir times the first stage of PointR, with the preset --config and random weights. It
measures how long it takes to put the passages' sentences into a table's cells (TF-IDF), once for a
new table and once for a known one, and compares that with the forward pass.
"""

import functools
import gc
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from absl import flags

from experiments import program
from experiments.benchmarks.runners import features_of, interleaved

_WTQ = flags.DEFINE_string("wtq_dir", None, "folder of the official release")
_HYBRIDQA = flags.DEFINE_string("hybridqa_dir", None, "folder of the official release")
_SPLIT = flags.DEFINE_string("split", "dev", "its split")
_VOCAB = flags.DEFINE_string("vocab_file", None, "BERT's or TAPAS's vocabulary", required=True)
_LENGTHS = flags.DEFINE_list("lengths", ["512", "2048"], "tokens of an example")
_LIMIT = flags.DEFINE_integer("limit", None, "only so many questions", lower_bound=1)
_ALONE = flags.DEFINE_integer("alone", 500, "questions that are timed alone", lower_bound=1)
_MEMORY = flags.DEFINE_list("memory_examples", [], "numbers of examples, for the memory")
_CONFIG = flags.DEFINE_string("config", "pointr_hybridqa_minilm", "a preset pointr_...")
_ROUNDS = flags.DEFINE_integer("rounds", 5, "repetitions for HybridQA, of which the median")


def records_per_second(wordpiece, parts: list, length: int) -> float:
    """Converts lists of questions, each with empty caches, to a file in a temporary folder."""
    from mate_tf.datasets.tasks import TASKS
    from mate_tf.features.builder import FeatureBuilder
    from mate_tf.features.config import FeatureConfig
    from mate_tf.records.conversion import convert_all
    from mate_tf.records.records import record_writer, serialize_example

    config = FeatureConfig(max_seq_length=length, trim_cells=True)
    count, seconds = 0, 0.0
    with tempfile.TemporaryDirectory() as folder, record_writer(f"{folder}/timed") as writer:
        for pairs in parts:
            clear_caches()
            builder = FeatureBuilder(wordpiece, config)
            begin = time.perf_counter()
            for outcome in convert_all(TASKS["WTQ"], builder, pairs, is_training=False):
                if outcome.features is not None:
                    writer.write(serialize_example(outcome.features))
                    count += 1
            seconds += time.perf_counter() - begin
    return count / seconds


def clear_caches() -> None:
    """Empties every functools cache of the library's modules."""
    for name, module in list(sys.modules.items()):
        if name.startswith(("mate_tf.tables", "mate_tf.features", "mate_tf.datasets")):
            for function in vars(module).values():
                getattr(function, "cache_clear", lambda: None)()
    gc.collect()


def print_speed() -> None:
    from mate_tf.datasets.wtq import read_wtq
    from mate_tf.features.wordpiece import Wordpiece

    wordpiece = Wordpiece(_VOCAB.value)
    wordpiece.ids(["one", "two"])  # traces the tokenizer's graph
    pairs = list(itertools.islice(read_wtq(_WTQ.value, _SPLIT.value), _LIMIT.value))
    lengths = [int(length) for length in _LENGTHS.value]
    print(f"{len(pairs)} questions of {_SPLIT.value}, {len({t for t, _ in pairs})} tables\n")
    print("| records per second |" + "".join(f" {length:,} tokens |" for length in lengths))
    print("|---|" + "---:|" * len(lengths))
    for name, parts in (("shared", [pairs]), ("alone", [[one] for one in pairs[: _ALONE.value]])):
        cells = [records_per_second(wordpiece, parts, length) for length in lengths]
        print(f"| {name} |" + "".join(f" {cell:,.0f} |" for cell in cells), flush=True)


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


def print_expansion() -> None:
    import numpy as np
    import tensorflow as tf

    from mate_tf.datasets import passages
    from mate_tf.datasets.tasks import read_split
    from mate_tf.features.builder import FeatureBuilder
    from mate_tf.features.wordpiece import Wordpiece
    from mate_tf.pointr.inputs import expand, pointing_features, restrict
    from mate_tf.training.examples import build_model
    from mate_tf.training.starting_points import check_kind, make_config

    config = make_config(_CONFIG.value, None, [])
    check_kind(config, _CONFIG.value, "pointr")
    features = pointing_features(config.point.max_seq_length)
    builder = FeatureBuilder(Wordpiece(_VOCAB.value), features)
    model = build_model(config.point)
    forward = tf.function(lambda features: model(features, training=False))
    questions = read_split("HYBRIDQA", _HYBRIDQA.value, _SPLIT.value)
    times = []
    for linked, question in itertools.islice(questions, _LIMIT.value or 100):
        given = config.inputs, restrict(linked, config.inputs.evidence), question
        example = builder.build(expand(*given), question, require_answers=False)
        length = config.point.encoder.fixed_length or example.report.num_tokens
        batch = features_of(example, length)
        runners: dict[str, Callable[[], Any]] = {
            "forget": passages.forget_tables,
            "new": functools.partial(expand, *given),
            "known": functools.partial(expand, *given),
            "pass": functools.partial(forward, batch),
        }
        seconds = interleaved(runners, _ROUNDS.value)
        times.append([1000 * np.median(seconds[name]) for name in ("new", "known", "pass")])
    new, known, passes = np.array(times).T
    print(f"{len(times)} questions, {np.median(passes):.1f} ms a forward pass (median)\n")
    print("| table | milliseconds | share of the forward pass | largest share |\n|---|---|---|---|")
    for name, taken in (("new", new), ("known", known)):
        share = taken / passes
        print(f"| {name} | {np.median(taken):.2f} | {np.median(share):.1%} | {share.max():.1%} |")


def main(_) -> None:
    if _WTQ.value:
        print_speed()
    if _MEMORY.value:
        print("\n| examples | most memory, MB |\n|---:|---:|")
        with tempfile.TemporaryDirectory() as folder:
            for count in map(int, _MEMORY.value):
                megabytes = peak_memory(pathlib.Path(folder), count)
                print(f"| {count:,} | {megabytes:,.0f} |", flush=True)
    if _HYBRIDQA.value:
        print_expansion()


if __name__ == "__main__":
    program.run(main)
