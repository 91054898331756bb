"""Fine-tunes table question answering, a classifier or a reader, as `mate-tf train` does.

    python -m experiments.finetune --config=wtq_minilm --data_dir=out/wtq_data \\
        --init_checkpoint=minilm --model_dir=out/wtq_minilm

A config is a preset of experiments/configs, whose docstring says what it is for, how long it
takes and what to expect. Or it is one of those of mate_tf/training/starting_points.py, or the
folder of a run, which is made again: --config=out/wtq_minilm --model_dir=out/again. Every value can
be changed: --config.learning_rate=1e-4. --architecture replaces the encoder's attention and
embedded ids by those of a paper (mate_tf/presets.py), before the values are changed; a Linformer
then gets the length of the records, max_seq_length, as its sequence_length, and no length_buckets.

`mate-tf train --help` says what a run leaves in --model_dir, and how it goes on.
"""

from experiments import program
from mate_tf.command_line import train

if __name__ == "__main__":
    program.run_command(train, program="finetune")
