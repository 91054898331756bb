"""The default model, stage 4 of 4: WikiTableQuestions, from answers alone.

    scripts/train_default_model.sh WikiTableQuestions minilm answers

makes records of the training questions whose tables fit into 512 tokens, and runs

    python -m experiments.finetune --config=default_answers --data_dir=out/default/answers_data \
        --init_checkpoint=out/default/questions_weights --model_dir=out/default/answers

The same script then calibrates the scores.

Hardware: 2 CPU cores with AMX.
Time: 23 minutes.
Score: 28.5 % of the 980 questions about held-out tables; AUROC of the scores 70.7 %. Halfway they
are 30.1 % and 64.3 %, which is why the only evaluation is at the end. The card
mate_tf/default_model/README.md has the scores on the dev split.
"""

from mate_tf.training.starting_points import STARTING_POINTS

CONFIG = STARTING_POINTS["table_questions"]
