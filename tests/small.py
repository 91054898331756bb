"""What tests share: a small encoder with its vocabulary, and a binary from the outside."""

import ast
import contextlib
import dataclasses
import json
import pathlib
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from mate_tf.config import _OF_BERT, AttentionConfig, EncoderConfig
from tests.forked import ROOT
from tests.forked import run_program as run_binary

__all__ = ["ROOT", "run_binary"]

PIECES = ["[PAD]", "[EMPTY]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefgh"]
# Its random weights are so large that the answers to two questions differ.
ENCODER = EncoderConfig(
    vocab_size=len(PIECES),
    hidden_size=16,
    num_layers=1,
    num_heads=2,
    intermediate_size=16,
    initializer_range=0.5,
    attention=AttentionConfig(bucket_size=8, global_size=16, dense_up_to=0),
)


def cases(names: str, *rows: Any, **options: Any) -> Any:
    """Runs a test with each of these rows, whose columns have the names: pytest's parametrize."""
    import pytest

    return pytest.mark.parametrize(names, rows, **options)


def stored(path: str, section: str) -> list[tuple[Any, ...]]:
    """The rows of a section of the cases.txt beside a file.

    A section begins with its name in brackets and ends with an empty line. Between the values of a
    row is " => "; they are Python's literals, or texts as they stand. A line that begins with "#"
    is a comment.
    """
    text = pathlib.Path(path).with_name("cases.txt").read_text(encoding="utf-8")
    lines = text.partition(f"[{section}]\n")[2].partition("\n\n")[0].splitlines()
    rows = [tuple(map(value_of, line.split(" => "))) for line in lines if line[:1] != "#"]
    assert rows, f"expected rows of {section} in cases.txt, found none"
    return rows


def stored_cases(names: str) -> Callable[[Any], Any]:
    """Runs a test with each row of the section of its name, as `cases` does."""

    def decorate(test: Any) -> Any:
        rows = stored(test.__globals__["__file__"], test.__name__)
        ids = [" => ".join(map(str, row)) for row in rows]
        return cases(names, *(rows if "," in names else [row[0] for row in rows]), ids=ids)(test)

    return decorate


def value_of(text: str) -> Any:
    """The value of a literal of Python, or the text itself."""
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text


def restored_step(model: Any, folder: pathlib.Path) -> int:
    """Loads the weights of a run into its own model; returns their step."""
    from mate_tf.weights.run import run_weights  # with TensorFlow

    weights = run_weights(folder)
    weights.restore(model)
    return weights.step


def write_lines(path: pathlib.Path, *records: Any) -> pathlib.Path:
    """Writes a file of JSON Lines and returns its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")
    return path


def write_vocabulary(path: pathlib.Path, pieces: Iterable[str] = PIECES) -> pathlib.Path:
    """Writes a vocabulary file and returns its path."""
    path.write_text("".join(f"{piece}\n" for piece in pieces), encoding="utf-8")
    return path


def write_records(
    path: pathlib.Path, examples: Iterable[Mapping[str, Any]], compression: str = "GZIP"
) -> int:
    """Writes examples, features by name, to a file of records; returns their number."""
    from mate_tf.records.records import record_writer, serialize_example

    count = 0
    with record_writer(path, compression) as writer:
        for features in examples:
            writer.write(serialize_example(features))
            count += 1
    return count


def bert_config(config: EncoderConfig) -> dict[str, Any]:
    """The content of a bert_config.json with a configuration's sizes."""
    return {
        **{theirs: getattr(config, ours) for theirs, ours in _OF_BERT.items()},
        "hidden_act": "gelu",
        "type_vocab_size": list(config.type_vocab_sizes),
    }


def write_examples(
    folder: pathlib.Path,
    features: Any,
    pairs: Mapping[str, Iterable[tuple]],
    pieces: Iterable[str] = PIECES,
    tagger: Any = None,
) -> pathlib.Path:
    """Writes a vocabulary and records of each split's tables and questions; returns the folder."""
    from mate_tf.features.builder import FeatureBuilder
    from mate_tf.features.wordpiece import Wordpiece

    wordpiece = Wordpiece(write_vocabulary(folder / "vocab.txt", pieces))
    builder = FeatureBuilder(wordpiece, features, tagger)
    for split, of_split in pairs.items():
        examples = (builder.build(*pair).features for pair in of_split)
        write_records(folder / f"{split}.tfrecord", examples)
    return folder


@contextlib.contextmanager
def without_tables() -> Iterator[None]:
    """Exports within it lack the signature `tables`, whose graph takes most of their time."""
    import pytest

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mate_tf.serving.export.why_no_tables", lambda *_: "nobody asks it here")
        yield


def export_small(
    folder: pathlib.Path,
    max_seq_length: int,
    pieces: Sequence[str] = PIECES,
    tables: bool = False,
    model: Any = None,
) -> pathlib.Path:
    """Exports a model with random weights and its vocabulary beside it.

    The model is one that is not built yet; by default one of table questions, the same every time.
    It has the signature `tables` if asked for.
    """
    import keras

    from mate_tf.features.config import FeatureConfig
    from mate_tf.models import make_model
    from mate_tf.serving.export import export_saved_model
    from mate_tf.task_configs import TableQAConfig

    folder.parent.mkdir(parents=True, exist_ok=True)
    vocab_file = write_vocabulary(folder.parent / "vocab.txt", pieces)
    keras.utils.set_random_seed(0)
    encoder = dataclasses.replace(ENCODER, vocab_size=len(pieces))
    if model is None:
        model = make_model(encoder, TableQAConfig())
    else:
        model.build()
    with contextlib.nullcontext() if tables else without_tables():
        export_saved_model(model, vocab_file, FeatureConfig(max_seq_length=max_seq_length), folder)
    return folder


