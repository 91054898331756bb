"""Turns questions and tables into record files to train and evaluate on, as `mate-tf data` does.

    python -m experiments.create_data --task=WTQ --input_dir=WikiTableQuestions \\
        --output_dir=out/wtq_data --vocab_file=vocab.txt --max_seq_length=512
    python -m experiments.create_data --task=JSONL --input_dir=my_questions --output_dir=out/my_data

--divide=train:train=90,calibration=10 keeps a tenth of the training tables, always the same, out of
training, for mate-tf calibrate. --divide=dev:train=72,calibration=8,dev=20 makes all splits
of one.

With --beam_options the conversion is an Apache Beam pipeline, which writes the very same shards
with any number of workers:

    --num_shards=8 --beam_options="--direct_num_workers=4 --direct_running_mode=multi_processing"
    --num_shards=64 --beam_options="--runner=FlinkRunner --flink_master=host:8081"
"""

from experiments import program
from mate_tf.command_line import data

if __name__ == "__main__":
    program.run_command(data, task="WTQ")
