#!/usr/bin/env bash
# Installs this project for training beside a build of TensorFlow that is a package of another name,
# which no extra can bring: tensorflow-tpu for a TPU VM, or tensorflow-cpu, which is smaller.
#
#   scripts/install_build.sh tpu|cpu [VENV]
#
# The environment is VENV (.venv), made if it is not there. PYTHON=python3.12 chooses its
# interpreter. Versions are those of constraints.txt. At the end it imports what training imports.
set -euo pipefail
cd "$(dirname "$0")/.."
case ${1:-} in
  tpu) build=(tensorflow-tpu==2.20.0 libtpu==0.0.17) ;;  # with later ones the import aborts
  cpu) build=(tensorflow-cpu==2.20.0) ;;
  *)
    echo "install_build: expected tpu or cpu, got '${1:-}'" >&2
    exit 2
    ;;
esac
venv=${2:-.venv}
[ -x "$venv/bin/python" ] || "${PYTHON:-python3}" -m venv "$venv"
pip=("$venv/bin/python" -m pip --quiet install --constraint constraints.txt)
"${pip[@]}" "${build[@]}"
# All of these ask for the package tensorflow, whose files would replace the build's.
"${pip[@]}" --no-deps --editable . tensorflow-text tf-keras tf-models-official
# So what else mate_tf asks for comes by itself. Orbit, for which tf-models-official is there, needs
# no more.
mapfile -t others < <("$venv/bin/python" - <<'END'
import importlib.metadata
import re

for requirement in importlib.metadata.requires("mate_tf"):
    needed, _, when = requirement.partition(";")
    if ("extra" not in when or 'extra == "train"' in when) and not re.match(
        "tensorflow|tf-", needed
    ):
        print(needed.strip())
END
)
"${pip[@]}" "${others[@]}"
"$venv/bin/python" - <<'END'
import mate_tf.training.loop
import tensorflow as tf
import tensorflow_text

print(f"TensorFlow {tf.__version__}:", *(device.name for device in tf.config.list_physical_devices()))
END
