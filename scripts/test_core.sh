#!/usr/bin/env bash
# Runs the core's tests against a wheel, in an environment of its own without any extra.
#
#   scripts/test_core.sh VENV [REQUIREMENT...]
#
# The requirements narrow what the wheel asks for, such as "tensorflow==2.21.*"; without them the
# newest versions are installed. What needs an extra skips. PYTHON=python3.12 chooses the
# interpreter, PYTEST_ADDOPTS adds options of pytest.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$PWD/$1
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
tests=(tests/tables tests/reading tests/features tests/layers tests/models tests/weights tests/answers
  tests/serving tests/test_config.py tests/test_dataclass_json.py tests/test_presets.py
  tests/test_private_apis.py)

[ -x "$venv/bin/python" ] || "${PYTHON:-python3}" -m venv "$venv"
pip=("$venv/bin/python" -m pip --quiet)
"${pip[@]}" install --upgrade pip
rm -rf build  # with files of former wheels
"${pip[@]}" wheel --no-deps --wheel-dir "$folder" .
"${pip[@]}" uninstall --yes mate_tf
"${pip[@]}" install --upgrade --upgrade-strategy=eager "$folder"/*.whl "$@" hypothesis pytest scipy
"$venv/bin/python" -m pip list | grep -iE '^(keras|mate|numpy|protobuf|tensorflow)'

# In a folder without the checkout's mate_tf, so that the wheel's is tested.
cp -r tests experiments docs pyproject.toml "$folder"
cd "$folder"
MATE_TF_CORE_ALONE=1 "$venv/bin/python" -m pytest -p no:cacheprovider "${tests[@]}"
