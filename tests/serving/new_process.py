"""An exported model in a new process, with TensorFlow and tensorflow-text and without mate_tf."""

import json
import pathlib
from typing import Any

from tests.small import run_python

SCRIPT = """
import json, sys
import tensorflow as tf
from tensorflow.python.framework import op_def_registry

def as_bytes(value):
    if isinstance(value, list):
        return [as_bytes(one) for one in value]
    return value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value

asked = json.load(sys.stdin)
unknown = [name for name in asked["operations"] if op_def_registry.get(name) is None]
import tensorflow_text

assert not [name for name in unknown if op_def_registry.get(name) is None]
signatures = tf.saved_model.load(asked["directory"]).signatures
outputs = {}
for name, inputs in asked["signatures"].items():
    tensors = {key: tf.constant(as_bytes(values)) for key, values in inputs.items()}
    found = signatures[name](**tensors)
    outputs[name] = {key: values.numpy().tolist() for key, values in found.items()}
assert not [name for name in sys.modules if name.startswith("mate_tf")]
print(json.dumps([unknown, outputs], default=bytes.decode))
"""


def ask(
    directory: pathlib.Path, cwd: pathlib.Path, operations: tuple[str, ...] = (), **signatures: Any
) -> tuple[list[str], dict[str, dict[str, list]]]:
    """Asks signatures of a model.

    Args:
        directory: the exported model.
        cwd: the working directory, in which there is no mate_tf.
        operations: names of operations.
        signatures: the inputs of each, as lists or tensors by name.

    Returns:
        Those of the operations that TensorFlow alone does not know, and the outputs of each
        signature, as lists.
    """

    def plain(value: Any) -> Any:
        if isinstance(value, bytes):
            return value.decode("utf-8", "surrogateescape")
        return value.numpy().tolist()

    asked = {"directory": str(directory), "operations": operations, "signatures": signatures}
    # Isolated: neither this folder nor the environment's paths are looked for modules.
    done = run_python("-I", "-c", SCRIPT, input=json.dumps(asked, default=plain), cwd=cwd)
    assert done.returncode == 0, done.stderr
    unknown, outputs = json.loads(done.stdout.splitlines()[-1])
    return unknown, outputs
