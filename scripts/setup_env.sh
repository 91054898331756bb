#!/usr/bin/env bash
# Makes the environment .venv (or $1) and installs this project into it with all that its tests,
# lint and demo need, in the versions of constraints.txt. Uses uv if it is installed, else venv and
# pip. Run again, it repairs. PYTHON=python3.12 chooses the interpreter; CONSTRAINTS= takes the
# newest versions that setup.py allows.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=${1:-.venv}
project='.[dev]'
constraints=${CONSTRAINTS-constraints.txt}
if [ -n "$constraints" ]; then
  export PIP_CONSTRAINT="$PWD/$constraints" UV_CONSTRAINT="$PWD/$constraints"
fi
# transformers, to compare our conversion of its weights with; of PyTorch only a build without CUDA,
# which would be gigabytes more.
oracle=('.[test-transformers]' 'torch==2.13.0+cpu')

# TensorFlow 2.20 has packages for Python up to 3.13.
find_python() {
  local candidate
  for candidate in ${PYTHON:-} python3 python3.13 python3.12 python3.11; do
    if "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' \
        2>/dev/null; then
      echo "$candidate"
      return
    fi
  done
}

without_oracle() {
  echo "setup_env: no ${oracle[1]} where packages are looked for; the tests that compare with" \
    "transformers will skip"
}

install_with_uv() {
  if ! [ -x "$venv/bin/python" ]; then
    local python
    python=$(find_python)
    uv venv --python "${python:->=3.11,<3.14}" "$venv"
  fi
  uv pip install --python "$venv/bin/python" --compile-bytecode --editable "$project"
  uv pip install --python "$venv/bin/python" --compile-bytecode --editable "${oracle[@]}" ||
    without_oracle
}

install_with_pip() {
  if ! [ -x "$venv/bin/python" ]; then
    local python
    python=$(find_python)
    if [ -z "$python" ]; then
      echo "setup_env: expected Python 3.11, 3.12 or 3.13 on PATH, found none;" \
        "install one, or uv, which brings its own" >&2
      exit 1
    fi
    "$python" -m venv "$venv" || {
      rm -rf "$venv"
      echo "setup_env: $python cannot make a virtual environment;" \
        "install its venv package (Debian: python3-venv) or uv" >&2
      exit 1
    }
  fi
  # A venv that uv made has no pip.
  "$venv/bin/python" -m pip --version >/dev/null 2>&1 || "$venv/bin/python" -m ensurepip
  "$venv/bin/python" -m pip install --editable "$project"
  "$venv/bin/python" -m pip install --editable "${oracle[@]}" || without_oracle
  # Where PYTHONDONTWRITEBYTECODE is set every import of TensorFlow would compile it anew (7 s).
  # Some packages carry templates that are no valid Python, so failures are no error.
  "$venv/bin/python" -m compileall -q -j 0 "$("$venv/bin/python" -c \
    'import sysconfig; print(sysconfig.get_path("purelib"))')" >/dev/null || true
}

echo "Setting up $venv; the first time this takes some minutes and 4 GB."
if command -v uv >/dev/null; then
  install_with_uv
else
  install_with_pip
fi
