"""Exports a model, of table questions, a classifier or a reader, as `mate-tf export` does.

    python -m experiments.export --model_dir=out/wtq_run --output_dir=out/wtq_model
    python -m experiments.export --checkpoint=google/tapas-base-finetuned-wtq \\
        --architecture=mate --output_dir=out/tapas_wtq

`export_saved_model` in mate_tf/serving/export.py lists the outputs of each kind of model.
"""

from experiments import program
from mate_tf.command_line import export

if __name__ == "__main__":
    program.run_command(export)
