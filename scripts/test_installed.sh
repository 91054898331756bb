#!/usr/bin/env bash
# Installs the project into an empty environment in a temporary folder, and asks what it installed.
#
#   scripts/test_installed.sh wheel|image
#
# wheel: a wheel with the extras serve and page; the server, the page and `mate-tf ask` answer.
# image: what deploy/Dockerfile installs; its command answers, on Linux as root with the image's
# user and a file system of which only a temporary folder can be written.
# PYTHON=/usr/bin/python3.12 chooses the interpreter; the image's user has to be able to run it.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null && wait || true; rm -rf "$folder"' EXIT
chmod 755 "$folder"
mkdir "$folder/project" "$folder/tmp"
venv=$folder/venv
cp -r setup.py README.md LICENSE constraints.txt mate_tf deploy scripts "$folder/project"
cp experiments/demo_data/moon_landings.csv "$folder"
cd "$folder/project"
case ${1:-} in
  wheel)
    "${PYTHON:-python3}" -m venv "$folder/pip"
    pip=("$folder/pip/bin/python" -m pip --quiet --python)
    "${PYTHON:-python3}" -m venv --without-pip "$venv"
    "$folder/pip/bin/python" -m pip --quiet wheel --no-deps --wheel-dir "$folder" .
    wheel=$(echo "$folder"/*.whl)
    "${pip[@]}" "$venv" install --constraint constraints.txt "$wheel[serve,page]"
    du -h "$wheel"
    serve=("$venv/bin/mate-tf" serve)
    ;;
  image)
    scripts/install_light.sh "$venv" serve
    mapfile -t serve < <(sed -n 's/^ENTRYPOINT //p' deploy/Dockerfile |
      "$venv/bin/python" -c 'import json, sys; print(*json.load(sys.stdin), sep="\n")')
    serve[0]=$venv/bin/${serve[0]}
    if [ "$(uname)" = Linux ] && [ "$(id -u)" -eq 0 ]; then
      serve=(unshare --mount --propagation=private sh -c 'mount -o remount,ro,bind / &&
        mount -t tmpfs -o mode=1777 tmpfs "$TMPDIR" && exec setpriv --reuid=10001 --regid=10001 \
          --clear-groups --no-new-privs --bounding-set=-all "$@"' sh "${serve[@]}")
    fi
    ;;
  *)
    echo "test_installed: expected wheel or image, got '${1:-}'" >&2
    exit 2
    ;;
esac
du -sh "$venv"
echo "installed after $SECONDS seconds"

cd "$folder"
export TMPDIR=$folder/tmp TF_CPP_MIN_LOG_LEVEL=3
question='which missions flew in 1969?'
answer='Apollo 11, Apollo 12'

free_port() {
  "$venv/bin/python" -c \
    'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# Prints what URL $2 answers once it is there; fails if the program $1 ends before.
reply() {
  until curl --silent --fail "$2"; do
    kill -0 "$1"
    sleep 1
  done
}

end() {
  kill -TERM "$1"
  wait "$1"
}

port=$(free_port)
"${serve[@]}" --port="$port" --name=tables &
server=$!
reply $server "http://127.0.0.1:$port/v2/health/ready" >/dev/null
echo "ready after $SECONDS seconds"
"$venv/bin/python" -c 'import json, sys
table = open("moon_landings.csv", encoding="utf-8").read()
print(json.dumps({"instances": [{"question": sys.argv[1], "table": table}]}))' "$question" |
  curl --silent --show-error --fail --json @- "http://127.0.0.1:$port/v1/models/tables:predict" |
  grep --fixed-strings "\"answer\":\"$answer\""
end $server
if [ "$1" = wheel ]; then
  "$venv/bin/mate-tf" ask moon_landings.csv "$question" | grep --fixed-strings "$answer"
  port=$(free_port)
  "$venv/bin/mate-tf" page --port="$port" &
  page=$!
  reply $page "http://127.0.0.1:$port/" >page.html
  grep --quiet --fixed-strings 'Ask a table' page.html
  end $page
fi
echo "all answered after $SECONDS seconds"
