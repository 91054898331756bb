"""A model that answers questions, wherever it is stored: exported, as a run, or published."""

import dataclasses
import functools
import importlib.util
import pathlib
import tempfile
from typing import Any, Literal, get_args

from mate_tf.answers.onnx_runtime import GRAPH_FILE, OnnxModel
from mate_tf.answers.predictor import ModelFunction, Predictor
from mate_tf.features.builder import FeatureBuilder
from mate_tf.features.token_features import PART_OF_SPEECH, TokenFeatures
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.private_apis import import_tensorflow
from mate_tf.serving.stored import StoredModel, check_longest, find_model
from mate_tf.tables.part_of_speech import Tagger
from mate_tf.task_configs import TableQAConfig, model_kind
from mate_tf.weights.folder import (
    DEFAULT_MODEL,
    check_hub_name,
    is_exported,
    upload,
)

Runtime = Literal["onnx", "tensorflow"]
_BATCH_TOKENS = 4096  # for each replica
_MOST_REMEMBERED = 200_000  # tokens of tables, for the next question about one of them


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
        dtype: "float32" is exact; "mixed_bfloat16" is faster on processors that compute in it, and
            starts more slowly, for it packs its kernels. None is "float32" but by TensorFlow on a
            CPU with bfloat16, where it is "mixed_bfloat16" and packs nothing.
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
    batch_tokens, computes_by = _BATCH_TOKENS, "ONNX Runtime"
    run: ModelFunction
    directory = stored.folder.parent if stored.folder else None
    if is_graph and directory and is_exported(directory) and _has_text():
        run, computes_by = _exported_function(directory), "its own graph"
    elif runtime_of(stored, runtime, architecture, dtype) == "onnx":
        task, folder = stored.task_config, stored.folder
        assert isinstance(task, TableQAConfig) and folder, "no other model has a graph"
        run = OnnxModel(folder, stored.encoder_config, task)
    else:
        import_tensorflow()
        import tensorflow as tf

        from mate_tf.answers.inference import fastest_dtype, inference_function

        batch_tokens *= tf.distribute.get_strategy().num_replicas_in_sync
        pack_kernels = None if dtype else False
        dtype = dtype or fastest_dtype()
        computes_by = f"TensorFlow in {dtype}"
        run = inference_function(model(dtype), pack_kernels)
    return PretrainedPredictor(
        stored,
        computes_by,
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

    def __init__(
        self, stored: "StoredModel", computes_by: str, *arguments: Any, **options: Any
    ) -> None:
        super().__init__(*arguments, **options)
        self._stored = stored
        self.computes_by = computes_by  # "TensorFlow in mixed_bfloat16"

    def __repr__(self) -> str:
        stored = self._stored
        kinds = model_kind(stored.task_config), stored.encoder_config.attention.architecture
        name = f"{type(self).__name__} {stored.name!r}"
        return f"<{name}, {', '.join(kinds)}, by {self.computes_by}>"

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
