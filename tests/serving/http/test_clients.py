"""Clients that others wrote get the answers that the server gives.

MATE_TF_CLIENTS_PYTHON names the interpreter of an environment that has them; without it they are
looked for beside the tests' own packages:

    uv venv clients
    uv pip install --python clients/bin/python kserve 'tritonclient[http]' huggingface_hub \\
        openapi-python-client
    MATE_TF_CLIENTS_PYTHON=clients/bin/python make test
"""

import json
import os
import subprocess
import sys

import httpx
import pytest

from tests.serving.http import clients


@pytest.mark.parametrize("client", clients.CLIENTS)
def test_a_client_gets_the_servers_answer(client, server, tmp_path):
    python = os.environ.get("MATE_TF_CLIENTS_PYTHON", sys.executable)
    command = [python, clients.__file__, client, server.predict, str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    answer = json.loads(run.stdout.splitlines()[-1])
    if isinstance(answer, dict):
        pytest.skip(f"{answer['missing']} is not installed in {python}")
    question = {"question": clients.QUESTION, "table": clients.COLUMNS}
    reply = httpx.post(server.predict, json={"instances": [question]}, timeout=60).json()
    assert answer == reply["predictions"][0]["answer"]
