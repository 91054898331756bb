"""Shows where the attention of a table's tokens goes, beside attention equal for all tokens.

    python -m experiments.paper.attention_flow --model=out/wtq_run --data_dir=out/wtq \\
        --output_dir=out/flow

This makes table 7 of the MATE paper for any model and data set. Attention from tokens in tables'
bodies goes to [CLS], to the question, to headers of the same or another column, and to cells of the
same or another row and column. The shares are means over tokens, layers and heads. Where there are
row heads and column heads, each group has its own.

"Unasked" is the attention of queries of zero, equal for all tokens that a head may see. It shows
the part that comes from the architecture alone, with TableFormer its biases included. "Uniform" is
the paper's baseline: equal for all tokens of the example, even those that no head sees.

--model takes the same as in `mate-tf ask`, except TableETC. --data_dir is a folder of records
(experiments/create_data.py); the first --num_examples of --split are read. The program prints the
table and draws it in flow.png (`pip install 'mate_tf[plots]'`).
"""

import importlib
import pathlib

from absl import flags
from tqdm import tqdm

from experiments import program
from mate_tf.command_line import arguments

_MODEL = program.define_flags(arguments.add_model)
_DATA = flags.DEFINE_string("data_dir", None, "folder of records", required=True)
_SPLIT = flags.DEFINE_string("split", "dev", "of them")
_EXAMPLES = flags.DEFINE_integer("num_examples", 500, "examples at most", lower_bound=1)
_BATCH = flags.DEFINE_integer("batch_size", 8, "examples at once", lower_bound=1)
_OUTPUT = flags.DEFINE_string("output_dir", None, "folder to write to", required=True)

_LENGTHS = (128, 256, 512, 1024)  # that batches are cut to


def flow_of_records():
    """The flow of the model of --model on the records of --data_dir."""
    from experiments.paper.attention_shares import attention_flow
    from mate_tf.features.token_features import TokenFeatures
    from mate_tf.records.batches import batch_by_length, read_records
    from mate_tf.records.conversion_file import file_sha256, read_conversion
    from mate_tf.records.splits import split_files
    from mate_tf.serving.loading import find_model

    options = _MODEL()
    files = split_files(_DATA.value, _SPLIT.value)
    stored = find_model(arguments.find_model(options.model), options.revision, options.architecture)
    conversion = read_conversion(_DATA.value)
    if conversion.vocabulary_sha256 not in (None, file_sha256(stored.vocab_file)):
        raise ValueError(
            f"expected records made with the vocabulary of the model, {stored.vocab_file}, got "
            f"others in {_DATA.value}"
        )
    lengths = () if stored.encoder_config.fixed_length else _LENGTHS
    encoder = stored.model().encoder
    records = read_records(files).take(_EXAMPLES.value)
    flow = None
    with tqdm(unit="example", disable=None) as bar:
        for batch in batch_by_length(records, _BATCH.value, lengths):
            features = TokenFeatures.from_dict(batch)
            here = attention_flow(encoder, features)
            flow = here if flow is None else flow.plus(here)
            bar.update(int(features.row_ids.shape[0]))
    if flow is None:
        raise ValueError(f"expected examples in {_DATA.value}, got none in {_SPLIT.value}")
    return flow


def table_of(kinds, shares) -> str:
    """The shares in Markdown, at the end all heads' as a multiple of the uniform ones."""
    names = [name for name in shares if name != "uniform"]
    lines = [
        f"| attention goes to | {', % | '.join(names)}, % | uniform, % | all heads / uniform |",
        "|---" * (len(names) + 3) + "|",
    ]
    for index, kind in enumerate(kinds):
        cells = [f"{100 * shares[name][index]:.2f}" for name in (*names, "uniform")]
        uniform = shares["uniform"][index]
        ratio = f"{shares['all heads'][index] / uniform:.2f}" if uniform else ""
        lines.append(f"| {kind} | {' | '.join(cells)} | {ratio} |")
    return "\n".join(lines)


def draw(kinds, shares, path: pathlib.Path) -> None:
    """Bars of each kind, the groups of heads beside each other and beside the uniform share."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from experiments.paper.attention_shares import UNASKED

    figure, axis = plt.subplots(figsize=(8.4, 4.2))
    names = [name for name in shares if not name.endswith(UNASKED)]
    height = 0.8 / len(names)
    colors = {"uniform": "#b9bec6", "all heads": "#2b5c9e", "row heads": "#41ab5d"}
    for index, name in enumerate(names):
        places = [kind + (index - (len(names) - 1) / 2) * height for kind in range(len(kinds))]
        color = colors.get(name, "#e6550d")
        axis.barh(places, 100 * shares[name], height, label=name, color=color)
    axis.set_yticks(range(len(kinds)), kinds)
    axis.invert_yaxis()
    axis.set_xlabel("share of the attention of a token in a table, %")
    axis.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main(_) -> None:
    from experiments.paper.attention_shares import KINDS

    importlib.import_module("matplotlib")  # missing, it is known before the work
    shares = flow_of_records().shares()
    output = pathlib.Path(_OUTPUT.value)
    output.mkdir(parents=True, exist_ok=True)
    draw(KINDS, shares, output / "flow.png")
    print(table_of(KINDS, shares))


if __name__ == "__main__":
    program.run(main)
