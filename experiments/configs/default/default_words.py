"""The default model, stage 1 of 4: fill in masked words and cells of tables.

    scripts/train_default_model.sh WikiTableQuestions minilm words

makes the data from nine tenths of WTQ's training tables and their questions, and runs

    python -m experiments.pretrain --config=default_words --data_dir=out/default/words_data \
        --init_checkpoint=minilm --model_dir=out/default/words

No stage learns from the other tenth of the tables; all evaluations use it.

Hardware: 2 CPU cores with AMX; the run had about 1.3 of them.
Time: 17 minutes beside other work.
Score: 41.5 % of the masked tokens. Whether a table belongs to a text: 50.3 %, not learned.
"""

from mate_tf.training.starting_points import STARTING_POINTS

CONFIG = STARTING_POINTS["masked_words"]
