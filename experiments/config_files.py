"""Configs by name, of experiments/configs or of a run, with what is changed of them."""

import importlib
import pathlib
from dataclasses import replace
from typing import Any

from absl import app, flags, logging

CONFIGS = pathlib.Path(__file__).parent / "configs"
PRESETS = {
    path.stem: f"experiments.configs.{path.parent.name}.{path.stem}"
    for path in sorted(CONFIGS.glob("*/[!_]*.py"))
}


def run_folder(name: str) -> pathlib.Path | None:
    """The folder of the run that a config is named by, itself or its config.json; or None."""
    path = pathlib.Path(name)
    folder = path.parent if path.name == "config.json" else path
    return folder if name not in PRESETS and (folder / "config.json").is_file() else None


def load_preset(name: str):
    """The config of a preset; ValueError if there is no such preset."""
    if name not in PRESETS:
        raise ValueError(
            f"expected --config to be one of {', '.join(PRESETS)}, or a run's folder, got {name!r}"
        )
    return importlib.import_module(PRESETS[name]).CONFIG


def make_config(name: str, architecture: str | None, overrides: list[str]):
    """A config with an architecture of mate_tf/presets.py and changed values.

    Args:
        name: of a preset; or a run's folder, or its config.json.
        architecture: replaces the config's, of a PointR the pointer's; None leaves it.
        overrides: the changes.

    Raises:
        ValueError: for an unknown name, or an override that cannot be.
    """
    from mate_tf.dataclass_json import PREFIX, apply_overrides
    from mate_tf.presets import with_architecture
    from mate_tf.training.run import load_config

    folder = run_folder(name)
    config: Any = load_preset(name) if folder is None else load_config(folder)
    if architecture is None:
        return apply_overrides(config, overrides)
    # Of a PointR, the stage that reads tables.
    stage, prefix = (config.point, "point.") if hasattr(config, "point") else (config, "")
    encoder = with_architecture(stage.encoder, architecture)
    changes: dict[str, Any] = {"encoder": encoder}
    if encoder.fixed_length is not None:
        # A Linformer takes sequences of one length: that of the records, also if it is overridden.
        attention = replace(encoder.attention, sequence_length=stage.max_seq_length)
        changes = {"encoder": replace(encoder, attention=attention), "length_buckets": ()}
        lengths = [
            override.replace("max_seq_length", "encoder.attention.sequence_length", 1)
            for override in overrides
            if override.startswith(f"{PREFIX}{prefix}max_seq_length=")
        ]
        overrides = [*lengths, *overrides]
    if prefix:
        changes = {"point": replace(stage, **changes)}
    return apply_overrides(config, overrides, **changes)


def check_kind(config, name: str, program: str) -> None:
    """Refuses with a ValueError a config of another kind, which another program trains.

    Args:
        config: the config.
        name: what it was called by.
        program: "finetune", "pretrain" or "pointr", which is to train it.
    """
    from mate_tf.pointr.inputs import PointRConfig
    from mate_tf.training.config import MaskedLMTrainingConfig

    programs = {PointRConfig: "pointr", MaskedLMTrainingConfig: "pretrain"}
    other = programs.get(type(config), "finetune")
    if other != program:
        raise ValueError(
            f"expected a preset that this program trains, got {name}; experiments/{other}.py "
            "trains it"
        )


def parse_flags(arguments: list[str]) -> list[str]:
    """Lets absl parse its flags and returns the rest: the program and the config's overrides."""
    from mate_tf.dataclass_json import split_arguments

    flags.FLAGS.set_default("verbosity", logging.INFO)
    others, overrides = split_arguments(arguments)
    return app.parse_flags_with_usage(others) + overrides
