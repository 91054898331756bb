"""Exports a fine-tuned model, of table questions, a classifier or a reader, as a SavedModel.

    python -m experiments.export --model_dir=out/wtq_run --output_dir=out/wtq_model
    python -m experiments.export --checkpoint=google/tapas-base-finetuned-wtq \\
        --architecture=mate --output_dir=out/tapas_wtq

Of a run the weights of its best evaluation are exported. The folder serves with stock TensorFlow
Serving (signatures `serving_default` on serialized tf.Examples, `features` on the nine token
features and `tables` on raw text; docs/serving.md), and `mate-tf ask` and experiments/predict.py
answer questions from it, with features made as the training's records were (the run's
conversion.json). It says which kind of model it is; `export_saved_model` in
mate_tf/serving/export.py lists the outputs of each. An exported model that is there already is
replaced, with its calibration (experiments/calibrate.py).

--checkpoint takes a published model in place of a run: a Hugging Face folder of TAPAS or the name
of one on the Hub (the extra "hub"), or a TF1 checkpoint with its bert_config.json, for which
--config names the preset that has its heads, such as wtq_base. Features are then made as the
authors' release makes them. --architecture lets the weights attend in another way, MATE's on tables
beyond 512 tokens.
"""

from absl import flags

from experiments import terminal

_MODEL_DIR = flags.DEFINE_string("model_dir", None, "folder of a run of experiments/finetune.py")
_CHECKPOINT = flags.DEFINE_string(
    "checkpoint",
    None,
    "a published model in place of a run: a Hugging Face folder, a name on the Hub or the prefix "
    "of a TF1 checkpoint",
)
_REVISION = flags.DEFINE_string("revision", None, "of a --checkpoint on the Hub")
_CONFIG = flags.DEFINE_string(
    "config", None, "the preset whose heads a TF1 --checkpoint has, such as wtq_base"
)
_POSITION = flags.DEFINE_enum(
    "position",
    None,
    ["per_cell", "absolute"],
    "how a TF1 --checkpoint counts positions; by default as the preset, in each cell (TAPAS's "
    "checkpoints whose names end in _reset)",
)
_ARCHITECTURE = flags.DEFINE_string(
    "architecture",
    None,
    "how the tokens of a --checkpoint attend to each other: a name of mate_tf/presets.py that adds "
    "no weights, such as sat, mate or mate_exact; by default all to all, as TAPAS was trained",
)
_VOCAB = flags.DEFINE_string(
    "vocab_file", None, "the vocabulary of a --checkpoint; by default vocab.txt beside it"
)
_OUTPUT_DIR = flags.DEFINE_string("output_dir", None, "folder to write", required=True)
_MAX_SEQ_LENGTH = flags.DEFINE_integer(
    "max_seq_length",
    None,
    "longest input, in tokens, that the exported model accepts; by default 16,384, with dense "
    "attention 2,048, with absolute positions as many as there are, with a Linformer its "
    "sequence_length",
    lower_bound=4,
)
_OF_CHECKPOINTS = (_REVISION, _CONFIG, _POSITION, _ARCHITECTURE, _VOCAB)


def published(checkpoint: str):
    """The model of --checkpoint."""
    from experiments.config_files import load_preset
    from mate_tf.serving.loading import published_model
    from mate_tf.weights.hugging_face import hugging_face_task_config
    from mate_tf.weights.initial import kind_of_weights, locate_weights

    preset = load_preset(_CONFIG.value) if _CONFIG.value else None
    location = locate_weights(checkpoint, _REVISION.value)
    is_described = kind_of_weights(location) == "hugging_face"
    if preset is None and not (is_described and hugging_face_task_config(location)):
        raise ValueError(
            f"expected --config with the preset whose heads the checkpoint has, such as wtq_base, "
            f"for {location} describes none"
        )
    options = {}
    if preset is not None and not is_described:
        options["position"] = _POSITION.value or preset.encoder.position
    return published_model(
        location,
        preset.task if preset else None,
        architecture=_ARCHITECTURE.value,
        vocab_file=_VOCAB.value,
        max_seq_length=_MAX_SEQ_LENGTH.value,
        **options,
    )._replace(name=checkpoint)


def main(_) -> None:
    if (_MODEL_DIR.value is None) == (_CHECKPOINT.value is None):
        raise ValueError("expected either --model_dir or --checkpoint")
    given = [flag.name for flag in _OF_CHECKPOINTS if flag.value is not None]
    if _MODEL_DIR.value is not None and given:
        raise ValueError(f"expected --{given[0]} with --checkpoint alone, got --model_dir")

    from mate_tf.serving.export import export_stored
    from mate_tf.serving.loading import run_model
    from mate_tf.tasks import answering_task

    if _MODEL_DIR.value is not None:
        stored = run_model(_MODEL_DIR.value, max_seq_length=_MAX_SEQ_LENGTH.value)
    else:
        stored = published(_CHECKPOINT.value)
    export_stored(stored, _OUTPUT_DIR.value)
    task = answering_task(stored.task_config).name
    print(f"exported {stored.name} ({task}) to {_OUTPUT_DIR.value}")


if __name__ == "__main__":
    terminal.run(main)
