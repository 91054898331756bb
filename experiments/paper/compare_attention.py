"""Compares architectures: the same preset, data, first weights, steps and seeds for each.

    python -m experiments.paper.compare_attention --config=wtq_minilm --data_dir=out/wtq \\
        --init_checkpoint=minilm --architectures=tapas,mate,tableformer_rc_gp \\
        --output_dir=out/compare_wtq

Trains each architecture (a name of mate_tf/presets.py) with each seed, in a folder of its own under
--output_dir, and prints a table of the last evaluation's metrics on the dev split, median and half
the interquartile range over the seeds; of the share of the pairs of real tokens that attend to each
other by the architecture's pattern, before any window, or, with grammar_soft, are favoured; and of
the minutes of training, its evaluations included. Started again, it goes on where it stopped.

{output_dir}/results.json holds each finished run's metrics and seconds, each architecture's share
of the pairs, and what all runs have in common: the config, the data and the first weights. A copy
of it in a new --output_dir spares the runs that it holds.

Values of the preset can be changed as in experiments/finetune.py, for all architectures alike, and
for one of them with --variant: an architecture and what is changed of its config, such as
--variant="mate_exact encoder.attention.row_heads_ratio=1.0". The grammar-guided ones need records
with tags (create_data --tagger).

Where --init_checkpoint is the --output_dir of another comparison, each architecture and variant
starts from its own run there, that of the first seed: so intermediate pre-training is compared.
"""

import dataclasses
import functools
import pathlib
import time

from absl import flags, logging

from experiments import strategy_flags, terminal
from experiments.config_files import check_kind, make_config, parse_flags
from experiments.finetune import load_options, use_inputs_of_run
from experiments.paper.comparison_results import (
    SHARED_KEYS,
    Results,
    folder_of,
    read_comparison,
    spread,
)

_SEEDS = flags.DEFINE_integer("seeds", 3, "how many runs of each architecture", lower_bound=1)
_ARCHITECTURES = flags.DEFINE_list(
    "architectures", ["tapas", "mate", "tableformer_rc_gp"], "names of mate_tf/presets.py"
)
_VARIANTS = flags.DEFINE_multi_string(
    "variant", [], "an architecture and, between blanks, KEY=VALUE of its config; again for more"
)
_OUTPUT = flags.DEFINE_string("output_dir", None, "folder for the runs", required=True)

_WITHOUT_PATTERN = ("linformer", "table_etc")


def attended_share(config, data_dir: pathlib.Path) -> float | None:
    """The share of the ordered pairs of real tokens of the dev split that a pattern allows.

    The mean over the heads. Of soft grammar rules it is the share that the bias favours. None where
    no pattern says who attends to whom: of a Linformer and of TableETC.
    """
    import tensorflow as tf

    from mate_tf.features.token_features import TokenFeatures
    from mate_tf.layers.attention.grammar import RelatedTags, favoured_tags
    from mate_tf.layers.attention.patterns import group_mask, head_groups, pattern_mask
    from mate_tf.records.batches import batch_by_length, read_records
    from mate_tf.records.splits import split_files

    attention = config.encoder.attention
    if attention.architecture in _WITHOUT_PATTERN:
        return None
    groups = head_groups(attention, config.encoder.num_heads)
    allowed = pairs = 0.0
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
            masks = [(pattern_mask(tags, features, features), config.encoder.num_heads)]
        else:
            masks = [(group_mask(group, features), group.num_heads) for group in groups]
        count = tf.math.count_nonzero
        for mask, num_heads in masks:  # bool [B, F or 1, T]
            allowed += num_heads * float(count(mask & real[:, :, None], dtype=tf.int64))
        pairs += float(count(real[:, :, None] & real[:, None], dtype=tf.int64))
    return allowed / (pairs * config.encoder.num_heads)


def run_once(config, data_dir: pathlib.Path, model_dir: pathlib.Path, init: str | None) -> dict:
    """The metrics of a run from first weights, and its seconds unless it was interrupted."""
    from mate_tf.training.run import train_run

    logging.info("training %s", model_dir)
    is_new = not model_dir.exists()
    started = time.perf_counter()
    with strategy_flags.make_strategy().scope():
        metrics = train_run(config, data_dir, model_dir, init, **load_options())
    return {"metrics": metrics, "seconds": time.perf_counter() - started if is_new else None}


def config_of(name: str, overrides: list[str]):
    """The config of an architecture or a variant, with what is changed for all."""
    architecture, *own = name.split()
    changes = [f"--config.{change}" for change in own]
    return make_config(flags.FLAGS.config, architecture, [*overrides, *changes])


