"""Scores a file of answers by the official definitions of their task, as `mate-tf evaluate` does.

    python -m experiments.predict --model=out/wtq/saved_model --data=out/wtq_data/dev.jsonl \\
        --output=out/wtq/dev_predictions.jsonl
    python -m experiments.evaluate --predictions=out/wtq/dev_predictions.jsonl \\
        --data=out/wtq_data/dev.jsonl
"""

from experiments import program
from mate_tf.command_line import evaluate

if __name__ == "__main__":
    program.run_command(evaluate)
