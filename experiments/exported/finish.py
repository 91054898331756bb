"""Makes a folder of weights alone, as mate-tf export --weights-alone does, of what `train` wrote.

    python -m experiments.exported.finish --programs=out/programs --output_dir=out/model \\
        --weights=out/one.npz,out/two.npz

Of several files it takes the mean of each weight.
"""

import pathlib
from collections.abc import Sequence

import numpy as np
from absl import flags

from experiments import program
from experiments.exported.train import STEP, read
from mate_tf.training.examples import build_model
from mate_tf.training.run import load_config
from mate_tf.weights.run import DESCRIPTION, packed, weights_by_path, write_weights


def finish(programs: pathlib.Path, weights: Sequence[str], output: pathlib.Path) -> None:
    """Writes the folder; ValueError if a weight is missing, one too many or of another shape."""
    files = [read(pathlib.Path(path)) for path in weights]
    step = max(int(one.pop(STEP)) for one in files)
    model = weights_by_path(build_model(load_config(programs)))
    expected = {name: tuple(one.shape) for name, one in model.items()}
    if any({name: one[name].shape for name in one} != expected for one in files):
        raise ValueError(f"expected the weights of the model of {programs} in {', '.join(weights)}")
    means = {n: np.mean([one[n].astype(np.float32) for one in files], axis=0) for n in expected}
    description = {name: (programs / name).read_bytes() for name in DESCRIPTION}
    write_weights(output, packed(means, step), description)


if __name__ == "__main__":  # flags of the module would meet those of others in the tests
    flags.DEFINE_string("programs", None, "folder that prepare wrote", required=True)
    flags.DEFINE_list("weights", None, "files that train wrote", required=True)
    flags.DEFINE_string("output_dir", None, "folder to write to", required=True)
    given, path = flags.FLAGS, pathlib.Path
    program.run(lambda _: finish(path(given.programs), given.weights, path(given.output_dir)))
