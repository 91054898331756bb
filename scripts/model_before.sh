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
