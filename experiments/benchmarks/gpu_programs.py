"""Writes XLA programs of forward passes and training steps, to be timed where there is a GPU.

    python -m experiments.benchmarks.gpu_programs --programs_dir=out/gpu
    python -m experiments.benchmarks.gpu_programs --programs='mate_.*_8192' --num_layers=12
    python -m experiments.benchmarks.gpu_programs --model_size=large --num_layers=24

`experiments.benchmarks.gpu_run` times them, and needs JAX but not TensorFlow. The programs are of
BERT's width, of base with a few layers unless others are asked for, on made-up tables of eight
columns and cells of four tokens:

  forward    the encoder, one example
  training   the training loop's step of a classifier: dropout, gradients, clipping, AdamW
  attention  what the heads of each layer see, from random queries, keys and values, with one plan

The folder gets a file for each program, token features, spec.json with the arguments of each, and
for the forward passes of `--expected` what TensorFlow computes here from the same arguments.
"""

import dataclasses
import json
import lzma
import pathlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from absl import flags, logging

from experiments import program
from experiments.benchmarks.gpu_run import SPEC, drawn
from experiments.benchmarks.runners import (
    SIZES,
    built_encoder,
    classifier_config,
    encoder_config,
    made_up_features,
)
from experiments.exported.programs import run_of, updates_of
from mate_tf.config import TYPE_FEATURES, EncoderConfig

_OUTPUT = flags.DEFINE_string("programs_dir", "out/gpu", "folder of the programs")
_PROGRAMS = flags.DEFINE_string(
    "programs", "", "regular expression of the programs' names; all by default"
)
_EXPECTED = flags.DEFINE_string(
    "expected", "forward_.*_2048_float32$", "of programs whose results are computed here too"
)
_SIZE = flags.DEFINE_enum("model_size", "base", sorted(SIZES), "width of the encoder")
_LAYERS = flags.DEFINE_integer("num_layers", 4, "layers of the encoder", lower_bound=1)

ARCHITECTURES = ("tapas", "mate", "mate_exact", "tableformer")
_COLUMNS, _CELL_TOKENS = 8, 4
_TRAINED = ((2048, 4), (8192, 1), (512, 16))  # tokens and examples of training steps
_EVERY = 64  # tokens of an example, of which one is expected
Arguments = list[dict[str, Any]]


@dataclasses.dataclass(frozen=True)
class Program:
    """A program that is timed."""

    kind: str  # "forward", "training" or "attention"
    architecture: str  # of `runners.attentions`
    length: int  # tokens of an example
    dtype: str = "bfloat16"  # of the model; "bfloat16" is Keras's "mixed_bfloat16"
    batch_size: int = 1  # examples

    @property
    def name(self) -> str:
        return f"{self.kind}_{self.architecture}_{self.length}_{self.dtype}"

    def options(self, num_layers: int, size: str) -> dict[str, Any]:
        """As of `runners.made_up_features` and `runners.encoder_config`."""
        return {
            "length": self.length,
            "batch_size": self.batch_size,
            "columns": _COLUMNS,
            "cell_tokens": _CELL_TOKENS,
            "size": size,
            "num_layers": num_layers,
        }


def _all() -> Iterator[Program]:
    """What says most comes first."""
    for length in (8192, 2048):
        yield from (Program("forward", name, length) for name in ARCHITECTURES)
    attentions = ARCHITECTURES[:3]
    yield from (Program("attention", name, 8192) for name in attentions)
    yield from (Program("forward", name, 512) for name in ARCHITECTURES)
    for length, batch_size in _TRAINED:
        for name in ARCHITECTURES:
            yield Program("training", name, length, batch_size=batch_size)
    yield from (Program("forward", name, 16384) for name in ARCHITECTURES)
    for length in (2048, 16384):
        yield from (Program("attention", name, length) for name in attentions)
    for length in (2048, 8192, 512):
        yield from (Program("forward", name, length, "float32") for name in ARCHITECTURES)
    # XLA writes no dropout over all pairs of 16,384 tokens: its random numbers would be too many.
    yield from (Program("training", name, 16384) for name in attentions[1:])
    for length, batch_size in _TRAINED:
        for name in ARCHITECTURES:
            yield Program("training", name, length, "float32", batch_size)
    # Another size of MATE's buckets, and the longest, without TableFormer's relations of all pairs,
    # which would take 14 GB once.
    yield from (Program("forward", "mate_64_128", length) for length in (2048, 8192, 16384))
    yield from (Program("forward", name, 16384, "float32") for name in attentions)


PROGRAMS = tuple(_all())


def main(_: Sequence[str]) -> None:
    chosen = [one for one in PROGRAMS if re.search(_PROGRAMS.value, one.name)]
    folder = pathlib.Path(_OUTPUT.value)
    write(chosen, folder, _LAYERS.value, _EXPECTED.value, _SIZE.value)


