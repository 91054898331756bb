"""A model that answers questions, wherever it is stored: exported, as a run, or published.

TensorFlow and Keras are imported only where a model is built, or published weights are read.
"""

import contextlib
import dataclasses
import functools
import importlib.util
import pathlib
import tempfile
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from mate_tf.answers.calibration import Calibration
from mate_tf.answers.kinds import answering_kind
from mate_tf.answers.onnx_runtime import GRAPH_FILE, OnnxModel
from mate_tf.answers.predictor import ModelFunction, Predictor
from mate_tf.config import EncoderConfig
from mate_tf.dataclass_json import from_dict
from mate_tf.features.builder import FeatureBuilder
from mate_tf.features.config import FeatureConfig
from mate_tf.features.token_features import PART_OF_SPEECH, TokenFeatures
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.presets import with_architecture
from mate_tf.private_apis import import_tensorflow
from mate_tf.records.conversion_file import check_vocabulary, read_conversion
from mate_tf.tables.part_of_speech import Tagger
from mate_tf.task_configs import TASK_CONFIGS, TableQAConfig, TaskConfig, model_kind
from mate_tf.weights.folder import (
    DEFAULT_MODEL,
    EXTRA,
    check_exported,
    check_hub_name,
    is_exported,
    kind_of_weights,
    locate_weights,
    read_calibration,
    upload,
)
from mate_tf.weights.run import folder_of_weights, read_run_config, run_weights

if TYPE_CHECKING:
    from mate_tf.models.encoder_task import EncoderTask
    from mate_tf.weights.initial import Shapes

Runtime = Literal["onnx", "tensorflow"]
_BATCH_TOKENS = 4096  # for each replica
_MOST_REMEMBERED = 200_000  # tokens of tables, for the next question about one of them
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
    task_config = task_config or _of_any_table(described)
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


def _of_any_table(task_config: Any) -> Any:
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


def from_pretrained(
    path: str | pathlib.Path | StoredModel = DEFAULT_MODEL,
    *,
    revision: str | None = None,
    architecture: str | None = None,
    dtype: str | None = None,
    tagger: Tagger | None = None,
    min_score: float = 0.0,
    num_alternatives: int = 0,
    most_seconds: float = 20.0,
    calibrated: bool = True,
    trust_graph: bool = False,
    runtime: Runtime | None = None,
    **feature_overrides: Any,
) -> "PretrainedPredictor":
    """Loads a model that answers questions about tables, by its path or name.

    Args:
        path: the folder of an exported model, of a run or of a Hugging Face model of TAPAS or BERT;
            or the name of one of the last two on the Hub, such as "google/tapas-base-finetuned-wtq"
            (`pip install 'mate_tf[hub]'`). The default is the small model of the package. What
            `find_model` returned is taken too, but the predictor cannot be pickled then.
        revision: of a name on the Hub: a commit, branch or tag.
        architecture: how tokens attend to each other, instead of what the model was trained with: a
            name of mate_tf/presets.py that adds no weights, such as "mate", which reads tables far
            beyond 512 tokens.
        dtype: "mixed_bfloat16" is faster on processors that compute in it; "float32" is exact.
        tagger: tags the questions for a model with grammar-guided attention, as in its training.
        min_score: below this score there is no answer (`Answer.answered`).
        num_alternatives: the most alternatives that an answer gets.
        most_seconds: how long an answer may take that counts or adds the rows of a table longer
            than the model; then it is "not sure", and its coverage says that it lacks rows.
        calibrated: whether scores follow the model's calibration, if it has one.
        trust_graph: whether an exported model answers through its own graph. It starts faster, but
            a graph can read and write files: see SECURITY.md.
        runtime: "onnx" computes by ONNX Runtime on the CPU, in single precision and without
            TensorFlow; "tensorflow" by the Keras model, on a GPU too. None is "onnx" for a folder
            with a model.onnx, unless an architecture or a dtype is given.
        **feature_overrides: fields of `FeatureConfig` to change, such as drop_rows_to_fit.

    Without a model.onnx a Keras model is built from the configuration and the weights; both are
    data. With an architecture or a dtype, that is so with `trust_graph` too.

    Raises:
        FileNotFoundError: if there is no model.
        ModuleNotFoundError, OSError: if the extra "hub" is missing, or a name is not on the Hub.
        ValueError: if the model answers no questions, or its vocabulary is not that of its
            training; if its weights are fewer than its configuration says; if its model.onnx is not
            that of its weights; if an option is unknown or out of its range.

    Example:
        model = from_pretrained("google/tapas-base-finetuned-wtq", architecture="mate")
        answers = model.answer(Table.from_csv("table.csv"), ["who won?", "when?"])
    """
    given = {**locals(), **feature_overrides}  # all arguments, to load the same again
    del given["feature_overrides"]
    stored = path if isinstance(path, StoredModel) else find_model(path, revision, architecture)
    known = {field.name for field in dataclasses.fields(stored.feature_config)}
    if unknown := sorted(feature_overrides.keys() - known):
        names = ", ".join(sorted(known))
        raise ValueError(f"expected feature options among {names}, got {unknown[0]!r}")
    feature_config = dataclasses.replace(stored.feature_config, **feature_overrides)
    check_longest(stored.encoder_config, feature_config)
    wordpiece = Wordpiece(stored.vocab_file)
    wordpiece.check_fits(stored.encoder_config.vocab_size)
    model = functools.cache(stored.model)  # one for the answers and for `attended_cells`
    is_graph = trust_graph and architecture is None and dtype is None
    batch_tokens = _BATCH_TOKENS
    run: ModelFunction
    directory = stored.folder.parent if stored.folder else None
    if is_graph and directory and is_exported(directory) and _has_text():
        run = _exported_function(directory)
    elif runtime_of(stored, runtime, architecture, dtype) == "onnx":
        task, folder = stored.task_config, stored.folder
        assert isinstance(task, TableQAConfig) and folder, "no other model has a graph"
        run = OnnxModel(folder, stored.encoder_config, task)
    else:
        import_tensorflow()
        import tensorflow as tf

        from mate_tf.answers.inference import inference_function

        batch_tokens *= tf.distribute.get_strategy().num_replicas_in_sync
        run = inference_function(model(dtype or "float32"))
    return PretrainedPredictor(
        stored,
        run,
        FeatureBuilder(wordpiece, feature_config, tagger, most_remembered=_MOST_REMEMBERED),
        batch_tokens,
        fixed_length=stored.encoder_config.fixed_length,
        task_config=stored.task_config,
        calibration=stored.calibration if calibrated else None,
        min_score=min_score,
        num_alternatives=num_alternatives,
        most_seconds=most_seconds,
        keras_model=lambda: model(dtype or "float32"),
        load_again=None if stored is path else functools.partial(from_pretrained, **given),
    )


