#!/usr/bin/env bash
# Takes the default model as it was before a stage of its training from the history of this
# repository: before `operators`, `absent` or, by default, before `neighbours`.
#
#   scripts/model_before.sh FOLDER [STAGE]
set -euo pipefail
cd "$(dirname "$0")/.."
declare -A commits=([neighbours]=557cd73 [absent]=77d2c09 [operators]=9ae2bfe)
commit=${commits[${2:-neighbours}]}
mkdir -p "$1"
for file in config.json conversion.json model.safetensors vocab.txt; do
  git show "$commit:mate_tf/default_model/$file" > "$1/$file"
done
