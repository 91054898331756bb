#!/bin/sh
# What the image has: installs the project in this folder into a new environment, $1.
set -eu
# tensorflow-cpu takes the place of tensorflow, which brings code for GPUs.
echo 'tensorflow; python_version < "0"' > overrides.txt
uv venv --no-cache "$1"
uv pip install --no-cache --compile-bytecode --python "$1/bin/python" \
  --constraints constraints.txt --overrides overrides.txt '.[serve]' tensorflow-cpu==2.20.0
