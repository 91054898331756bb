"""Times and memory, and the pictures of what attends to what."""

from collections.abc import Iterator

from experiments.reproduction.setting import Setting, Step


def time_steps(setting: Setting) -> Iterator[Step]:
    """What is measured on made-up and on real tables."""
    short = ("--lengths=128", "--rounds=1", "--num_layers=1")
    yield Step(
        "times",
        "Times of the architectures beside the limit, and memory",
        (),
        (
            (
                "experiments.benchmark",
                f"--output_dir={setting.at('benchmark')}",
                *(short if setting.is_small else ("--lengths=512,2048,8192",)),
            ),
        ),
    )
    yield Step(
        "training_times",
        "A step of training: time and memory",
        (),
        (("experiments.benchmark_training", *(short if setting.is_small else ())),),
    )
    measured = ("batches", "pipeline", "coverage")
    yield Step(
        "times_of_tables",
        "Times of WikiTableQuestions' dev tables",
        ("wtq_2048",),
        (
            (
                "experiments.benchmark_tables",
                setting.questions,
                *(f"--measure={name}" for name in setting.some(measured)),
                *(("--num_tables=5", "--rounds=1") if setting.is_small else ()),
            ),
        ),
    )
    yield Step(
        "pictures",
        "MATE's heads and TableFormer's relations",
        (),
        (("scripts.draw_attention", f"--output_dir={setting.at('pictures')}"),),
    )
