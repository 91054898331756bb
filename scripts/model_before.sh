#!/usr/bin/env bash
# Takes the default model as it was before its last stage from the history of this repository.
#
#   scripts/model_before.sh FOLDER
set -euo pipefail
cd "$(dirname "$0")/.."
commit=9ae2bfe65049f56c689a8c443e429b0884d09a27
mkdir -p "$1"
for file in config.json conversion.json model.safetensors vocab.txt; do
  git show "$commit:mate_tf/default_model/$file" > "$1/$file"
done
