"""Tries this project on a machine with a GPU, by TensorFlow itself, and writes a report to send.

    scripts/try_gpu.sh                        # all ten steps, about an hour
    scripts/try_gpu.sh --only=limit,losses    # some of them
    scripts/try_gpu.sh --small                # tiny models, without a GPU too: some minutes

    devices     what TensorFlow finds
    limit       products of large matrices, and bytes copied, a second: what the card can do
    train       mate-tf data and mate-tf train on the demo's questions
    pretrain    masked words of 128 tokens, from tables on, BERT base's size and MiniLM's
    finetune    questions of 2,048 tokens, from tables on, both sizes
    losses      the first losses of MATE (window and exact), TAPAS and TableFormer, and a CPU's
    speed       their training steps at 128 and 2,048 tokens: examples a second and memory, float32
                and bfloat16, without XLA and with it, beside the bare products of the same size
    strategies  the losses of one device and of MirroredStrategy
    profile     the five costliest operations of a step
    answers     ask, predict and serve, and the answers of a CPU

Each step prints a line. One that fails is reported, and the others go on. {output_dir}/report.json
has all, and is complete after each step.
"""

import itertools
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from absl import flags

from experiments import program
from experiments.benchmarks import runners
from experiments.benchmarks.runners import in_its_own_process, scalars, started, wait_for
from mate_tf.evaluation.predictions import read_predictions
from mate_tf.private_apis import profiled_seconds

_SMALL = flags.DEFINE_bool("small", False, "tiny models and few steps, on a CPU where no GPU is")
_OUTPUT, _ONLY = program.define_steps("out/try_gpu")

_DEMO = "experiments/demo_data"
_MODEL = "mate_tf/default_model"
_PRESETS = {  # by size, to pre-train and to fine-tune
    "base": ("mlm_mate_base", "wtq_mate_base_2048"),
    "minilm": ("mlm_minilm", "wtq_minilm_2048"),
}
_ARCHITECTURES = ("mate", "mate_exact", "tapas", "tableformer_pcp")
_BATCHES = {("base", 128): 32, ("base", 2048): 4, ("minilm", 128): 64, ("minilm", 2048): 8}
_LOSS_TOLERANCE = 1e-3  # of what is equal but for the order of sums
_FULL_PRECISION = {"NVIDIA_TF32_OVERRIDE": "0"}  # or products have 10 bits, in float32 too
_QUESTION, _ANSWER = "which missions flew in 1969?", "Apollo 11, Apollo 12"
Result = dict[str, Any]


class Trial:
    """The steps share a folder, the sizes, and whether there is a GPU."""

    def __init__(self, folder: pathlib.Path, is_small: bool) -> None:
        self.folder = folder
        self.is_small = is_small
        self.has_gpu = False
        few = 1 if is_small else None  # of each list
        self.presets = dict(list(_PRESETS.items())[:few])
        self.architectures = _ARCHITECTURES[:few]
        self.batches = list(_BATCHES)[:few]
        self.model = _MODEL  # the one that `train` makes, once it has

    def run(self, module: str, *arguments: str, **environment: str) -> str:
        """The output of a program; RuntimeError with its last lines if it fails."""
        done = subprocess.run(
            [sys.executable, "-m", module, *arguments],
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | environment,
        )
        if done.returncode:
            last = " ".join((done.stdout + done.stderr).strip().splitlines()[-4:])
            raise RuntimeError(f"{module} ended with {done.returncode}: {last[-1000:]}")
        return done.stdout

    def records(self) -> str:
        """The folder of the demo's questions as records of at most 2,048 tokens."""
        folder = self.folder / "records"
        if not (folder / "dev.jsonl").exists():
            length = 64 if self.is_small else 2048
            folders = f"--input-dir={_DEMO}", f"--output-dir={folder}"
            self.run("mate_tf", "data", *folders, f"--max-seq-length={length}")
        return str(folder)

    def trained(self, module: str, name: str, data: str, *arguments: str, **environment) -> Result:
        """The summary of a run that a program trains."""
        folder = self.folder / name
        folders = f"--data_dir={data}", f"--model_dir={folder}"
        self.run(module, *folders, *arguments, **environment)
        return self.summary(folder)

    def summary(self, run_folder: pathlib.Path) -> Result:
        """The losses of a run, and its examples a second at last."""
        found = scalars(run_folder / "train")
        speed = [*found["examples_per_second"].values()][-1]
        return {"losses": [*found["loss"].values()], "examples_per_second": speed}

    def few(self, num_steps: int, interval: int, batch_size: int) -> list[str]:
        """The flags of a short training with a point in TensorBoard every few steps."""
        values: Result = dict(num_steps=num_steps, eval_interval=num_steps, batch_size=batch_size)
        values |= dict(checkpoint_interval=num_steps, summary_interval=interval, length_buckets="")
        values["eval_batch_size"] = batch_size
        if self.is_small:
            values |= {f"encoder.{name}": it for name, it in runners.SIZES["tiny"].items()}
            values |= {"num_steps": 2, "summary_interval": 1, "encoder.num_layers": 1}
            values |= dict.fromkeys(("eval_interval", "checkpoint_interval", "batch_size"), 2)
        return [f"--config.{name}={value}" for name, value in values.items()]

    def options(self, size: str, length: int, dtype: str) -> Result:
        """Those of the benchmarks, of a model of a size."""
        own = dict(size=size, length=length, batch_size=_BATCHES[size, length])
        if self.is_small:
            own = dict(size="tiny", length=64, batch_size=2)
        layers = 1 if self.is_small else {"base": 12, "minilm": 6}[size]
        return own | dict(dtype=dtype, threads=0, num_layers=layers, columns=8, cell_tokens=2)


