"""Compares architectures: the same preset, data, first weights, steps and seeds for each.

    python -m experiments.compare_attention --config=wtq_minilm --data_dir=out/wtq \\
        --init_checkpoint=minilm --architectures=tapas,mate,tableformer_rc_gp \\
        --output_dir=out/compare_wtq

Trains each architecture (a name of mate_tf/presets.py) with each seed, in a folder of its own under
--output_dir, and prints a table of the last evaluation's metrics on the dev split, median and half
the interquartile range over the seeds; of the share of the pairs of real tokens that attend to each
other by the architecture's pattern, before any window, or, with grammar_soft, are favoured; and of
the minutes of training, its evaluations included. Started again, it goes on where it stopped.

Values of the preset can be changed as in experiments/finetune.py, for all architectures alike. The
grammar-guided ones need records with tags (create_data --tagger).
"""

import json
import pathlib
import time

from absl import flags, logging

from experiments import terminal
from experiments.config_files import make_config
from experiments.finetune import finetune, load_options, parse_flags, use_inputs_of_run
from mate_tf.tables.text_files import complete_text_file

_SEEDS = flags.DEFINE_integer("seeds", 3, "how many runs of each architecture", lower_bound=1)
_ARCHITECTURES = flags.DEFINE_list(
    "architectures", ["tapas", "mate", "tableformer_rc_gp"], "names of mate_tf/presets.py"
)
_OUTPUT = flags.DEFINE_string("output_dir", None, "folder for the runs", required=True)

RESULT_FILE = "result.json"


def attended_share(config, data_dir: pathlib.Path) -> float:
    """The share of the ordered pairs of real tokens of the dev split that a pattern allows.

    The mean over the heads. Of soft grammar rules it is the share that the bias favours.
    """
    import tensorflow as tf

    from mate_tf.attention.grammar import RelatedTags, favoured_tags
    from mate_tf.attention.patterns import group_mask, head_groups, pattern_mask
    from mate_tf.tables.records import batch_by_length, read_records
    from mate_tf.tables.splits import split_files
    from mate_tf.tables.token_features import TokenFeatures

    attention = config.encoder.attention
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


def run_once(config, data_dir: pathlib.Path, model_dir: pathlib.Path) -> dict:
    """The metrics and the seconds of a run, from its folder if it is there already."""
    path = model_dir / RESULT_FILE
    if path.is_file():
        return json.loads(path.read_text(encoding="utf-8"))
    logging.info("training %s", model_dir)
    is_new = not model_dir.exists()
    started = time.perf_counter()
    init = flags.FLAGS.init_checkpoint
    metrics = finetune(config, data_dir, model_dir, init, **load_options())
    seconds = time.perf_counter() - started if is_new else None
    result = {"metrics": metrics, "seconds": seconds}
    with complete_text_file(path) as file:
        file.write(json.dumps(result) + "\n")
    return result


def spread(values: list[float], scale: float = 1.0, digits: int = 1) -> str:
    """Median and half the interquartile range."""
    import numpy as np

    low, median, high = np.percentile(np.array(values) * scale, [25, 50, 75])
    return f"{median:.{digits}f} ± {(high - low) / 2:.{digits}f}"


def main(argv: list[str]) -> None:
    for name in ("architecture", "model_dir", "skip_corrupt"):
        if flags.FLAGS[name].value:
            raise ValueError(
                f"expected no --{name} for a comparison, got {flags.FLAGS[name].value}"
            )
    use_inputs_of_run(flags.FLAGS.config)
    data_dir, output_dir = pathlib.Path(flags.FLAGS.data_dir), pathlib.Path(_OUTPUT.value)
    results: dict[str, list[dict]] = {name: [] for name in _ARCHITECTURES.value}
    configs = {}
    for seed in range(1, _SEEDS.value + 1):
        for name in _ARCHITECTURES.value:
            overrides = [*argv[1:], f"--config.seed={seed}"]
            configs[name] = make_config(flags.FLAGS.config, name, overrides)
            run_dir = output_dir / f"{name}_{seed}"
            results[name].append(run_once(configs[name], data_dir, run_dir))
    every = [run["metrics"] for runs in results.values() for run in runs]
    # Of some runs there is no AUROC: all of their answers are wrong.
    metrics = [name for name in every[0] if name != "loss" and all(name in run for run in every)]
    print(f"| architecture | {', % | '.join(metrics)}, % | pairs, % | minutes |")
    print("|---" * (len(metrics) + 3) + "|")
    for name, runs in results.items():
        scores = [spread([run["metrics"][metric] for run in runs], 100.0) for metric in metrics]
        timed = [run["seconds"] / 60 for run in runs if run["seconds"] is not None]
        minutes = spread(timed) if timed else "interrupted"
        share = 100 * attended_share(configs[name], data_dir)
        print(f"| {name} | {' | '.join(scores)} | {share:.1f} | {minutes} |")


if __name__ == "__main__":
    # Of experiments/finetune.py's flags, all but those of its one run.
    flags.FLAGS.set_default("model_dir", "")
    terminal.run(main, flags_parser=parse_flags)
