"""Writes a run's weights alone, in half precision, as `mate-tf export --weights-alone` does.

    python -m experiments.export_weights --model_dir=out/wtq_run --output_dir=out/wtq_weights

The weights are those of the run's best evaluation. The folder has half the size of a checkpoint and
takes the place of the run's: it answers, experiments/export.py --model_dir makes a SavedModel of
it, and experiments/finetune.py --init_checkpoint starts from it.
"""

from experiments import program
from mate_tf.command_line import export

if __name__ == "__main__":
    program.run_command(export, weights_alone=True)
