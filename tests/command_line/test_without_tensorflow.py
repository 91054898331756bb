"""A model with a graph for ONNX Runtime is served, and shown in a page, without TensorFlow."""

import os
import re
import subprocess
import sys
import time

import httpx
import pytest

from mate_tf.page.page import DEFAULTS
from tests.small import ROOT, cases, run_python

HIDING = """
import sys
names = ("tensorflow", "keras", "tensorflow_text", "onnx")
sys.modules.update(dict.fromkeys(names))  # None: whoever imports them gets an error
import mate_tf
from mate_tf.command_line.main import main
sys.exit(main(sys.argv[1:]))
"""
QUESTION, TABLE = "what is the type of Saturn?", "Planet,Type\nMars,rocky\nSaturn,gas giant\n"


def ask_server(client: httpx.Client) -> str:
    asked = {"instances": [{"question": QUESTION, "table": TABLE}]}
    reply = client.post("v1/models/default_model:predict", json=asked)
    return reply.json()["predictions"][0]["answer"]


def ask_page(client: httpx.Client) -> str:
    """The result that a browser is told to show; the button to look further is hidden."""
    config = client.get("config").json()
    (look,) = (one for one in config["components"] if one["props"].get("elem_id") == "look")
    assert not look["props"]["visible"]
    index = next(one["id"] for one in config["dependencies"] if len(one["inputs"]) == 12)
    data = [None, TABLE, QUESTION, False, (), *DEFAULTS]
    call = {"data": data, "fn_index": index, "session_hash": "s"}
    assert client.post("gradio_api/queue/join", json=call).status_code == 200
    events = client.get("gradio_api/queue/data", params={"session_hash": "s"}).text
    return "".join(re.findall(r'<p class=\\"text\\">(.*?)</p>', events))


@pytest.mark.medium
@cases(
    "command, package, ask",
    ("serve", "fastapi", ask_server),
    ("page", "gradio", ask_page),
    ids=["serve", "page"],
)
def test_the_default_model_answers_without_tensorflow(command, package, ask, tmp_path):
    pytest.importorskip(package)
    log = tmp_path / "log"
    arguments = [sys.executable, "-c", HIDING, command]
    arguments += ["--port=0"] if command == "serve" else []
    with log.open("w") as file:
        process = subprocess.Popen(
            arguments, cwd=ROOT, stdout=file, stderr=file, env={**os.environ, "HOME": str(tmp_path)}
        )
    try:
        while not re.search("^ready|^the page is at", log.read_text(), re.MULTILINE):
            assert process.poll() is None, log.read_text()
            time.sleep(0.05)
        (url,) = re.findall(r"http://[\d.]+:\d+/", log.read_text())
        with httpx.Client(base_url=url, timeout=60) as client:
            assert ask(client) == "gas giant"
        process.terminate()
        assert process.wait(timeout=60) == 0
    finally:
        process.kill()
        process.wait()


@cases(
    "arguments, output",
    (["ask", "moon_landings.csv", "which missions flew in 1969?"], "answer: Apollo 11, Apollo 12"),
    (
        ["ask", "moon_landings.csv", "--conversation", "what flew in 1969?", "who led them?"],
        "Pete Conrad",
    ),
    (["show", "moon_landings.csv"], "moon_landings.csv: 6 rows, 6 columns"),
)
def test_commands_work_where_tensorflow_is_not(arguments, output):
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    cwd = ROOT / "experiments" / "demo_data"
    done = run_python("-c", HIDING, *arguments, cwd=cwd, env=environment)
    assert done.stderr == "" and output in done.stdout


def test_importing_the_package_and_reading_a_table_imports_no_tensorflow():
    code = "import mate_tf, sys; mate_tf.Table; mate_tf.from_pretrained; mate_tf.read_table\n"
    code += "assert not {'tensorflow', 'keras', 'tensorflow_text'} & {*sys.modules}"
    assert run_python("-c", code).returncode == 0


@pytest.mark.medium
def test_a_model_of_the_hub_with_a_graph_needs_no_tensorflow():
    asking = (
        HIDING.partition("import mate_tf")[0]
        + f"""
import mate_tf
from mate_tf.weights import folder
folder.download = lambda name, revision: folder.DEFAULT_MODEL
print(mate_tf.from_pretrained("me/model").answer({TABLE!r}, {QUESTION!r}).text)
"""
    )
    done = run_python("-c", asking)
    assert done.stdout == "gas giant\n", done.stderr


@pytest.mark.medium
def test_an_answer_leaves_nothing_in_the_home_folder(tmp_path):
    home = {name: str(tmp_path) for name in ("HOME", "USERPROFILE", "XDG_CACHE_HOME")}
    done = run_python("-m", "mate_tf", "ask", "-", QUESTION, input=TABLE, env=os.environ | home)
    assert "gas giant" in done.stdout
    assert list(tmp_path.rglob("*")) == []


@pytest.mark.medium
@cases(
    "arguments",
    ["export", "--output-dir=my_model"],
    ["ask", "experiments/demo_data/planets.csv", QUESTION, "--dtype=mixed_bfloat16"],
)
def test_what_needs_tensorflow_says_so(arguments):
    done = run_python("-c", HIDING, *arguments)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith("mate-tf: expected TensorFlow, without which models answer by a")
