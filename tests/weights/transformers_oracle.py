"""Saves random models of transformers with their outputs, as test_transformers.py asks for them.

A folder's cases.json maps a name to the class of a model, its config and how large a shard may be;
its inputs.npz holds the inputs. A folder of that name becomes the saved model with its outputs.npz.
PyTorch and TensorFlow share no process.
"""

import json
import pathlib
import sys

import numpy as np


def main(folder: pathlib.Path) -> None:
    import torch
    import transformers

    with np.load(folder / "inputs.npz") as arrays:
        inputs = {name: torch.tensor(arrays[name]) for name in arrays.files}
    labels = inputs.pop("labels")
    for name, case in json.loads((folder / "cases.json").read_text()).items():
        torch.manual_seed(0)
        kind = getattr(transformers, case["class"])
        model = kind(transformers.TapasConfig(**case["config"])).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.ndim < 2:  # biases start at 0 and norms at 1, which would hide them
                    parameter.add_(torch.randn_like(parameter) * 0.1)
            outputs = model(**inputs, **({"labels": labels} if case["needs_labels"] else {}))
        model.save_pretrained(folder / name, max_shard_size=case["max_shard_size"])
        arrays = {key: value.numpy() for key, value in outputs.items() if value is not None}
        np.savez(folder / name / "outputs.npz", **arrays)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
