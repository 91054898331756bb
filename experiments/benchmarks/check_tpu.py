"""Compiles whole training steps of the papers for a TPU v5e or an H100, where there is none.

    make check-tpu
    python -m experiments.benchmarks.check_tpu --steps='hybridqa_mate_large$' --layers=24
    python -m experiments.benchmarks.check_tpu --narrow
    make check-gpu

A step is what one chip does in it: the forward pass with dropout in bfloat16, the loss, the
gradients, clipping and the update of AdamW. TensorFlow writes it as an XLA program, and libtpu, or
XLA's compiler for GPUs, in an environment of its own, compiles that. Each step is compiled with few
layers, and a line through what they need leads to the number of layers of the preset. It prints a
table, and exits with 1 if a step does not compile, has no room on a chip, or has shapes that are
known only when it runs. With --narrow the steps are those of every preset, at a tenth of its width.

Each result is a file of `--tpu_results`, which is made again only for other code or another
compiler. So the program goes on where it stopped.
"""

import dataclasses
import functools
import hashlib
import json
import pathlib
import re
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from absl import flags

from experiments import program
from experiments.benchmarks import private_jax
from experiments.benchmarks.runners import in_its_own_process
from experiments.benchmarks.tpu_compiler import Needs
from experiments.exported.programs import run_of
from mate_tf.config import LinformerConfig
from mate_tf.presets import ARCHITECTURE_PRESETS

_ROOT = pathlib.Path(__file__).parents[2]

_DEVICE = flags.DEFINE_enum("device", "v5e", ["v5e", "h100"], "what it is compiled for")
_RESULTS = flags.DEFINE_string(
    "tpu_results", None, "folder of the results; out/{device} by default"
)
_STEPS = flags.DEFINE_string("steps", "", "regular expression of the steps' names; all by default")
_LAYERS = flags.DEFINE_list("layers", ["2", "3"], "numbers of layers that are compiled")
_NARROW = flags.DEFINE_bool("narrow", False, "every preset at a tenth of its width instead")
_COMPILER = flags.DEFINE_string("compiler", None, "Python of the environment that compiles")

CORES = 32  # of the papers' TPUs, which shared a batch (MATE paper, appendix A.1)


class Chip(NamedTuple):
    """A device, by its maker: memory less what its system takes, and limits a second."""

    environment: str
    memory: float  # bytes
    flops: float  # of bfloat16
    bandwidth: float  # bytes


CHIPS = {
    "v5e": Chip(".venv-tpu", 15.75 * 2**30, 197e12, 819e9),
    "h100": Chip(".venv-gpu", 79.1 * 2**30, 989e12, 3.35e12),
}
_PREDICTIONS = 20  # masked tokens of an example
_GIB = 2**30


@dataclasses.dataclass(frozen=True)
class Step:
    """A training step of a preset, with changes."""

    preset: str  # of experiments/configs
    architecture: str | None = None  # of mate_tf/presets.py; None for the preset's own
    overrides: tuple[str, ...] = ()  # further changes, as of the command line

    @property
    def name(self) -> str:
        changes = [change.partition("=") for change in self.overrides]
        parts = [f"{name.rpartition('.')[2]}={value}" for name, _, value in changes]
        return ":".join([self.preset, *filter(None, [self.architecture]), *parts])

    def config(self, num_layers: int | None = None) -> Any:
        from mate_tf.training.starting_points import make_config

        layers = [] if num_layers is None else [f"--config.encoder.num_layers={num_layers}"]
        return make_config(self.preset, self.architecture, [*self.overrides, *layers])


