"""Times the expansion of tables with sentences of their passages beside PointR's first stage.

    python -m experiments.benchmarks.expansion --config=pointr_hybridqa_minilm \\
        --input_dir=HybridQA --split=dev --vocab_file=minilm/vocab.txt

For each question, in turn: the expansion of its table's cells (TF-IDF of all sentences that they
link to), of a table that was not seen before and of one that another question was asked about, and
the pointer's forward pass on what comes out, one example at a time, with random weights. Prints the
median over the questions of each, in milliseconds, and of the expansion's share of the forward
pass; and the same of the largest share.
"""

import itertools
import time

from absl import flags

from experiments import program

_CONFIG = flags.DEFINE_string("config", None, "a preset pointr_...", required=True)
_TASK = flags.DEFINE_enum("task", "HYBRIDQA", ["HYBRIDQA", "LINKED_JSONL"], "what the input is")
_INPUT = flags.DEFINE_string("input_dir", None, "folder with the data set", required=True)
_SPLIT = flags.DEFINE_string("split", "dev", "its split")
_VOCAB = flags.DEFINE_string("vocab_file", None, "BERT's or TAPAS's vocabulary", required=True)
_LIMIT = flags.DEFINE_integer("limit", 100, "only so many questions", lower_bound=1)
_ROUNDS = flags.DEFINE_integer("rounds", 5, "repetitions, of which the median", lower_bound=1)


def milliseconds(function, *arguments) -> float:
    """How long a call takes."""
    begin = time.perf_counter()
    function(*arguments)
    return 1000.0 * (time.perf_counter() - begin)


def main(argv: list[str]) -> None:
    from mate_tf.training.starting_points import check_kind, make_config

    config = make_config(_CONFIG.value, None, argv[1:])
    check_kind(config, _CONFIG.value, "pointr")

    import numpy as np
    import tensorflow as tf

    from mate_tf.datasets import passages
    from mate_tf.datasets.tasks import read_split
    from mate_tf.features.builder import FeatureBuilder
    from mate_tf.features.token_features import TokenFeatures
    from mate_tf.features.wordpiece import Wordpiece
    from mate_tf.pointr.inputs import expand, pointing_features, restrict
    from mate_tf.training.examples import build_model

    features = pointing_features(config.point.max_seq_length)
    builder = FeatureBuilder(Wordpiece(_VOCAB.value), features)
    model = build_model(config.point)
    forward = tf.function(lambda features: model(features, training=False))
    pairs = list(
        itertools.islice(read_split(_TASK.value, _INPUT.value, _SPLIT.value), _LIMIT.value)
    )
    times = []
    for linked, question in pairs:
        linked = restrict(linked, config.inputs.evidence)
        table = expand(config.inputs, linked, question)
        example = builder.build(table, question, require_answers=False)
        length = config.point.encoder.fixed_length or example.report.num_tokens
        batch = TokenFeatures.from_dict(
            {
                name: tf.constant(example.features[name][None, :length].astype(np.int32))
                for name in TokenFeatures._fields
                if name in example.features
            }
        )  # [1, S]
        forward(batch)  # traces, and warms up
        of_question = []
        for _ in range(_ROUNDS.value):
            passages.forget_tables()
            first, again = (milliseconds(expand, config.inputs, linked, question) for _ in range(2))
            of_question.append((first, again, milliseconds(forward, batch)))
        times.append(np.median(of_question, axis=0))
    first, again, passes = np.array(times).T
    print(f"{len(pairs)} questions, {np.median(passes):.1f} ms a forward pass (median)")
    print("| table | milliseconds | share of the forward pass | largest share |\n|---|---|---|---|")
    for name, taken in (("new", first), ("known", again)):
        share = taken / passes
        print(f"| {name} | {np.median(taken):.2f} | {np.median(share):.1%} | {share.max():.1%} |")


if __name__ == "__main__":
    program.run(main, trains=True)
