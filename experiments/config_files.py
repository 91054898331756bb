"""The presets of experiments/configs by name, with what is changed of them."""

import importlib
import pathlib
from dataclasses import replace

CONFIGS = pathlib.Path(__file__).parent / "configs"
# _base.py is what they share.
PRESETS = sorted(path.stem for path in CONFIGS.glob("[!_]*.py"))


def load_preset(name: str):
    """The config of a preset; ValueError if there is no such preset."""
    if name not in PRESETS:
        raise ValueError(f"expected --config to be one of {', '.join(PRESETS)}, got {name!r}")
    return importlib.import_module(f"experiments.configs.{name}").CONFIG


def make_config(name: str, architecture: str | None, overrides: list[str]):
    """The config of a preset with an architecture of mate_tf/presets.py and changed values.

    Raises:
        ValueError: for an unknown name, or an override that cannot be.
    """
    from mate_tf.presets import with_architecture
    from mate_tf.training.overrides import PREFIX, apply_overrides

    config = load_preset(name)
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