@dataclasses.dataclass(frozen=True)
class SmallStep:
    """One layer at a tenth of a preset's width, for two examples of at most 256 tokens."""

    name: str
    whole: Any  # the preset's config

    def config(self, num_layers: int | None = None) -> Any:
        encoder, length = self.whole.encoder, min(self.whole.max_seq_length, 256)
        attention, heads = encoder.attention, encoder.num_heads
        if isinstance(attention, LinformerConfig):
            lengths = dict(sequence_length=length, projected_length=length // 8)
            attention = dataclasses.replace(attention, **lengths)
        encoder = dataclasses.replace(
            encoder,
            attention=attention,
            hidden_size=max(1, encoder.hidden_size // 10 // heads) * heads,
            intermediate_size=encoder.intermediate_size // 10,
            num_layers=1,
        )
        sizes = dict(max_seq_length=length, length_buckets=(), batch_size=2)
        sizes |= dict(encoder=encoder, gradient_accumulation_steps=1)
        return dataclasses.replace(self.whole, **sizes)


AnyStep = Step | SmallStep


def small_steps() -> Iterator[SmallStep]:
    """A step of every preset, of a PointR of both of its stages."""
    from mate_tf.training.starting_points import presets

    for name, config in presets().items():
        if hasattr(config, "point"):
            yield SmallStep(f"{name}:point", config.point)
            yield SmallStep(f"{name}:read", config.read)
        else:
            yield SmallStep(name, config)


_LONG = tuple(
    f"--config.{value}" for value in ("max_seq_length=2048", "length_buckets=", "batch_size=128")
)
ATTENTIONS = tuple(
    name
    for name in ARCHITECTURE_PRESETS
    if not re.search("linformer_(128|512)|extended|text_only|(_c|_rc|tableformer)_gp", name)
)
_RECOMPUTED = "--config.recompute=True"
# Changes without which a chip has no room for 4 examples of 2,048 tokens; for those of TableFormer,
# which its paper trains on 512, it has none with them.
_TO_FIT: dict[str, tuple[str, ...]] = {
    name: (_RECOMPUTED,) for name in ATTENTIONS if re.match("tapas|sat|grammar|table", name)
}
_TO_FIT["tableformer_pcp"] += ("--config.batch_size=64",)
# Every attention in pre-training (16 examples of 128 tokens on a chip) and at 2,048 tokens (4 on a
# chip, or 2), and every task.
STEPS = (
    *(Step("mlm_mate_large", None if name == "mate" else name) for name in ATTENTIONS),
    *(
        Step("hybridqa_mate_large", None if name == "mate" else name, _TO_FIT.get(name, ()))
        for name in ATTENTIONS
    ),
    *(Step(f"{task}_large", "mate", _LONG) for task in ("sqa", "wikisql", "wtq", "tabfact")),
    Step("hybridqa_reader_large"),
    Step("hybridqa_mate_large", None, (_RECOMPUTED, "--config.batch_size=512")),
)


def batch(size: int, length: int) -> dict[str, Any]:
    """Zeros for all that any task reads: int32 and float32 [size, length] or less."""
    import tensorflow as tf

    from mate_tf.features.token_features import TokenFeatures

    integers = dict.fromkeys((*TokenFeatures._fields, "label_ids"), length)
    integers |= dict.fromkeys(("masked_lm_ids", "masked_lm_positions"), _PREDICTIONS)
    example_names = "aggregation_function_id", "classification_class_index", "is_random_table"
    integers |= dict.fromkeys(example_names, 1)
    floats = dict.fromkeys(("numeric_values", "numeric_values_scale"), length)
    floats |= {"answer": 1, "masked_lm_weights": _PREDICTIONS}
    return {
        **{name: tf.zeros([size, width], tf.int32) for name, width in integers.items()},
        **{name: tf.zeros([size, width]) for name, width in floats.items()},
    }


def table_batch(size: int, length: int) -> dict[str, Any]:
    """A batch as above of a question of four tokens about a table, whose answer is a cell."""
    import tensorflow as tf

    inputs, indices = batch(size, length), np.arange(length)
    features = {"input_mask": indices >= 0, "row_ids": indices // 4, "column_ids": indices % 4}
    features |= {"segment_ids": indices > 3, "label_ids": indices == 5}
    for name, values in features.items():
        inputs[name] = tf.constant(np.tile(values, (size, 1)), tf.int32)
    inputs["answer"] = tf.fill([size, 1], np.nan)  # no number: a cell
    inputs["masked_lm_weights"] = tf.ones_like(inputs["masked_lm_weights"])
    return inputs


def export(config: Any, path: pathlib.Path, size: int | None = None) -> None:
    """Writes the step of one chip as HLO; the size is by default a core's share of the batch."""
    import tensorflow as tf

    _, _, trainer = run_of(config)
    step = tf.function(trainer.replica_step, jit_compile=True, autograph=False)
    inputs = batch(size or max(1, config.batch_size // CORES), config.max_seq_length)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(step.experimental_get_compiler_ir(inputs)(stage="hlo_serialized"))


_EXPORTING = threading.Lock()  # one at a time, for memory


def export_apart(config: Any, path: pathlib.Path) -> None:
    """Exports in a process of its own, with which ends what TensorFlow keeps of programs."""
    with _EXPORTING:
        in_its_own_process(export, config, path)


def compiled(
    step: AnyStep, num_layers: int, folder: pathlib.Path, compiler: str, device: str = "v5e"
) -> Needs:
    """The step's needs with so many layers, from its file if it is there."""
    file = folder / f"{step.name}:{num_layers}.json"
    made_from = _checksum(step.config(num_layers), compiler)
    if file.is_file():
        stored = json.loads(file.read_text(encoding="utf-8"))
        if stored.pop("made_from") == made_from:
            return Needs(**stored)
    hlo = file.with_suffix(".hlo")
    export_apart(step.config(num_layers), hlo)
    program = "experiments.benchmarks.tpu_compiler"
    command = [compiler, "-m", program, device, str(hlo.absolute())]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=_ROOT)
    if done.returncode:
        raise RuntimeError(f"expected {step.name} to compile, got\n{done.stderr[-4000:]}")
    fields = json.loads(done.stdout.splitlines()[-1])
    hlo.unlink()
    file.write_text(json.dumps(fields | {"made_from": made_from}), encoding="utf-8")
    return Needs(**fields)


def _checksum(config: Any, compiler: str) -> str:
    """Changes with all that a result depends on: the config, the code, the compiler."""
    digest = hashlib.sha256(repr((config, _versions(compiler))).encode())
    folders = "mate_tf/layers", "mate_tf/models", "mate_tf/training", "experiments/exported"
    files = [path for folder in folders for path in sorted((_ROOT / folder).rglob("*.py"))]
    for path in (*files, pathlib.Path(__file__), pathlib.Path(private_jax.__file__)):
        digest.update(path.read_bytes())
    return digest.hexdigest()


@functools.cache
def _versions(compiler: str) -> str:
    """The versions of JAX and libtpu."""
    code = "from importlib.metadata import version as v; print(v('jax'), v('libtpu'))"
    return subprocess.run([compiler, "-c", code], capture_output=True, text=True).stdout


HEADER = """\
| step | compiled with | GiB of arguments + others | TFLOP | GB moved | ms at least | fits |
|---|---|---|---|---|---|---|"""


def check(
    steps: Sequence[AnyStep],
    layers: Sequence[int],
    folder: pathlib.Path,
    compiler: str,
    device: str = "v5e",
) -> Iterator[tuple[str, bool]]:
    """Of each step its row of the table, and whether it can run on a chip."""
    folder.mkdir(parents=True, exist_ok=True)
    # As many at once as a step has programs, for libtpu keeps little more than one core busy.
    threads = ThreadPoolExecutor(len(set(layers)))
    programs: list[tuple[AnyStep, int, dict[int, Future[Needs]]]] = []
    for step in steps:
        depth = step.config().encoder.num_layers
        results = {
            number: threads.submit(compiled, step, number, folder, compiler, device)
            for number in sorted({min(number, depth) for number in (min(layers), max(layers))})
        }
        programs.append((step, depth, results))
    try:
        for step, depth, results in programs:
            yield _judged(step, depth, results, CHIPS[device])
    finally:
        threads.shutdown(cancel_futures=True)


def _judged(
    step: AnyStep, depth: int, results: Mapping[int, Future[Needs]], chip: Chip
) -> tuple[str, bool]:
    few, many = min(results), max(results)
    layers = " and ".join(map(str, results))
    begin = f"| {step.name} | {'full depth' if few == depth else f'{layers} layers'} |"
    try:
        fewer, needs = results[few].result(), results[many].result()
    except Exception as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        return f"{begin} | | | | does not compile: {lines[-1]} |", False
    if not needs.fits:
        return f"{begin} | | | | no room even with these layers |", False
    if few < many < depth:
        needs = needs.at(depth, many, fewer, few)
    fits = needs.memory <= chip.memory
    seconds = max(needs.flops / chip.flops, needs.bytes_moved / chip.bandwidth)
    numbers = (
        f"{needs.arguments / _GIB:.1f} + {needs.temporaries / _GIB:.1f}",
        f"{needs.flops / 1e12:.2f}",
        f"{needs.bytes_moved / 1e9:.0f}" if needs.bytes_moved else "",
        f"{1e3 * seconds:.0f}",
    )
    dynamic = f" {needs.num_dynamic} dynamic shapes" if needs.num_dynamic else ""
    row = f"{begin} {' | '.join(numbers)} | {'yes' if fits else '**no**'} |{dynamic}"
    return row, needs.fits and fits and not needs.num_dynamic


def main(_: Sequence[str]) -> int:
    known: Iterable[AnyStep] = small_steps() if _NARROW.value else STEPS
    steps = [step for step in known if re.search(_STEPS.value, step.name)]
    layers = [int(number) for number in _LAYERS.value]
    device = _DEVICE.value
    folder = pathlib.Path(_RESULTS.value or f"out/{device}")
    compiler = _COMPILER.value or str(_ROOT / CHIPS[device].environment / "bin/python")
    print(HEADER)
    num_bad = 0
    for row, is_good in check(steps, layers, folder, compiler, device):
        print(row, flush=True)
        num_bad += not is_good
    if num_bad:
        print(f"{num_bad} of {len(steps)} steps cannot run on a chip", file=sys.stderr)
    return min(num_bad, 1)


if __name__ == "__main__":
    program.run(main)