def first_weights(path: str | None, name: str) -> str | None:
    """Where the runs of an architecture or a variant start from, of --init_checkpoint.

    Raises:
        FileNotFoundError: if that is a comparison without a run of it that has ended.
    """
    comparison = read_comparison(pathlib.Path(path)) if path else None
    if not path or comparison is None:
        return path
    run = pathlib.Path(path) / folder_of(name, 1)
    if run.name not in comparison["runs"] or not run.is_dir():
        raise FileNotFoundError(
            f"expected a run of {name} that has ended, at {run}, to start from, found none"
        )
    return str(run)


def weights_name(path: str | None) -> str | dict | None:
    """What first weights are called: by their content or what they were made from, not by place."""
    from mate_tf.records.conversion_file import file_sha256

    if not path:
        return path
    given = pathlib.Path(path)
    of_all, of_one = read_comparison(given), read_comparison(given.parent)
    if of_all:
        return {"run": "its own"} | {name: of_all[name] for name in SHARED_KEYS}
    if of_one and given.name in of_one["runs"]:
        return {"run": given.name} | {name: of_one[name] for name in SHARED_KEYS}
    file = given / "model.safetensors"
    return f"SHA-256 {file_sha256(file)}" if file.is_file() else path


def _shared(overrides: list[str], data_dir: pathlib.Path) -> dict:
    """What the runs have in common: the config but for the seed, data, first weights.

    Of the attention, which each has of its own, it is what was changed for all.
    """
    from mate_tf.training.examples import SPLITS
    from mate_tf.training.run import config_values, data_files

    config = make_config(flags.FLAGS.config, None, overrides)
    check_kind(config, flags.FLAGS.config, "finetune")
    values = config_values(config)
    del values["seed"]
    flag = "--config.encoder.attention."
    changed = [change.removeprefix(flag) for change in overrides if change.startswith(flag)]
    values["encoder"]["attention"] = sorted(changed)
    files = {file.name: file.sha256 for file in data_files(data_dir, SPLITS)}
    weights = {"init_checkpoint": weights_name(flags.FLAGS.init_checkpoint)} | load_options()
    return dict(zip(SHARED_KEYS, (values, files, weights), strict=True))


def main(argv: list[str]) -> None:
    for name in ("architecture", "model_dir", "skip_corrupt"):
        if flags.FLAGS[name].value:
            raise ValueError(
                f"expected no --{name} for a comparison, got {flags.FLAGS[name].value}"
            )
    use_inputs_of_run(flags.FLAGS.config)
    data_dir, output_dir = pathlib.Path(flags.FLAGS.data_dir), pathlib.Path(_OUTPUT.value)
    finished = Results(output_dir, _shared(argv[1:], data_dir))
    names = [*_ARCHITECTURES.value, *(" ".join(of.split()) for of in _VARIANTS.value)]
    results: dict[str, list[dict]] = {name: [] for name in names}
    configs = {name: config_of(name, argv[1:]) for name in names}
    seeds = range(1, _SEEDS.value + 1)
    # Before any training: some architectures have no first weights, or no share.
    starts = {
        name: first_weights(flags.FLAGS.init_checkpoint, name)
        for name in names
        if any(finished.get(folder_of(name, seed)) is None for seed in seeds)
    }
    shares = {
        name: finished.share(name, functools.partial(attended_share, config, data_dir))
        for name, config in configs.items()
    }
    for seed in seeds:
        for name, of_name in configs.items():
            config = dataclasses.replace(of_name, seed=seed)
            run = folder_of(name, seed)
            result = finished.get(run)
            if result is None:
                result = run_once(config, data_dir, output_dir / run, starts[name])
                finished.add(run, result)
            results[name].append(result)
    every = [run["metrics"] for runs in results.values() for run in runs]
    # Of some runs there is no AUROC: all of their answers are wrong.
    metrics = [name for name in every[0] if name != "loss" and all(name in run for run in every)]
    print(f"| architecture | {', % | '.join(metrics)}, % | pairs, % | minutes |")
    print("|---" * (len(metrics) + 3) + "|")
    for name, runs in results.items():
        scores = [spread([run["metrics"][metric] for run in runs], 100.0) for metric in metrics]
        timed = [run["seconds"] / 60 for run in runs if run["seconds"] is not None]
        minutes = spread(timed) if timed else "interrupted"
        share = shares[name]
        pairs = "" if share is None else f"{100 * share:.1f}"
        print(f"| {name} | {' | '.join(scores)} | {pairs} | {minutes} |")


if __name__ == "__main__":
    # Of experiments/finetune.py's flags, all but those of its one run.
    flags.FLAGS.set_default("model_dir", "")
    terminal.run(main, flags_parser=parse_flags)
