"""Makes a folder of weights alone, as mate-tf export --weights-alone does, of what `train` wrote.

    python -m experiments.exported.finish --programs=out/programs --weights=out/mean.npz \\
        --output_dir=out/default/last_weights
"""

import pathlib
from collections.abc import Sequence

from absl import flags

from experiments import program
from experiments.exported.train import STEP, read


def finish(programs: pathlib.Path, weights: pathlib.Path, output: pathlib.Path) -> None:
    """Writes the folder; ValueError if a weight is missing, one too many or of another shape."""
    from mate_tf.training.examples import build_model
    from mate_tf.training.run import load_config
    from mate_tf.weights.run import DESCRIPTION, packed, weights_by_path, write_weights

    arrays = read(weights)
    step = int(arrays.pop(STEP))
    expected = weights_by_path(build_model(load_config(programs)))
    if {n: one.shape for n, one in arrays.items()} != {n: one.shape for n, one in expected.items()}:
        raise ValueError(f"expected the weights of the model of {programs} in {weights}")
    description = {name: (programs / name).read_bytes() for name in DESCRIPTION}
    write_weights(output, packed(arrays, step), description)


def _main(_: Sequence[str]) -> None:
    names = ("programs", "weights", "output_dir")
    finish(*(pathlib.Path(flags.FLAGS[name].value) for name in names))


if __name__ == "__main__":  # flags of the module would meet those of others in the tests
    flags.DEFINE_string("programs", None, "folder that prepare wrote", required=True)
    flags.DEFINE_string("weights", None, "file that train wrote", required=True)
    flags.DEFINE_string("output_dir", None, "folder to write to", required=True)
    program.run(_main)
