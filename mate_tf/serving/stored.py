"""The model of a folder: an exported one, a run's or a published one.

TensorFlow and Keras are imported only where a model is built, or published weights are read.
"""

import contextlib
import dataclasses
import functools
import pathlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from mate_tf.answers.calibration import Calibration
from mate_tf.answers.predictor import answering_kind
from mate_tf.config import EncoderConfig
from mate_tf.dataclass_json import from_dict
from mate_tf.features.config import FeatureConfig
from mate_tf.presets import with_architecture
from mate_tf.private_apis import import_tensorflow
from mate_tf.records.conversion_file import check_vocabulary, read_conversion
from mate_tf.task_configs import TASK_CONFIGS, TaskConfig
from mate_tf.weights.folder import (
    EXTRA,
    check_exported,
    is_exported,
    kind_of_weights,
    locate_weights,
    read_calibration,
)
from mate_tf.weights.run import folder_of_weights, read_run_config, run_weights

if TYPE_CHECKING:
    from mate_tf.models.encoder_task import EncoderTask
    from mate_tf.weights.initial import Shapes

_LONGEST_LINEAR, _LONGEST_DENSE = 16384, 2048


class StoredModel(NamedTuple):
    """A model that is not built yet."""

    name: str  # for sentences about it
    encoder_config: EncoderConfig  # with the attention that was asked for
    task_config: TaskConfig  # the options of a task that answers
    feature_config: FeatureConfig  # how features are made for it
    vocab_file: pathlib.Path  # the vocabulary that it was trained with
    restore: Callable[["EncoderTask"], object]  # gives a built model its weights
    shapes: Callable[[], "Shapes"]  # of all its weights
    step: int | None = None  # of a run, the step of its weights
    calibration: Calibration | None = None  # of its scores
    folder: pathlib.Path | None = None  # of its model.safetensors, and perhaps of a model.onnx

    def model(self, dtype: str = "float32") -> "EncoderTask":
        """The Keras model with its weights; it computes in a dtype such as "mixed_bfloat16".

        Raises:
            ModuleNotFoundError: without TensorFlow.
            ValueError: if the weights are not those of the configuration.
        """
        import_tensorflow()
        from mate_tf.layers.basic import weights_at_zero
        from mate_tf.models import make_model
        from mate_tf.weights.initial import check_sizes

        check_sizes(self.name, self.encoder_config, self.task_config, self.shapes())
        is_complete = self.step is not None  # a run's weights are all in its file
        with weights_at_zero() if is_complete else contextlib.nullcontext():
            model = make_model(self.encoder_config, self.task_config, dtype)
        self.restore(model)
        return model


def find_model(
    path: str | pathlib.Path, revision: str | None = None, architecture: str | None = None
) -> StoredModel:
    """The model at a path or of a name; arguments and errors as `from_pretrained`."""
    folder = pathlib.Path(path)
    if revision is None and is_exported(folder):
        return exported_model(folder, architecture)
    if revision is None and kind_of_weights(folder) == "run":
        return run_model(folder, architecture)
    try:
        location = locate_weights(path, revision)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{error}, nor an exported model") from None
    if kind_of_weights(location) == "run":  # of the Hub
        return run_model(location, architecture)._replace(name=str(path))
    return published_model(location, architecture=architecture)


def exported_model(directory: str | pathlib.Path, architecture: str | None = None) -> StoredModel:
    """The model that `export_saved_model` wrote; errors as `from_pretrained`."""
    directory = pathlib.Path(directory)
    check_exported(directory)
    stored = run_model(directory / EXTRA, architecture)
    features = read_conversion(directory / EXTRA).features  # with its own longest input
    return stored._replace(name=str(directory), feature_config=features)


def run_model(
    model_dir: str | pathlib.Path,
    architecture: str | None = None,
    max_seq_length: int | None = None,
) -> StoredModel:
    """The model of a run's folder, with the weights of its best evaluation.

    The architecture is as of `from_pretrained`, max_seq_length as of `serving_features`.

    Raises:
        FileNotFoundError: if there is no run, or it has no weights yet.
        ValueError: if the run's model answers nothing, or its vocabulary is not that of the records
            it was trained on.
    """
    model_dir = pathlib.Path(model_dir)
    if not model_dir.is_dir():
        raise FileNotFoundError(f"expected the folder of a run at {model_dir}, found none")
    kind, values = read_run_config(model_dir)
    try:
        encoder_config = from_dict(EncoderConfig, values.get("encoder"), "config.encoder")
        task_config = from_dict(TASK_CONFIGS[kind], values.get("task", {}), "config.task")
    except ValueError as error:
        raise ValueError(f"{model_dir / 'config.json'}: {error}") from None
    answering_kind(task_config)
    trained_on = read_conversion(model_dir).features
    if (model_dir / "vocab.txt").is_file():  # a missing one is named where it is read
        check_vocabulary(model_dir)
    weights = run_weights(model_dir)
    encoder_config = _attending(encoder_config, architecture)
    return StoredModel(
        name=f"step {weights.step} of {model_dir}",
        encoder_config=encoder_config,
        task_config=task_config,
        feature_config=serving_features(trained_on, encoder_config, max_seq_length),
        vocab_file=model_dir / "vocab.txt",
        restore=weights.restore,
        shapes=lambda: weights.shapes,
        step=weights.step,
        calibration=read_calibration(model_dir),
        folder=folder_of_weights(model_dir),
    )


