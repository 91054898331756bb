"""Configs by name, of experiments/configs or of a run, with what is changed of them."""

import importlib
import pathlib
from dataclasses import replace

CONFIGS = pathlib.Path(__file__).parent / "configs"
# _base.py is what they share.
PRESETS = sorted(path.stem for path in CONFIGS.glob("[!_]*.py"))


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
    return importlib.import_module(f"experiments.configs.{name}").CONFIG


def make_config(name: str, architecture: str | None, overrides: list[str]):
    """A config with an architecture of mate_tf/presets.py and changed values.

    Args:
        name: of a preset; or a run's folder, or its config.json.
        architecture: replaces the config's; None leaves it.
        overrides: the changes.

    Raises:
        ValueError: for an unknown name, or an override that cannot be.
    """
    from mate_tf.presets import with_architecture
    from mate_tf.training.overrides import PREFIX, apply_overrides
    from mate_tf.training.run_config import load_config

    folder = run_folder(name)
    config = load_preset(name) if folder is None else load_config(folder)
    if architecture is None:
        return apply_overrides(config, overrides)
    encoder = with_architecture(config.encoder, architecture)
    if encoder.fixed_length is None:
        return apply_overrides(config, overrides, encoder=encoder)
    # A Linformer takes sequences of one length: that of the records, also where it is overridden.
    attention = replace(encoder.attention, sequence_length=config.max_seq_length)
    lengths = [
        override.replace("max_seq_length", "encoder.attention.sequence_length", 1)
        for override in overrides
        if override.startswith(f"{PREFIX}max_seq_length=")
    ]
    return apply_overrides(
        config,
        [*lengths, *overrides],
        encoder=replace(encoder, attention=attention),
        length_buckets=(),
    )
