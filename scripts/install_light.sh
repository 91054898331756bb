#!/usr/bin/env bash
# Installs what answers questions, without TensorFlow: the package's model, and others that have a
# model.onnx. It does not train, and it has no view of where heads look.
#
#   scripts/install_light.sh VENV [EXTRA...]      (such as: serve page formats)
#
# The environment VENV is made if it is not there; PYTHON=python3.12 chooses its interpreter.
# Versions are those of constraints.txt. At the end it answers a question.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ $# -eq 0 ]; then
  echo "install_light: expected the folder of an environment, such as .venv-light" >&2
  exit 2
fi
venv=$1
shift
[ -x "$venv/bin/python" ] || "${PYTHON:-python3}" -m venv "$venv"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
pip=("$venv/bin/python" -m pip --quiet)
"${pip[@]}" wheel --no-deps --wheel-dir "$folder" .
mapfile -t needed < <("$venv/bin/python" - "$folder"/*.whl "$@" <<'END'
import email
import re
import sys
import zipfile

wheel = zipfile.ZipFile(sys.argv[1])
(metadata,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
for requirement in email.message_from_bytes(wheel.read(metadata)).get_all("Requires-Dist"):
    needed, _, when = requirement.partition(";")
    extra = re.search('extra == "(.+)"', when)
    # onnx writes graphs, and ONNX Runtime reads them.
    is_left_out = re.match("tensorflow|tf-|keras|onnx[<>=]", needed)
    if (extra is None or extra[1] in sys.argv[2:]) and not is_left_out:
        print(needed.strip())
END
)
"${pip[@]}" install --constraint constraints.txt "${needed[@]}"
"${pip[@]}" install --no-deps "$folder"/*.whl
printf 'City,Country\nParis,France\n' > "$folder/cities.csv"
"$venv/bin/mate-tf" ask "$folder/cities.csv" "which city is in France?"
du -sm "$venv" | sed 's/\t.*/ MB in all/'