def published_model(
    path: str | pathlib.Path,
    task_config: TaskConfig | None = None,
    *,
    revision: str | None = None,
    architecture: str | None = None,
    vocab_file: str | pathlib.Path | None = None,
    max_seq_length: int | None = None,
    **encoder_options: Any,
) -> StoredModel:
    """A published model, with features made as the authors' release makes them.

    Args:
        path: as `published_configs` takes it.
        task_config: the heads; None for those that a Hugging Face folder describes, without its
            limits of rows and columns, beyond which cells would not be told apart.
        revision: of a name on the Hub.
        architecture: as of `from_pretrained`; None for all to all, as TAPAS was trained.
        vocab_file: the vocabulary; None for vocab.txt beside the weights.
        max_seq_length: as of `serving_features`.
        **encoder_options: as `published_configs` takes them.

    Raises:
        FileNotFoundError: if there are no weights or no vocabulary.
        ModuleNotFoundError, OSError, ValueError: as `published_configs`, or if the model answers
            nothing.
    """
    import_tensorflow()
    from mate_tf.weights.initial import published_configs, published_shapes, restore_published

    attention = _attending(EncoderConfig(), architecture or "tapas").attention
    encoder_options.setdefault("original_ids", True)
    location, encoder_config, described = published_configs(
        path, task_config, revision=revision, attention=attention, **encoder_options
    )
    folder = location if location.is_dir() else location.parent
    vocab_file = pathlib.Path(vocab_file or folder / "vocab.txt")
    if not vocab_file.is_file():
        raise FileNotFoundError(
            f"expected the vocabulary of {path} at {vocab_file}, found none; name its vocab_file"
        )
    task_config = task_config or _for_any_table(described)
    answering_kind(task_config)
    original = FeatureConfig(original_conversion=True)
    return StoredModel(
        name=str(path),
        encoder_config=encoder_config,
        task_config=task_config,
        feature_config=serving_features(original, encoder_config, max_seq_length),
        vocab_file=vocab_file,
        restore=functools.partial(restore_published, location=location),
        shapes=functools.partial(published_shapes, location),
    )


def _for_any_table(task_config: Any) -> Any:
    """The options with as many rows and columns as ours allow by default."""
    limits = ("max_num_rows", "max_num_columns")
    fields = (it for it in dataclasses.fields(task_config) if it.name in limits)
    return dataclasses.replace(task_config, **{field.name: field.default for field in fields})


def _attending(encoder: EncoderConfig, architecture: str | None) -> EncoderConfig:
    """The encoder with the attention of an architecture's preset."""
    if architecture is None:
        return encoder
    attention = with_architecture(EncoderConfig(), architecture).attention
    return dataclasses.replace(encoder, attention=attention)


def serving_features(
    trained_on: FeatureConfig, encoder: EncoderConfig, max_seq_length: int | None = None
) -> FeatureConfig:
    """Features made as in training, without labels, and with rows dropped only on request.

    The longest input, in tokens, is by default as long as the encoder takes. Where that is without
    end, it is 16,384, or 2,048 with dense attention, whose memory grows with the square.
    """
    endless = _LONGEST_LINEAR if encoder.attention.is_linear else _LONGEST_DENSE
    longest = max_seq_length or encoder.longest_sequence or endless
    return dataclasses.replace(
        trained_on, max_seq_length=longest, drop_rows_to_fit=False, label_answer_spans=False
    )


def check_longest(encoder: EncoderConfig, features: FeatureConfig) -> None:
    """ValueError where features could be longer than the encoder takes."""
    limit, longest = encoder.longest_sequence, features.max_seq_length
    if limit is not None and (longest is None or longest > limit):
        what = "sequence_length" if limit == encoder.fixed_length else "position embeddings"
        raise ValueError(
            f"expected max_seq_length of at most {limit}, the {what} of this model, got {longest}"
        )
