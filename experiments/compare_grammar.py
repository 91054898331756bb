"""Compares full attention with grammar-guided attention, hard and soft, on sentences.

    python -m experiments.create_data --task=SST2 --input_dir=sst2 --output_dir=out/sst2 \
        --vocab_file=minilm/vocab.txt --max_seq_length=128 --tagger=textblob
    python -m experiments.compare_grammar --config=sst2_minilm --data_dir=out/sst2 \
        --init_checkpoint=minilm --output_dir=out/grammar

Trains each strategy with each seed from the same weights, for the same steps, in a folder of its
own under --output_dir, and prints the table of the paper: accuracy, precision and weighted F1 on
the dev split, median and half the interquartile range over the seeds; the share of the pairs of
real tokens that the rules relate; the seconds of training. Tagging is none of them: it happened
when the data was made, which says how long it took. Started again, it goes on where it stopped.

--config is a classifier's preset (sst2_minilm, sst2_tiny); its values can be changed as in
experiments/finetune.py, for all strategies alike. Hard and soft follow the paper's rules,
hard_extended and soft_extended more of them (mate_tf/attention/grammar.py):
--strategies=full,hard_extended.
"""

import dataclasses
import json
import pathlib
import time

from absl import flags, logging

from experiments import terminal
from experiments.finetune import finetune, load_preset, parse_flags

_SEEDS = flags.DEFINE_integer("seeds", 3, "how many runs of each strategy", lower_bound=1)
_STRATEGIES = flags.DEFINE_list(
    "strategies",
    ["full", "hard", "soft"],
    "which of full, hard, hard_extended, soft and soft_extended",
)
_OUTPUT = flags.DEFINE_string("output_dir", None, "folder for the runs", required=True)

# The architecture of each and its rules.
STRATEGIES = {
    "full": ("tapas", "paper"),
    "hard": ("grammar_hard", "paper"),
    "hard_extended": ("grammar_hard", "extended"),
    "soft": ("grammar_soft", "paper"),
    "soft_extended": ("grammar_soft", "extended"),
}
RESULT_FILE = "result.json"
METRICS = ("accuracy", "precision", "f1")


def related_share(config, data_dir: pathlib.Path) -> float:
    """The share of the ordered pairs of real tokens of the dev split that the rules relate.

    With full attention all; with hard rules those that attend; with soft ones those that the bias
    favours.
    """
    import tensorflow as tf

    from mate_tf.attention.grammar import RelatedTags, favoured_tags
    from mate_tf.attention.patterns import group_mask, head_groups, pattern_mask
    from mate_tf.tables.records import batch_by_length, read_records
    from mate_tf.tables.splits import split_files
    from mate_tf.tables.token_features import TokenFeatures

    attention = config.encoder.attention
    (group,) = head_groups(attention, config.encoder.num_heads)
    related = pairs = 0.0
    dataset = batch_by_length(
        read_records(split_files(data_dir, "dev"), skip_corrupt=config.skip_corrupt),
        config.eval_batch_size,
        config.length_buckets,
    )
    for batch in dataset:
        features = TokenFeatures.from_dict(batch)
        real = tf.greater(features.input_mask, 0)
        if attention.architecture == "grammar_soft":
            tags = RelatedTags(favoured_tags(attention.grammar_rules))
            mask = pattern_mask(tags, features, features)
        else:
            mask = group_mask(group, features)  # [B, F or 1, T]
        count = tf.math.count_nonzero
        related += float(count(mask & real[:, :, None], dtype=tf.int64))
        pairs += float(count(real[:, :, None] & real[:, None], dtype=tf.int64))
    return related / pairs


def run_once(config, data_dir: pathlib.Path, model_dir: pathlib.Path, init: str | None) -> dict:
    """The metrics and the seconds of a run, from its folder if it is there already."""
    path = model_dir / RESULT_FILE
    if path.is_file():
        return json.loads(path.read_text(encoding="utf-8"))
    logging.info("training %s", model_dir)
    is_new = not model_dir.exists()
    started = time.perf_counter()
    metrics = finetune(config, data_dir, model_dir, init)
    seconds = time.perf_counter() - started if is_new else None
    result = {name: metrics[name] for name in METRICS} | {"seconds": seconds}
    path.write_text(json.dumps(result) + "\n", encoding="utf-8")
    return result


def spread(values: list[float], scale: float = 1.0, digits: int = 1) -> str:
    """Median and half the interquartile range."""
    import numpy as np

    low, median, high = np.percentile(np.array(values) * scale, [25, 50, 75])
    return f"{median:.{digits}f} ± {(high - low) / 2:.{digits}f}"


def main(argv: list[str]) -> None:
    from mate_tf.training.config import ClassifyConfig
    from mate_tf.training.overrides import apply_overrides

    preset = flags.FLAGS.config
    config = apply_overrides(load_preset(preset), argv[1:])
    if not isinstance(config, ClassifyConfig):
        raise ValueError(f"expected a classifier's preset as --config, got {preset!r}")
    data_dir, output_dir = pathlib.Path(flags.FLAGS.data_dir), pathlib.Path(_OUTPUT.value)
    if unknown := sorted(set(_STRATEGIES.value) - set(STRATEGIES)):
        raise ValueError(f"expected --strategies among {', '.join(STRATEGIES)}, got {unknown}")
    results: dict[str, list[dict]] = {strategy: [] for strategy in _STRATEGIES.value}
    configs = {}
    for seed in range(1, _SEEDS.value + 1):
        for strategy in _STRATEGIES.value:
            architecture, rules = STRATEGIES[strategy]
            attention = dataclasses.replace(
                config.encoder.attention, architecture=architecture, grammar_rules=rules
            )
            encoder = dataclasses.replace(config.encoder, attention=attention)
            configs[strategy] = dataclasses.replace(config, encoder=encoder, seed=seed)
            result = run_once(
                configs[strategy],
                data_dir,
                output_dir / f"{strategy}_{seed}",
                flags.FLAGS.init_checkpoint,
            )
            results[strategy].append(result)
    print("| strategy | accuracy, % | precision, % | F1, % | related pairs, % | training, s |")
    print("|---|---|---|---|---|---|")
    for strategy, runs in results.items():
        scores = [spread([run[name] for run in runs], 100.0) for name in METRICS]
        timed = [run["seconds"] for run in runs if run["seconds"] is not None]
        seconds = spread(timed, digits=0) if timed else "interrupted"
        share = related_share(configs[strategy], data_dir)
        print(f"| {strategy} | {' | '.join(scores)} | {100 * share:.1f} | {seconds} |")


if __name__ == "__main__":
    # Of experiments/finetune.py's flags, all but the folder of its one run.
    flags.FLAGS.set_default("model_dir", "")
    terminal.run(main, flags_parser=parse_flags)
