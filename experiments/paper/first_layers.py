"""Writes the first layers of BERT's weights in Hugging Face's layout, as a smaller model.

    python -m experiments.paper.first_layers --weights=minilm --num_layers=2 \\
        --output_dir=out/minilm_2

Small models learn from them within minutes what they do not learn from random weights.
"""

import json
import pathlib
import re
import shutil

from absl import flags

from experiments import program
from mate_tf.reading.text_files import complete_text_file, read_json

_WEIGHTS = flags.DEFINE_string("weights", None, "folder with model.safetensors", required=True)
_NUMBER = flags.DEFINE_integer("num_layers", 2, "how many layers stay", lower_bound=1)
_OUTPUT = flags.DEFINE_string("output_dir", None, "folder to write to", required=True)


def main(_) -> None:
    from safetensors.numpy import save_file

    from mate_tf.weights.run import open_safetensors

    source, output = pathlib.Path(_WEIGHTS.value), pathlib.Path(_OUTPUT.value)
    output.mkdir(parents=True, exist_ok=True)
    with open_safetensors(source / "model.safetensors") as file:
        layers = {name: re.search(r"\.layer\.(\d+)\.", name) for name in file.keys()}  # noqa: SIM118
        kept = {
            name: file.get_tensor(name)
            for name, layer in layers.items()
            if layer is None or int(layer[1]) < _NUMBER.value
        }
    save_file(kept, output / "model.safetensors")
    shutil.copy(source / "vocab.txt", output)
    config = read_json(source / "config.json") | {"num_hidden_layers": _NUMBER.value}
    with complete_text_file(output / "config.json") as written:
        json.dump(config, written)
    print(f"{len(kept)} tensors of {len(layers)}")


if __name__ == "__main__":
    program.run(main)
