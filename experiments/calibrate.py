"""Learns how much a model's scores are worth, as `mate-tf calibrate` does.

    python -m experiments.calibrate --model=out/wtq/saved_model \\
        --data=out/wtq_data/calibration.jsonl
"""

from experiments import program
from mate_tf.command_line import calibrate

if __name__ == "__main__":
    program.run_command(calibrate)