def text_input(questions: Sequence[Any], tables: Sequence[Any], padding: str = "") -> Any:
    """The inputs of the signature `tables`, of a `Table` for each question."""
    import tensorflow as tf

    def padded(values: list[Any]) -> Any:
        return tf.ragged.constant(values, tf.string).to_tensor(padding)

    return {
        "questions": tf.constant(questions),
        "headers": padded([list(table.header) for table in tables]),
        "cells": padded([list(map(list, table.rows)) for table in tables]),
        "num_rows": tf.constant([table.num_rows for table in tables]),
        "num_columns": tf.constant([table.num_columns for table in tables]),
    }


def write_run(folder: pathlib.Path, config: Any = None) -> pathlib.Path:
    """Writes a run with the same random weights every time; of table questions by default."""
    import keras
    import tensorflow as tf

    from mate_tf.features.config import FeatureConfig
    from mate_tf.records.conversion_file import conversion_of, write_conversion
    from mate_tf.training.config import TableQATrainingConfig
    from mate_tf.training.examples import build_model
    from mate_tf.training.run import save_config
    from mate_tf.weights.run import weights_by_path

    config = config or TableQATrainingConfig(num_steps=1, learning_rate=1e-3, encoder=ENCODER)
    keras.utils.set_random_seed(0)
    save_config(config, folder)
    vocab_file = write_vocabulary(folder / "vocab.txt")
    write_conversion(folder, conversion_of(None, FeatureConfig(), vocab_file, None))
    weights = weights_by_path(build_model(config))
    values = {name: weight.value for name, weight in weights.items()}
    tf.train.Checkpoint(weights=values).save(str(folder / "ckpt"))
    return folder


def imported_names(source: str) -> list[str]:
    """Every dotted name that an import statement in Python source may stand for."""
    names = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return names


def succeeded(module: str, *args: str, **options: Any) -> subprocess.CompletedProcess:
    """What run_binary gives of a program that succeeds."""
    done = run_binary(module, *args, **options)
    assert done.returncode == 0, done.stderr
    return done


def run_python(*args: str, **options: Any) -> subprocess.CompletedProcess:
    """Runs a new Python, in which nothing has been imported, by default in the project's folder."""
    options.setdefault("cwd", ROOT)
    return subprocess.run([sys.executable, *args], capture_output=True, text=True, **options)


def small_encoder(vocab_size: int, architecture: str = "tapas", **changes: Any) -> EncoderConfig:
    """The encoder for another vocabulary, without dropout and with small weights, which learns."""
    values = {"hidden_dropout": 0.0, "attention_dropout": 0.0, "initializer_range": 0.2} | changes
    attention = values.pop("attention", AttentionConfig(architecture))
    return dataclasses.replace(ENCODER, vocab_size=vocab_size, attention=attention, **values)


def small_flags(*changes: str) -> list[str]:
    """Flags that cut a config down to a small encoder and two steps; later ones change earlier."""
    sizes = "num_layers=1 hidden_size=16 num_heads=2 intermediate_size=16".split()
    short = ("length_buckets=", "batch_size=2", "num_steps=2")
    return [f"--config.{it}" for it in (*(f"encoder.{size}" for size in sizes), *short, *changes)]


def two_cpus() -> list:
    """The logical CPUs that tests/conftest.py has made of the machine's."""
    import tensorflow as tf

    cpus = tf.config.list_logical_devices("CPU")
    assert len(cpus) == 2, f"expected two logical CPUs, got {len(cpus)}"
    return cpus


def two_devices() -> Any:
    """Two replicas, whose collectives do not collide with those of other strategies on CPUs."""
    import tensorflow as tf

    return tf.distribute.MirroredStrategy(two_cpus(), tf.distribute.ReductionToOneDevice())


def assert_same(actual: Iterable[Any], expected: Iterable[Any], **tolerances: Any) -> None:
    """Asserts that as many arrays or variables are equal, or within the tolerances given."""
    import numpy as np

    for one, other in zip(actual, expected, strict=True):
        name = getattr(other, "path", "")
        if tolerances:
            np.testing.assert_allclose(one, other, **tolerances, err_msg=name)
        else:
            np.testing.assert_array_equal(one, other, err_msg=name)


def assert_same_features(actual: dict[str, Any], expected: dict[str, Any]) -> None:
    """Asserts that two examples, or batches, have the same features of the same types."""
    import numpy as np

    assert actual.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_array_equal(actual[name], values, err_msg=name)
        assert actual[name].dtype == values.dtype, name


def assert_same_files(actual: pathlib.Path, expected: pathlib.Path) -> None:
    """Asserts that two folders have the same files, byte by byte."""
    contents = [{f.name: f.read_bytes() for f in folder.iterdir()} for folder in (actual, expected)]
    assert contents[0].keys() == contents[1].keys()
    assert not [name for name in contents[0] if contents[0][name] != contents[1][name]]


def change_records(file: pathlib.Path, change: Callable[[list[dict[str, Any]]], Any]) -> None:
    """Writes a file of records anew, with its examples changed in place."""
    import numpy as np

    from mate_tf.records.batches import read_records

    examples = [
        {name: np.copy(values) for name, values in example.items()}
        for example in read_records(file).as_numpy_iterator()
    ]
    change(examples)
    write_records(file, examples)


def best_evaluation(model_dir: pathlib.Path, metric: str) -> dict:
    """The evaluation of a run, with its "step", that has the highest value of a metric."""
    from mate_tf.training.loop import read_evaluations

    return max(read_evaluations(model_dir), key=lambda evaluation: evaluation[metric])
