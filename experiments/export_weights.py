"""Writes a run's weights alone, in half precision, as safetensors.

    python -m experiments.export_weights --model_dir=out/wtq_run --output_dir=out/wtq_weights

The weights are those of the run's best evaluation. The folder has half the size of a checkpoint,
without what only a longer training would need, and takes the place of the run's: `mate-tf ask
--model`, experiments/predict.py and experiments/calibrate.py answer with it, experiments/export.py
--model_dir makes a SavedModel of it, and experiments/finetune.py --init_checkpoint starts from it.
"""

from absl import flags

from experiments import terminal

_MODEL_DIR = flags.DEFINE_string("model_dir", None, "folder of a run", required=True)
_OUTPUT_DIR = flags.DEFINE_string("output_dir", None, "folder to write", required=True)


def main(_) -> None:
    from mate_tf.weights.run import export_weights

    path = export_weights(_MODEL_DIR.value, _OUTPUT_DIR.value)
    print(f"wrote {path.stat().st_size / 1e6:.1f} MB to {path}")


if __name__ == "__main__":
    terminal.run(main)