def devices(trial: Trial) -> Result:
    found = in_its_own_process(_find_devices)
    trial.has_gpu = bool(found["gpus"])
    return found


def _find_devices() -> Result:
    import tensorflow as tf

    details = tf.config.experimental.get_device_details
    build = tf.sysconfig.get_build_info()
    return {
        "python": sys.version.split()[0],
        "tensorflow": tf.__version__,
        **{name: str(build[name]) for name in ("cuda_version", "cudnn_version") if name in build},
        "gpus": [
            details(gpu).get("device_name", "unknown")
            for gpu in tf.config.list_physical_devices("GPU")
        ],
        "cores": os.cpu_count(),
    }


def limit(trial: Trial) -> Result:
    return in_its_own_process(_measure_limit, 256 if trial.is_small else 8192)


def _measure_limit(size: int, repeats: int = 10) -> Result:
    """The best of five: TFLOP a second of square matrices, and GB a second read and written."""
    import tensorflow as tf

    def seconds(function: Callable, *inputs: tf.Tensor) -> float:
        def repeated(first: tf.Tensor, *others: tf.Tensor) -> tf.Tensor:
            for _ in range(repeats):
                first = function(first, *others)
            return first[0, 0]

        compiled = tf.function(repeated, autograph=False)
        times = []
        for _ in range(6):
            start = time.perf_counter()
            compiled(*inputs).numpy()
            times.append(time.perf_counter() - start)
        return min(times[1:]) / repeats

    result: Result = {}
    for dtype in ("float32", "bfloat16"):
        matrix = tf.cast(tf.random.normal([size, size], stddev=size**-0.5), dtype)
        result[f"{dtype}_tflops"] = 2 * size**3 / seconds(tf.matmul, matrix, matrix) / 1e12
    numbers = tf.random.normal([size, size])  # two are read and one is written
    result["gb_per_second"] = 3 * 4 * size**2 / seconds(tf.maximum, numbers, -numbers) / 1e9
    return result


def train(trial: Trial) -> Result:
    """As a user does, with the number of steps that fits the questions."""
    folders = f"--data-dir={trial.records()}", f"--model-dir={trial.folder / 'run'}"
    few = [*trial.few(2, 1, 2), "--init-checkpoint=none"] if trial.is_small else []
    printed = trial.run("mate_tf", "train", *folders, *few)
    if not trial.is_small:
        trial.model = str(trial.folder / "run")
    printed_last = printed.strip().splitlines()[-4:]
    return trial.summary(trial.folder / "run") | {"printed": printed_last}


def pretrain(trial: Trial) -> Result:
    data = trial.folder / "masked_words"
    trial.run(
        "experiments.create_pretraining_data",
        *("--task=TABLES", f"--input_dir={_DEMO}", f"--output_dir={data}"),
        f"--vocab_file={_MODEL}/vocab.txt",
    )
    return _each(
        trial.presets,
        lambda size: trial.trained(
            "experiments.pretrain",
            f"pretrain_{size}",
            str(data),
            *(f"--config={_PRESETS[size][0]}", "--config.eval_examples=16"),
            *trial.few(40, 20, _BATCHES[size, 128]),
        ),
    )


def finetune(trial: Trial) -> Result:
    return _each(
        trial.presets,
        lambda size: trial.trained(
            "experiments.finetune",
            f"finetune_{size}",
            trial.records(),
            *(f"--config={_PRESETS[size][1]}", "--config.eval_questions=4"),
            *trial.few(40, 20, _BATCHES[size, 2048]),
            *(["--config.max_seq_length=64"] if trial.is_small else []),
        ),
    )