def runtime_of(
    stored: StoredModel,
    runtime: Runtime | None = None,
    architecture: str | None = None,
    dtype: str | None = None,
) -> Runtime:
    """The runtime that computes a model's answers; arguments and errors as `from_pretrained`."""
    if runtime not in (None, *get_args(Runtime)):
        raise ValueError(f"expected a runtime of {', '.join(get_args(Runtime))}, got {runtime!r}")
    lacks = []
    if stored.folder is None or not (stored.folder / GRAPH_FILE).is_file():
        lacks.append(f"no {GRAPH_FILE} in {stored.folder or stored.name}")
    lacks += [f"architecture {architecture!r}"] * (architecture is not None)
    lacks += [f"dtype {dtype!r}"] * (dtype not in (None, "float32"))
    if runtime == "onnx" and lacks:
        raise ValueError(
            f"expected a folder with {GRAPH_FILE} and no other architecture or dtype for the "
            f"runtime 'onnx', got {lacks[0]}"
        )
    return runtime or ("tensorflow" if lacks else "onnx")


class PretrainedPredictor(Predictor):
    """A predictor of `from_pretrained`, which can be stored and shared."""

    def __init__(self, stored: StoredModel, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._stored = stored

    def __repr__(self) -> str:
        stored = self._stored
        kinds = model_kind(stored.task_config), stored.encoder_config.attention.architecture
        return f"<{type(self).__name__} {stored.name!r}, {', '.join(kinds)}>"

    def save_pretrained(self, folder: str | pathlib.Path, **card: Any) -> pathlib.Path:
        """Writes a folder that `from_pretrained` loads, and from which training starts.

        It has the weights, in half precision if that changes none of them; the configuration, how
        features are made, the vocabulary and the calibration, but no options such as min_score.
        There is a model.onnx too, by which it answers without TensorFlow, if there can be one
        (`onnx_graph.why_no_graph`).

        Args:
            folder: where to; an earlier model in it is replaced.
            **card: what README.md says to the Hub: license, language, datasets, base_model, metrics
                and tags. Without any, the card beside the loaded model is copied, if it has one.

        Raises:
            ValueError: if the folder is that of a training run, or a card says no such thing.
        """
        from mate_tf.serving.export import share

        return share(self._stored, folder, **card)

    def push_to_hub(
        self,
        name: str,
        *,
        private: bool = False,
        message: str = "Upload a model of mate_tf",
        revision: str | None = None,
        **card: Any,
    ) -> str:
        """Uploads what `save_pretrained` writes to the Hugging Face Hub (the extra "hub").

        Args:
            name: the owner and the model, "me/my_model", which `from_pretrained` then loads.
            private: whether a new model is private.
            message: of the commit.
            revision: the branch; None for main.
            **card: as of `save_pretrained`.

        Returns:
            The address of the commit.

        Raises:
            ModuleNotFoundError: without huggingface_hub.
            OSError: if the Hub refuses it, or there is no network.
            ValueError: if there can be no such name, or a card says no such thing.
        """
        from mate_tf.serving.export import share

        check_hub_name(name)  # before the weights are read
        with tempfile.TemporaryDirectory() as parent:
            folder = share(self._stored, pathlib.Path(parent, "model"), name, **card)
            return upload(folder, name, private, message, revision)


def _has_text() -> bool:
    """Whether there is tensorflow-text, whose operations an exported graph may have."""
    return importlib.util.find_spec("tensorflow_text") is not None


def _exported_function(directory: str | pathlib.Path) -> ModelFunction:
    """The signature "features" of an exported model, as a function."""
    import_tensorflow()
    import tensorflow as tf
    import tensorflow_text  # noqa: F401 (its operations are in the graph)

    # The predictor keeps the function, the function keeps the model.
    signature = tf.saved_model.load(str(directory)).signatures["features"]
    names = signature.structured_input_signature[1]

    def run(features: TokenFeatures):
        if PART_OF_SPEECH in names and features.part_of_speech_ids is None:
            raise ValueError(
                f"expected a tagger for the model in {directory}, whose attention grammar guides"
            )
        return signature(**{name: tf.constant(getattr(features, name)) for name in names})

    return run
