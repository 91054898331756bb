"""Answers all questions of a file with a model, as `mate-tf predict` does.

    python -m experiments.predict --model=out/wtq/saved_model --data=out/wtq_data/dev.jsonl \\
        --output=out/wtq/dev_predictions.jsonl

experiments/evaluate.py scores the file of answers. mate_tf/evaluation/predictions.py says what is
in it.
"""

from experiments import program
from mate_tf.command_line import predict

if __name__ == "__main__":
    program.run_command(predict)
