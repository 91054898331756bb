#!/usr/bin/env bash
# Runs the core's tests against a wheel in an environment of its own, which has no extra.
#
#   scripts/test_core.sh VENV [REQUIREMENT...]
#
# The requirements narrow what the wheel asks for, such as "tensorflow==2.21.*"; without them the
# newest versions are installed. Tests of what needs an extra skip.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$PWD/$1
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
tests=(tests/tables tests/features tests/layers tests/models tests/weights tests/answers
  tests/serving tests/test_config.py tests/test_dataclass_json.py tests/test_presets.py
  tests/test_private_apis.py)

python=${PYTHON:-python3}
[ -x "$venv/bin/python" ] || "$python" -m venv "$venv" 
"$venv/bin/python" -m pip install --quiet --upgrade --upgrade-strategy=eager pip
"$venv/bin/python" -m pip wheel --quiet --no-deps --wheel-dir "$folder" .
"$venv/bin/python" -m pip uninstall --quiet --yes mate_tf
"$venv/bin/python" -m pip install --quiet --upgrade --upgrade-strategy=eager \
  "$folder"/*.whl "$@" hypothesis pytest scipy
"$venv/bin/python" -m pip list | grep --ignore-case --extended-regexp '^(tensorflow|keras|numpy|protobuf)'

# In a folder without the checkout's mate_tf, so that the wheel's is tested.
ln -s "$PWD/pyproject.toml" "$PWD/experiments" "$folder"
cp -r tests "$folder"
cd "$folder"
exec "$venv/bin/python" -m pytest -p no:cacheprovider "${tests[@]}"
