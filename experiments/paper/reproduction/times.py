"""Times and memory, and the pictures of what attends to what."""

from collections.abc import Iterator

from experiments.paper.reproduction.setting import Setting, Step

_TIMED = "tapas", "mate", "mate_64_128", "mate_exact", "linformer", "table_etc"
_LONG_TABLE = 6_300  # tokens, which six of the training tables have


def time_steps(setting: Setting) -> Iterator[Step]:
    """Passes on made-up tables, and on real ones."""
    short = ("--lengths=128", "--rounds=1", "--num_layers=1")
    yield Step(
        "times",
        "Times of the architectures beside the limit, and memory",
        (),
        (
            (
                "experiments.benchmarks.benchmark",
                f"--output_dir={setting.at('benchmark')}",
                f"--architectures={','.join(_TIMED)}",
                *(short if setting.is_small else ("--lengths=512,2048,8192",)),
            ),
        ),
    )
    yield Step(
        "training_times",
        "A step of training: time and memory",
        (),
        (("experiments.benchmarks.training", *(short if setting.is_small else ())),),
    )
    measured = ("batches", "pipeline", "coverage")
    yield Step(
        "times_of_tables",
        "Times of WikiTableQuestions' dev tables",
        ("wtq_2048",),
        (
            (
                "experiments.benchmarks.long_tables",
                *setting.questions,
                *(f"--measure={name}" for name in setting.some(measured)),
                *(("--num_tables=5", "--rounds=1") if setting.is_small else ()),
            ),
        ),
    )
    yield Step(
        "times_of_long_tables",
        "Times of WikiTableQuestions' longest training tables",
        ("wtq_2048",),
        (
            (
                "experiments.benchmarks.long_tables",
                f"--data={setting.at('wtq_2048/train.jsonl')}",
                "--measure=coverage",
                f"--longer_than={_LONG_TABLE}",
                *(
                    ("--rounds=1", f"--longest_dense={_LONG_TABLE + 200}")
                    if setting.is_small
                    else ()
                ),
            ),
        ),
    )


def picture_steps(setting: Setting) -> Iterator[Step]:
    """Who attends to whom, drawn from the definitions that the models use."""
    yield Step(
        "pictures",
        "MATE's heads and TableFormer's relations",
        (),
        (("scripts.draw_attention", f"--output_dir={setting.at('pictures')}"),),
    )