def _each(names: Iterable[str], measure: Callable[[str], Result]) -> Result:
    """The results by name, each printed; an error does not keep the others from being made."""
    results: Result = {}
    for name in names:
        try:
            results[name] = measure(name)
        except Exception as error:  # such as no room for it
            results[name] = {"error": _message(error)}
        print(f"   {name}: {_line(results[name])}", flush=True)
    failed = [name for name in results if "error" in results[name]]
    message = f"{len(failed)} of {len(results)} failed: {', '.join(failed)}"
    return {"each": results} | ({"error": message} if failed else {})


def _first_losses(trial: Trial, name: str, *arguments: str) -> list[float]:
    """Of five steps from the package's model, without dropout, in full precision."""
    made = trial.trained(
        "experiments.finetune",
        name,
        trial.records(),
        *("--config=table_questions", "--config.dtype=float32", "--config.eval_questions=1"),
        *("--config.known_share=0", "--config.ema_decay=none"),
        f"--config.max_seq_length={64 if trial.is_small else 2048}",
        f"--init_checkpoint={'none' if trial.is_small else _MODEL}",
        *trial.few(5, 1, 8),  # as many as GPUs may share
        *arguments,
        **_FULL_PRECISION,
    )
    return made["losses"]


def _compared(here: list[float], there: list[float]) -> Result:
    """Two runs' losses and the largest relative difference; ValueError beyond the tolerance."""
    differences = [abs(a - b) / abs(b) for a, b in zip(here, there, strict=True)]
    if not all(difference <= _LOSS_TOLERANCE for difference in differences):
        raise ValueError(f"expected losses alike to {_LOSS_TOLERANCE}, got {here} and {there}")
    return {"losses": here, "largest_difference": max(differences)}


def losses(trial: Trial) -> Result:
    """Of a device beside a CPU; without a GPU it is a CPU beside itself."""

    def compare(name: str) -> Result:
        architecture = f"--architecture={name}"
        here = _first_losses(trial, f"losses_{name}", architecture)
        return _compared(
            here, _first_losses(trial, f"losses_{name}_cpu", architecture, "--num_gpus=0")
        )

    return _each(trial.architectures, compare)


def strategies(trial: Trial) -> Result:
    more = ["--distribution_strategy=mirrored"]
    if not trial.has_gpu:
        more.append("--num_virtual_cpus=2")
    one = _first_losses(trial, "one_device", "--distribution_strategy=one_device")
    return _compared(_first_losses(trial, "mirrored", *more), one)


def speed(trial: Trial) -> Result:
    xla = "--tf_xla_auto_jit=2" + ("" if trial.has_gpu else " --tf_xla_cpu_global_jit")
    kinds = (("float32", ""), ("mixed_bfloat16", ""), ("mixed_bfloat16", xla))
    measured = {
        f"{size} {length} {dtype} {name}{' XLA' if flags_of_xla else ''}": (
            name.removesuffix("_pcp"),  # the ids that it leaves out cost next to nothing
            trial.options(size, length, dtype),
            flags_of_xla,
        )
        for (size, length), (dtype, flags_of_xla) in itertools.product(trial.batches, kinds)
        for name in [*([] if flags_of_xla else ["limit"]), *trial.architectures]
    }
    return _each(measured, lambda label: _measure_speed(*measured[label]))


def _measure_speed(name: str, options: Result, flags_of_xla: str) -> Result:
    os.environ["TF_XLA_FLAGS"] = flags_of_xla
    try:
        measured = in_its_own_process(runners.measure_training, name, options, 5)
    finally:
        del os.environ["TF_XLA_FLAGS"]
    median = statistics.median(measured["seconds"])
    examples = {"examples_per_second": options["batch_size"] / median}
    return {"ms": 1000 * median, **examples, "mb": measured["megabytes"]}


def profile(trial: Trial) -> Result:
    options = trial.options("base", 2048, "mixed_bfloat16")
    return in_its_own_process(_profile, options, str(trial.folder / "profile"))


def _profile(options: Result, folder: str) -> Result:
    """The milliseconds of the five operations that take the longest in three steps, each a step."""
    import tensorflow as tf

    runners.set_up(options["threads"], options["dtype"])
    step = runners.training_step(runners.encoder_config("mate", options), options)
    for _ in range(2):
        step()
    tf.profiler.experimental.start(folder)
    for _ in range(3):
        step()
    tf.profiler.experimental.stop()
    seconds = profiled_seconds(pathlib.Path(folder))
    costliest = sorted(seconds.items(), key=lambda it: -it[1])[:5]
    if not costliest:
        raise ValueError(f"expected operations in the profile in {folder}, found none")
    total = {"all operations": sum(seconds.values())}
    return {name: 1000 * taken / 3 for name, taken in (total | dict(costliest)).items()}


