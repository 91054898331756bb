"""Asks a server by a client that others wrote, and prints its answer as JSON.

    python tests/serving/http/clients.py CLIENT http://127.0.0.1:8080/v1/models/NAME:predict FOLDER

test_clients.py runs it, perhaps in another environment. FOLDER is for a generated client.
"""

import asyncio
import json
import pathlib
import subprocess
import sys
from typing import Any

QUESTION, COLUMNS = "a", {"a": ["c", "d", "e"], "b": ["1", "2", "3"]}


def of_kserve(protocol: str, is_binary: bool = False) -> Any:
    async def run() -> Any:
        from kserve import InferenceRESTClient, InferInput, InferRequest, RESTConfig

        client = InferenceRESTClient(RESTConfig(protocol=protocol))
        assert await client.is_server_live(BASE) and await client.is_model_ready(BASE, NAME)
        if protocol == "v1":
            data: Any = {"instances": [{"question": QUESTION, "table": COLUMNS}]}
            reply = await client.infer(BASE, data, model_name=NAME)
            return reply["predictions"][0]["answer"]
        inputs = []
        for name, text in (("question", QUESTION), ("table", json.dumps(COLUMNS))):
            inputs.append(InferInput(name, [1], "BYTES", None if is_binary else [text]))
            if is_binary:
                import numpy

                inputs[-1].set_data_from_numpy(numpy.array([text.encode()], object), True)
        reply = await client.infer(BASE, InferRequest(NAME, inputs), model_name=NAME)
        return reply.outputs[0].data[0]

    return asyncio.run(run())


def of_triton(is_binary: bool, version: str = "") -> Any:
    import numpy
    from tritonclient.http import InferenceServerClient, InferInput

    client = InferenceServerClient(BASE.removeprefix("http://"), network_timeout=60)
    assert client.is_server_ready() and client.is_model_ready(NAME, version)
    assert client.get_server_metadata()["name"] == "mate_tf"
    inputs = []
    for tensor in client.get_model_metadata(NAME, version)["inputs"]:
        text = {"question": QUESTION, "table": json.dumps(COLUMNS)}[tensor["name"]]
        inputs.append(InferInput(tensor["name"], [1], tensor["datatype"]))
        inputs[-1].set_data_from_numpy(numpy.array([text], object), binary_data=is_binary)
    packing = "gzip" if is_binary else None
    result = client.infer(NAME, inputs, version, request_compression_algorithm=packing)
    (answer,) = result.as_numpy("answer")
    return answer


def of_hub() -> Any:
    from huggingface_hub import InferenceClient

    client = InferenceClient(timeout=60)
    return client.table_question_answering(COLUMNS, QUESTION, model=URL).answer


def of_document() -> Any:
    """By a client that openapi-python-client makes from the server's document."""
    import openapi_python_client  # noqa: F401

    command = [sys.executable, "-m", "openapi_python_client", "generate", "--meta=none"]
    command += [f"--url={BASE}/openapi.json", f"--output-path={FOLDER / 'generated'}"]
    made = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "WARNING" not in made.stdout.upper(), made.stdout
    sys.path.insert(0, str(FOLDER))
    from generated import Client
    from generated.api.default import predict
    from generated.models import Answer, PredictReply, PredictRequest, Previous, Question, Table

    with Client(BASE, timeout=60) as client:
        table = Table(list(COLUMNS), [list(row) for row in zip(*COLUMNS.values(), strict=True)])
        request = PredictRequest([Question(table, question=QUESTION)], alternatives=1)
        reply = predict.sync(NAME, client=client, body=request)
        assert isinstance(reply, PredictReply)
        (answer,) = reply.predictions
        assert isinstance(answer, Answer) and len(answer.alternatives) == 1
        question = Question(table, question="b", previous=Previous.from_dict(answer.to_dict()))
        assert predict.sync(NAME, client=client, body=PredictRequest([question]))
    return answer.answer


CLIENTS = {
    "kserve_v1": lambda: of_kserve("v1"),
    "kserve_v2": lambda: of_kserve("v2"),
    "kserve_v2_binary": lambda: of_kserve("v2", True),
    "tritonclient": lambda: of_triton(False),
    "tritonclient_binary": lambda: of_triton(True, "1"),
    "huggingface_hub": of_hub,
    "openapi_python_client": of_document,
}

if __name__ == "__main__":
    CLIENT, URL, FOLDER = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    BASE, _, NAME = URL.removesuffix(":predict").partition("/v1/models/")
    try:
        answer = CLIENTS[CLIENT]()
        print(json.dumps(answer.decode() if isinstance(answer, bytes) else answer))
    except ModuleNotFoundError as error:
        print(json.dumps({"missing": error.name}))
