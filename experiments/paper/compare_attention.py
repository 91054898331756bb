"""Compares architectures: the same preset, data, first weights, steps and seeds for each.

    python -m experiments.paper.compare_attention --config=wtq_minilm --data_dir=out/wtq \\
        --init_checkpoint=minilm --architectures=tapas,mate,tableformer_rc_gp \\
        --output_dir=out/compare_wtq

Trains each architecture (a name of mate_tf/presets.py) with each seed, in a folder of its own under
--output_dir, and prints a table of the last evaluation's metrics on the dev split, median and half
the interquartile range over the seeds, and of the minutes of training and evaluation. Started
again, it goes on where it stopped. {output_dir}/results.json holds each finished run's metrics, its
main metric at each evaluation and its seconds, and what all runs have in common. A copy of it in a
new --output_dir spares the runs that it holds.

Values of the preset can be changed as in experiments/finetune.py, for all architectures alike, and
for one of them with --variant: an architecture and what is changed of its config, such as
--variant="mate_exact encoder.attention.row_heads_ratio=1.0". The grammar-guided ones need records
with tags (create_data --tagger).

With --init_checkpoint=out/other_comparison/RUN each architecture and variant starts from its own
run there, that of the same seed, or the only one: so pre-training is compared. The preset may be
one of pre-training itself.
"""

import argparse
import dataclasses
import pathlib
import time

from absl import flags, logging

from experiments import program
from experiments.paper.comparison_results import (
    SHARED_KEYS,
    Results,
    first_weights,
    folder_of,
    spread,
)
from mate_tf.command_line import arguments, train

# Of experiments/finetune.py's flags, all but those of its one run.
_OPTIONS = program.define_flags(train.add_arguments, model_dir="")
_SEEDS = flags.DEFINE_integer("seeds", 3, "how many runs of each architecture", lower_bound=1)
_ARCHITECTURES = flags.DEFINE_list(
    "architectures", ["tapas", "mate", "tableformer_rc_gp"], "names of mate_tf/presets.py"
)
_VARIANTS = flags.DEFINE_multi_string(
    "variant", [], "an architecture and, between blanks, KEY=VALUE of its config; again for more"
)
_OUTPUT = flags.DEFINE_string("output_dir", None, "folder for the runs", required=True)


def run_once(
    options: argparse.Namespace, config, model_dir: pathlib.Path, init: str | None
) -> dict:
    """The metrics of a run from first weights, and its seconds unless it was interrupted."""
    from mate_tf.training.loop import read_evaluations
    from mate_tf.training.run import train_run

    logging.info("training %s", model_dir)
    is_new = not model_dir.exists()
    started = time.perf_counter()
    load_options = train.load_options_of(options)
    with arguments.make_strategy(options).scope():
        metrics = train_run(config, pathlib.Path(options.data_dir), model_dir, init, **load_options)
    main_metric = next(name for name in metrics if name != "loss")
    return {
        "metrics": metrics,
        "curve": [evaluation[main_metric] for evaluation in read_evaluations(model_dir)],
        "seconds": time.perf_counter() - started if is_new else None,
    }


def config_of(config: str, name: str, overrides: list[str]):
    """The config of an architecture or a variant, with what is changed for all."""
    from mate_tf.training.starting_points import make_config

    architecture, *own = name.split()
    changes = [f"--config.{change}" for change in own]
    return make_config(config, architecture, [*overrides, *changes])


def _shared(options: argparse.Namespace, overrides: list[str]) -> dict:
    """Data, first weights, and the config but for seed and attention, which all runs share.

    Of the attention it is what was changed for all.
    """
    from mate_tf.training.examples import record_files
    from mate_tf.training.run import config_values, data_files
    from mate_tf.training.starting_points import check_kind, make_config

    config = make_config(options.config, None, overrides)
    check_kind(config, options.config, "train")
    values = config_values(config)
    del values["seed"]
    flag = "--config.encoder.attention."
    changed = [change.removeprefix(flag) for change in overrides if change.startswith(flag)]
    values["encoder"]["attention"] = sorted(changed)
    files_by_split = record_files(config, options.data_dir)
    files = {file.name: file.sha256 for file in data_files(files_by_split)}
    weights = {"init_checkpoint": options.init_checkpoint} | train.load_options_of(options)
    return dict(zip(SHARED_KEYS, (values, files, weights), strict=True))


def main(argv: list[str]) -> None:
    options = _OPTIONS()
    for name in ("architecture", "model_dir", "skip_corrupt"):
        if value := getattr(options, name):
            raise ValueError(f"expected no --{name} for a comparison, got {value}")
    if options.config is None:
        raise ValueError("expected --config, what is compared, got none")
    train.use_inputs_of_run(options)
    output_dir = pathlib.Path(_OUTPUT.value)
    finished = Results(output_dir, _shared(options, argv[1:]))
    names = [*_ARCHITECTURES.value, *(" ".join(of.split()) for of in _VARIANTS.value)]
    results: dict[str, list[dict]] = {name: [] for name in names}
    configs = {name: config_of(options.config, name, argv[1:]) for name in names}
    seeds = range(1, _SEEDS.value + 1)
    # Before any training: some architectures have no first weights.
    starts = {
        (name, seed): first_weights(options.init_checkpoint, name, seed)
        for name in names
        for seed in seeds
        if finished.get(folder_of(name, seed)) is None
    }
    for seed in seeds:
        for name, base in configs.items():
            config = dataclasses.replace(base, seed=seed)
            run = folder_of(name, seed)
            result = finished.get(run)
            if result is None:
                result = run_once(options, config, output_dir / run, starts[name, seed])
                finished.add(run, result)
            results[name].append(result)
    every = [run["metrics"] for runs in results.values() for run in runs]
    # Of some runs there is no AUROC: all of their answers are wrong.
    metrics = [name for name in every[0] if name != "loss" and all(name in run for run in every)]
    print(f"| architecture | {', % | '.join(metrics)}, % | minutes |")
    print("|---" * (len(metrics) + 2) + "|")
    for name, runs in results.items():
        scores = [spread([run["metrics"][metric] for run in runs], 100.0) for metric in metrics]
        timed = [run["seconds"] / 60 for run in runs if run["seconds"] is not None]
        minutes = spread(timed) if timed else "interrupted"
        print(f"| {name} | {' | '.join(scores)} | {minutes} |")


if __name__ == "__main__":
    program.run(main, trains=True)
