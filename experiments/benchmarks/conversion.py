"""Times how the sentences of passages are put into the cells of a table, beside the model.

    python -m experiments.benchmarks.conversion --hybridqa_dir=HybridQA --vocab_file=vocab.txt

This is the first stage of PointR, with the preset --config and random weights. The program measures
how long the sentences take (TF-IDF), once for a new table and once for a known one, and compares
that with the forward pass.
"""

import functools
import itertools
from collections.abc import Callable
from typing import Any

from absl import flags

from experiments import program
from experiments.benchmarks.runners import features_of, interleaved

_HYBRIDQA = flags.DEFINE_string(
    "hybridqa_dir", None, "folder of the official release", required=True
)
_VOCAB = flags.DEFINE_string("vocab_file", None, "BERT's or TAPAS's vocabulary", required=True)
_LIMIT = flags.DEFINE_integer("limit", 100, "so many questions of the dev split", lower_bound=1)
_CONFIG = flags.DEFINE_string("config", "pointr_hybridqa_minilm", "a preset pointr_...")
_ROUNDS = flags.DEFINE_integer("rounds", 5, "repetitions, of which the median counts")


def main(_) -> None:
    import numpy as np
    import tensorflow as tf

    from mate_tf.datasets import passages
    from mate_tf.datasets.tasks import read_split
    from mate_tf.features.builder import FeatureBuilder
    from mate_tf.features.wordpiece import Wordpiece
    from mate_tf.pointr.inputs import expand, pointing_features, restrict
    from mate_tf.training.examples import build_model
    from mate_tf.training.starting_points import check_kind, make_config

    config = make_config(_CONFIG.value, None, [])
    check_kind(config, _CONFIG.value, "pointr")
    features = pointing_features(config.point.max_seq_length)
    builder = FeatureBuilder(Wordpiece(_VOCAB.value), features)
    model = build_model(config.point)
    forward = tf.function(lambda features: model(features, training=False))
    questions = read_split("HYBRIDQA", _HYBRIDQA.value, "dev")
    times = []
    for linked, question in itertools.islice(questions, _LIMIT.value):
        given = config.inputs, restrict(linked, config.inputs.evidence), question
        example = builder.build(expand(*given), question, require_answers=False)
        length = config.point.encoder.fixed_length or example.report.num_tokens
        batch = features_of(example, length)
        runners: dict[str, Callable[[], Any]] = {
            "forget": passages.forget_tables,
            "new": functools.partial(expand, *given),
            "known": functools.partial(expand, *given),
            "pass": functools.partial(forward, batch),
        }
        seconds = interleaved(runners, _ROUNDS.value)
        times.append([1000 * np.median(seconds[name]) for name in ("new", "known", "pass")])
    new, known, passes = np.array(times).T
    print(f"{len(times)} questions, {np.median(passes):.1f} ms a forward pass (median)\n")
    print("| table | milliseconds | share of the forward pass | largest share |\n|---|---|---|---|")
    for name, taken in (("new", new), ("known", known)):
        share = taken / passes
        print(f"| {name} | {np.median(taken):.2f} | {np.median(share):.1%} | {share.max():.1%} |")


if __name__ == "__main__":
    program.run(main)
