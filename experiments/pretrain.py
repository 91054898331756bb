"""Pre-trains an encoder on tables and texts: masked words and cells, and which table is the right.

    python -m experiments.pretrain --config=mlm_minilm --data_dir=out/mlm_data \\
        --init_checkpoint=minilm --model_dir=out/mlm_minilm

--data_dir is a folder that experiments/create_pretraining_data.py made. Flags, presets, what a run
leaves in --model_dir and how it goes on are those of experiments/finetune.py, and so are the
weights to start from: the head that predicts words is loaded where the checkpoint has one, and said
to be new where it has none. Any architecture may be pre-trained (--architecture).

Each evaluation predicts the masked words of the dev split. The folder of a run is an
--init_checkpoint of experiments/finetune.py, which takes its encoder and starts its own heads.
"""

from experiments import program
from mate_tf.command_line import train

if __name__ == "__main__":
    program.run_command(train, program="pretrain")
