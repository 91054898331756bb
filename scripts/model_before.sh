#!/usr/bin/env bash
# Takes the default model as it was before a stage of its training from the history of this
# repository: before `operators`, `wordings`, `kinds`, `conversations` or, by default, `absent`.
#
#   scripts/model_before.sh FOLDER [STAGE]
set -euo pipefail
cd "$(dirname "$0")/.."
declare -A commits=([absent]=77d2c09 [operators]=9ae2bfe [wordings]=bbca8ec [kinds]=9d77b44 [conversations]=1794e57)
commit=${commits[${2:-absent}]}
mkdir -p "$1"
for file in config.json conversion.json model.safetensors vocab.txt; do
  git show "$commit:mate_tf/default_model/$file" > "$1/$file"
done
# Configs once had more options, and counted operators before they named them.
"${PYTHON:-.venv/bin/python}" - "$1/config.json" <<'PYTHON'
import dataclasses, json, pathlib, sys
from mate_tf.config import AttentionConfig
from mate_tf.tables.operators import operators_by_id
path = pathlib.Path(sys.argv[1])
config = json.loads(path.read_text(encoding="utf-8"))
if number := config["task"].pop("num_aggregation_labels", 0):
    config["task"]["operators"] = operators_by_id()[:number]
known = {field.name for field in dataclasses.fields(AttentionConfig)}
attention = config["encoder"]["attention"]
config["encoder"]["attention"] = {name: attention[name] for name in attention if name in known}
path.write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
PYTHON
