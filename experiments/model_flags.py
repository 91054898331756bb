"""Flags of the binaries that take a model: where it is, and how its tokens attend."""

from absl import flags

MODEL = flags.DEFINE_string(
    "model",
    None,
    "folder of an exported model (experiments/export.py writes one), or what else from_pretrained "
    "takes: that of a run, or a name on the Hugging Face Hub; by default the small one that comes "
    "with the package",
)
REVISION = flags.DEFINE_string("revision", None, "of a name on the Hub: a commit, branch or tag")
ARCHITECTURE = flags.DEFINE_string(
    "architecture",
    None,
    "how tokens attend to each other in place of what the model was trained with: a name of "
    "mate_tf/presets.py that adds no weights, such as mate for published weights on long tables",
)


def model_path() -> str:
    """The path or name of the model.

    Raises:
        ValueError: if it is empty, as a shell's variable that is not set.
    """
    from mate_tf.serving.folder import DEFAULT_MODEL

    if MODEL.value == "":
        raise ValueError("expected the folder or name of a model, got an empty --model")
    return MODEL.value or str(DEFAULT_MODEL)
