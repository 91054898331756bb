"""Exports a fine-tuned model, of table questions, a classifier or a reader, as a SavedModel.

    python -m experiments.export --model_dir=out/wtq --output_dir=out/wtq/saved_model

The folder serves with stock TensorFlow Serving (signatures `serving_default` on serialized
tf.Examples and `features` on the nine token features), and experiments/ask.py and
experiments/evaluate.py answer questions from it, with features made as the training's records were
(the run's conversion.json). It says which kind of model it is; `export_saved_model` in
mate_tf/serving.py lists the outputs of each.
"""

import pathlib

from absl import flags

from experiments import terminal

_MODEL_DIR = flags.DEFINE_string(
    "model_dir", None, "folder of a run of experiments/finetune.py", required=True
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
_LONGEST_LINEAR, _LONGEST_DENSE = 16384, 2048


def main(_) -> None:
    model_dir = pathlib.Path(_MODEL_DIR.value)
    if not model_dir.is_dir():
        raise FileNotFoundError(f"expected the folder of a run at {model_dir}, found none")

    from mate_tf.serving import export_saved_model, serving_features
    from mate_tf.tables.conversion_file import read_conversion
    from mate_tf.tasks.decoding import KINDS, kind_of
    from mate_tf.training.config import load_finetuning_config
    from mate_tf.training.loop import restore_weights

    config = load_finetuning_config(model_dir)
    trained_on = read_conversion(model_dir).features
    kind = kind_of(config.task)
    model = KINDS[kind].model(config.encoder, config.task)
    model.build()
    step = restore_weights(model, model_dir)
    longest = config.encoder.longest_sequence
    if longest is None:
        is_linear = config.encoder.attention.is_linear
        longest = _LONGEST_LINEAR if is_linear else _LONGEST_DENSE
    export_saved_model(
        model,
        model_dir / "vocab.txt",
        serving_features(trained_on, _MAX_SEQ_LENGTH.value or longest),
        _OUTPUT_DIR.value,
    )
    print(f"exported step {step} of {model_dir} ({kind}) to {_OUTPUT_DIR.value}")


if __name__ == "__main__":
    terminal.run(main)