def answers(trial: Trial) -> Result:
    table = f"{_DEMO}/moon_landings.csv"
    asked = trial.run("mate_tf", "ask", table, _QUESTION)
    _check_answer(asked.splitlines()[0].removeprefix("answer: "))
    data = f"--data={trial.records()}/dev.jsonl"
    limit = ["--limit=4"] if trial.is_small else []
    texts = {}
    for device, flags_of_device in (("here", []), ("cpu", ["--num-gpus=0"])):
        output = trial.folder / f"answers_{device}.jsonl"
        arguments = [f"--model={trial.model}", data, f"--output={output}", *limit]
        trial.run("mate_tf", "predict", *arguments, *flags_of_device, **_FULL_PRECISION)
        texts[device] = [it.text for it in read_predictions(output).values()]
    predictions = f"--predictions={trial.folder / 'answers_here.jsonl'}"
    scored = json.loads(trial.run("mate_tf", "evaluate", data, predictions, *limit, "--json"))
    differ = sum(a != b for a, b in zip(*texts.values(), strict=True))
    if differ > len(texts["cpu"]) / 50:
        raise ValueError(f"expected the answers of a CPU, got {differ} others")
    return {
        "accuracy": scored["scores"]["denotation_accuracy"],
        "differ_from_cpu": differ,
        "seconds_served": _served(pathlib.Path(table).read_text(encoding="utf-8")),
    }


def _check_answer(text: str) -> None:
    if text != _ANSWER:
        raise ValueError(f"expected {_ANSWER!r} to {_QUESTION!r}, got {text!r}")


def _served(table: str) -> float:
    """The seconds of the second request to a server that answers by TensorFlow (--architecture)."""
    options = "--port=0", "--name=tables", "--architecture=mate_exact", "--max-tokens=512"
    with started("serve", *options) as (process, log, url):
        wait_for(log, process, "^ready")
        body = json.dumps({"instances": [{"question": _QUESTION, "table": table}]}).encode()
        for _ in range(2):
            start = time.perf_counter()
            request = urllib.request.Request(f"{url}v1/models/tables:predict", body)
            with urllib.request.urlopen(request) as reply:
                _check_answer(json.load(reply)["predictions"][0]["answer"])
        return time.perf_counter() - start


STEPS: dict[str, Callable[[Trial], Result]] = {
    step.__name__: step
    for step in (
        *(devices, limit, train, pretrain, finetune),
        *(losses, speed, strategies, profile, answers),
    )
}


def try_steps(trial: Trial, names: list[str]) -> Iterator[tuple[str, Result]]:
    """The name of each step and its result; of a step that fails its error."""
    for name in names:
        start = time.monotonic()
        try:
            result = STEPS[name](trial)
        except Exception as error:
            result = {"error": _message(error)}
        yield name, result | {"seconds": time.monotonic() - start}


def _message(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:1500]}"


def _line(result: Result) -> str:
    """A result on a line: numbers in short, the first and last of several."""
    parts = []
    for name, value in result.items():
        if isinstance(value, dict):
            value = f"({_line(value)})" if len(value) <= 6 else f"({len(value)} measured)"
        elif isinstance(value, list):
            ends = [value[0], value[-1]] if len(value) > 2 else value
            value = " ... ".join(f"{it:.4g}" if isinstance(it, float) else str(it) for it in ends)
        elif isinstance(value, float):
            value = f"{value:.4g}"
        parts.append(f"{name} {value}")
    return ", ".join(parts)


def main(_: list[str]) -> int:
    import tensorflow as tf

    names = _ONLY.value or list(STEPS)
    if unknown := [name for name in names if name not in STEPS]:
        raise ValueError(f"expected --only among {', '.join(STEPS)}, got {unknown[0]!r}")
    folder = pathlib.Path(_OUTPUT.value).absolute()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    tf.config.set_visible_devices([], "GPU")  # here: the programs of the steps need all of it
    trial = Trial(folder, _SMALL.value)
    report: Result = {}
    for name, result in try_steps(trial, ["devices", *(n for n in names if n != "devices")]):
        report[name] = result
        kind = "FAILED" if "error" in result else "ok"
        print(f"{list(STEPS).index(name) + 1:2} {name}: {kind}, {_line(result)}", flush=True)
        (folder / "report.json").write_text(json.dumps(report, indent=1), encoding="utf-8")
        if name == "devices" and not (trial.has_gpu or trial.is_small):
            raise ValueError(
                "expected a GPU, got none: nvidia-smi has to list one, and TensorFlow to have CUDA "
                "(pip install 'tensorflow[and-cuda]'); --small tries tiny models on a CPU"
            )
    print(f"written to {folder / 'report.json'}")
    return int(any("error" in result for result in report.values()))


if __name__ == "__main__":
    program.run(main)
