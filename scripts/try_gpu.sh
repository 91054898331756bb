#!/usr/bin/env bash
# Tries this project on the GPU of this machine by TensorFlow itself, in ten steps, about an hour.
# Each prints a line, and out/try_gpu/report.json has all: send it.
#
#   scripts/try_gpu.sh [--only=limit,losses] [--small]
#
# The environment .venv (or $VENV) is made if it is not there, with TensorFlow's build with CUDA, some
# gigabytes. PYTHON=python3.12 chooses the interpreter. With --small models are tiny, and a CPU will do.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${VENV:-.venv}/bin/python
[ -x "$python" ] || "${PYTHON:-python3}" -m venv "${VENV:-.venv}"
"$python" -c 'import importlib.util as u, sys; sys.exit(not (u.find_spec("orbit") and u.find_spec("fastapi")))' ||
  "$python" -m pip install --constraint constraints.txt --editable '.[train,gpu,serve]'
exec "$python" -m experiments.benchmarks.try_gpu "$@"
