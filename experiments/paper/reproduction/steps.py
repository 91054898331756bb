"""All that `make reproduce` makes, in order."""

from experiments.paper.reproduction.architectures import architecture_steps
from experiments.paper.reproduction.data import data_steps
from experiments.paper.reproduction.default_model import default_model_steps
from experiments.paper.reproduction.parts import part_steps
from experiments.paper.reproduction.setting import Setting, Step
from experiments.paper.reproduction.single_runs import single_run_steps
from experiments.paper.reproduction.times import picture_steps, time_steps
from experiments.paper.reproduction.whole_tables import length_step, order_steps


def steps(setting: Setting) -> list[Step]:
    """All steps, in an order in which each follows what it needs."""
    return [
        *data_steps(setting),
        *architecture_steps(setting),
        *part_steps(setting),
        *order_steps(setting),
        length_step(setting),
        *default_model_steps(setting),
        *single_run_steps(setting),
        *time_steps(setting),
        *picture_steps(setting),
    ]