def write(
    programs: Sequence[Program],
    folder: pathlib.Path,
    num_layers: int,
    expected: str = "^$",
    size: str = "base",
) -> None:
    """Writes programs and their spec; results of forward passes whose names match `expected`."""
    import numpy as np
    import tensorflow as tf

    folder.mkdir(parents=True, exist_ok=True)
    config = EncoderConfig(num_layers=num_layers, **SIZES[size])
    widths = ("num_layers", "hidden_size", "intermediate_size", "num_heads")
    spec: dict[str, Any] = {name: getattr(config, name) for name in widths}
    spec["type_features"] = TYPE_FEATURES
    spec["programs"] = []
    for one in programs:
        logging.info("%s", one.name)
        options = one.options(num_layers, size)
        features = made_up_features(options)._asdict()
        features = {name: ids for name, ids in features.items() if ids is not None}
        inputs = f"features_{one.batch_size}_{one.length}.npz"
        np.savez_compressed(folder / inputs, **features)
        function, given, variables = _function(one, features, options)
        concrete = function.get_concrete_function(*given.values())
        arguments = _arguments(concrete, given, variables)
        written = function.experimental_get_compiler_ir(*given.values())
        hlo = written(stage="hlo_serialized")
        (folder / f"{one.name}.hlo.xz").write_bytes(lzma.compress(hlo))
        entry = dataclasses.asdict(one) | {"name": one.name, "inputs": inputs}
        entry["arguments"] = arguments
        entry["updates"] = updates_of(written(stage="hlo")) if one.kind == "training" else []
        if re.search(expected, one.name):
            entry["expected"] = f"{one.name}.npy"
            _assign(concrete, variables, arguments)
            result = function.python_function(*given.values())  # without XLA
            np.save(folder / entry["expected"], tf.cast(result[:, ::_EVERY], tf.float32))
            entry["every"] = _EVERY
        spec["programs"].append(entry)
    (folder / SPEC).write_text(json.dumps(spec), encoding="utf-8")


def _function(
    one: Program, features: Mapping[str, Any], options: Mapping[str, Any]
) -> tuple[Any, dict[str, Any], list[Any]]:
    """The function for XLA, its inputs by name, and the variables that it may read."""
    import keras
    import tensorflow as tf

    from mate_tf.features.token_features import TokenFeatures
    from mate_tf.layers.attention.patterns import Projected
    from mate_tf.layers.basic import weights_at_zero

    policy: Any = f"mixed_{one.dtype}" if one.dtype == "bfloat16" else one.dtype
    encoder_options = encoder_config(one.architecture, options)
    if one.kind == "training":
        config = classifier_config(encoder_options, policy, one.length)
        model, optimizer, trainer = run_of(config)

        @tf.function(jit_compile=True, autograph=False)
        def step(batch: Mapping[str, tf.Tensor]) -> Mapping[str, tf.Tensor]:
            return trainer.replica_step(batch)

        labels = {"classification_class_index": tf.zeros([one.batch_size, 1], tf.int32)}
        return step, {"batch": {**features, **labels}}, [*model.variables, *optimizer.variables]
    keras.utils.clear_session()
    keras.config.set_dtype_policy(policy)
    with weights_at_zero():
        encoder = built_encoder(encoder_options)
    keras.config.set_dtype_policy("float32")
    if one.kind == "forward":

        @tf.function(jit_compile=True, autograph=False)
        def forward(features: Mapping[str, tf.Tensor]) -> tf.Tensor:  # [B, S, D]
            return encoder(features).sequence_output

        return forward, {"features": dict(features)}, encoder.weights
    layer = encoder.blocks[0].attention

    @tf.function(jit_compile=True, autograph=False)
    def attention(
        features: Mapping[str, tf.Tensor], query: tf.Tensor, key: tf.Tensor, value: tf.Tensor
    ) -> tf.Tensor:  # [B, S, H, E]
        plan = layer.plan(TokenFeatures.of(features))
        for _ in range(options["num_layers"]):
            query = layer.attend(Projected(query, key, value), plan, None)
        return query

    shape = one.batch_size, one.length, layer.num_heads, layer.head_size
    heads = {name: tf.zeros(shape, one.dtype) for name in ("query", "key", "value")}
    return attention, {"features": dict(features), **heads}, []


def _arguments(concrete: Any, given: Mapping[str, Any], variables: Sequence[Any]) -> Arguments:
    """The shape, dtype and filling of each parameter of a program, in its order.

    A filling is a number, "normal", or the name of a token feature.
    """
    import numpy as np

    def argument(tensor: Any, filling: str | float) -> dict[str, Any]:
        return {"shape": [*tensor.shape], "dtype": tensor.dtype.name, "filling": filling}

    arguments = []
    for value in given.values():
        if isinstance(value, Mapping):  # sorted by name, as TensorFlow flattens it
            for key in sorted(value):
                is_feature = key != "classification_class_index"
                arguments.append(argument(value[key], key if is_feature else 0))
        else:
            arguments.append(argument(value, "normal"))
    by_handle = {id(variable.value.handle): variable for variable in variables}
    for captured in concrete.captured_inputs:
        variable = by_handle[id(captured)]
        number = float(np.ravel(variable.numpy())[0])  # of a seed, both numbers are the first
        is_kernel = len(variable.shape) > 1 and "adamw" not in variable.path
        arguments.append(argument(variable.value.value(), "normal" if is_kernel else number))
    return arguments


def _assign(concrete: Any, variables: Sequence[Any], arguments: Arguments) -> None:
    """Gives the variables the values that they get where the program runs."""
    by_handle = {id(variable.value.handle): variable for variable in variables}
    captured = concrete.captured_inputs
    for handle, value in zip(captured, drawn(arguments[-len(captured) :], {}), strict=True):
        by_handle[id(handle)].assign(value)


if __name__ == "__main__":
    program.run(main)
