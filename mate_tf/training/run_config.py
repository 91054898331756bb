"""The config of a run, kept as JSON in its folder.

The file, config.json, also says the kind of the model (mate_tf/tasks/kinds.py).
"""

import dataclasses
import json
import pathlib
from typing import Any

import tensorflow as tf

from mate_tf.config import read_json
from mate_tf.dataclass_json import from_dict
from mate_tf.tables.text_files import complete_text_file
from mate_tf.tasks.kinds import KINDS, kind_of
from mate_tf.training.config import CONFIGS, RunConfig

CONFIG_FILE = "config.json"
_MAY_CHANGE = ("skip_corrupt", "recompute")  # when a run goes on


def save_config(config: RunConfig, model_dir: str | pathlib.Path) -> None:
    """Writes the full config to a run's folder, or checks that it holds the same already.

    Raises:
        ValueError: if the folder belongs to a run with another config, or holds a checkpoint of
            something else.
    """
    path = pathlib.Path(model_dir) / CONFIG_FILE
    here = config_values(config)
    if path.exists():
        there = config_values(load_config(model_dir))
        here |= {name: there[name] for name in _MAY_CHANGE}
        different = differences(there, here)
        if different:
            raise ValueError(
                f"expected the config of the run in {model_dir}, got another: "
                f"{', '.join(different)}; choose another folder or the same config"
            )
        return
    if latest := tf.train.latest_checkpoint(str(model_dir)):
        raise ValueError(
            f"expected a new folder or that of a run, got {model_dir} with the checkpoint "
            f"{pathlib.Path(latest).name} and without {CONFIG_FILE}; choose another folder"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    with complete_text_file(path) as file:
        file.write(json.dumps(here, indent=2) + "\n")


def load_config(model_dir: str | pathlib.Path) -> RunConfig:
    """Reads the config of a run's folder, of whatever kind.

    Raises:
        FileNotFoundError: if the folder does not hold one.
        ValueError: if it is not a run's.
    """
    path = pathlib.Path(model_dir) / CONFIG_FILE
    if not path.is_file():
        raise FileNotFoundError(f"expected {CONFIG_FILE} in {model_dir}; is it a run's folder?")
    values = read_json(path)
    kind = values.pop("kind") if "kind" in values else _kind_of_task(values.get("task"))
    if not isinstance(kind, str) or kind not in CONFIGS:
        raise ValueError(
            f"{path}: expected the config of a run of one of the kinds {', '.join(CONFIGS)}, got "
            f"{kind!r}"
        )
    try:
        return from_dict(CONFIGS[kind], values)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def differences(there: dict, here: dict, prefix: str = "") -> list[str]:
    """The keys whose values differ, as "key=here (there: value)", those of one alone left out."""
    found = []
    for key, value in here.items():
        if key not in there:
            continue
        if isinstance(value, dict) and isinstance(there[key], dict):
            found += differences(there[key], value, f"{prefix}{key}.")
        elif value != there[key]:
            found.append(f"{prefix}{key}={value} (there: {there[key]})")
    return found


def config_values(config: RunConfig) -> dict[str, Any]:
    """What a run's file holds of its config, with tuples where JSON has lists."""
    return {"kind": kind_of(config.task)} | dataclasses.asdict(config)


def _kind_of_task(task: Any) -> str:
    """The kind of a run that was made before runs said it: the first that has all the options."""
    options = set(task) if isinstance(task, dict) else set()
    for kind in ("classification", "span_reading"):
        if options <= {field.name for field in dataclasses.fields(KINDS[kind].config)}:
            return kind
    return "table_qa"
