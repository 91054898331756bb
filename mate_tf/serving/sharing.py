"""A loaded model as a folder that other machines load, and on the Hugging Face Hub.

The folder is that of a run reduced to its weights (mate_tf/weights/run.py), with a card: README.md,
whose head the Hub reads.
"""

import dataclasses
import json
import pathlib
import tempfile
from typing import TYPE_CHECKING, Any

import numpy as np

from mate_tf.models.classification import ClassificationConfig
from mate_tf.records.conversion_file import CONVERSION_FILE, conversion_of
from mate_tf.tasks import answering_task
from mate_tf.weights.hub import check_hub_name, upload
from mate_tf.weights.run import CALIBRATION, packed, weights_by_path, write_weights

if TYPE_CHECKING:
    from mate_tf.serving.loading import StoredModel

CARD = "README.md"
# What a card may say of a model beside what is known of it: keys of the Hub's metadata.
_SAID = ("base_model", "datasets", "language", "license", "metrics", "tags")


def save(
    stored: "StoredModel", folder: str | pathlib.Path, name: str = "", **said: Any
) -> pathlib.Path:
    """Writes the folder of a model; `PretrainedPredictor.save_pretrained` says the rest."""
    folder = pathlib.Path(folder)
    model = stored.model()
    values = {path: np.asarray(weight) for path, weight in weights_by_path(model).items()}
    config = {
        "kind": answering_task(stored.task_config).name,
        "encoder": stored.encoder_config.to_dict(),
        "task": dataclasses.asdict(stored.task_config),
    }
    conversion = conversion_of(None, stored.feature_config, stored.vocab_file, None)
    own_card = stored.vocab_file.with_name(CARD)
    if not said and own_card.is_file():
        card = own_card.read_text(encoding="utf-8")
    else:
        num_weights = sum(value.size for value in values.values())
        card = card_of(stored, name or str(folder), num_weights, **said)
    others = {
        "config.json": _json(config),
        CONVERSION_FILE: _json(dataclasses.asdict(conversion)),
        "vocab.txt": stored.vocab_file.read_bytes(),
        CARD: card.encode(),
    }
    if stored.calibration is not None:
        others[CALIBRATION] = _json(dataclasses.asdict(stored.calibration))
    write_weights(folder, packed(values, stored.step or 0, exactly=True), others)
    return folder


def push(
    stored: "StoredModel",
    name: str,
    private: bool,
    message: str,
    revision: str | None,
    **said: Any,
) -> str:
    """Uploads the folder of a model; `PretrainedPredictor.push_to_hub` says the rest."""
    check_hub_name(name)  # before the weights are read
    with tempfile.TemporaryDirectory() as parent:
        folder = save(stored, pathlib.Path(parent, "model"), name, **said)
        return upload(folder, name, private, message, revision)


def _json(values: Any) -> bytes:
    return f"{json.dumps(values, indent=2)}\n".encode()


def card_of(stored: "StoredModel", name: str, num_weights: int, **said: Any) -> str:
    """The card of a model: what the Hub reads, and how it is used."""
    if unknown := sorted(said.keys() - set(_SAID)):
        raise ValueError(f"expected {', '.join(_SAID)} of a model's card, got {unknown[0]!r}")
    encoder = stored.encoder_config
    is_classifier = isinstance(stored.task_config, ClassificationConfig)
    head = {
        "language": "en",
        "library_name": "mate_tf",
        "pipeline_tag": "text-classification" if is_classifier else "table-question-answering",
        **said,
        "tags": list(dict.fromkeys(["tables", "mate", "tensorflow", *said.get("tags", ())])),
    }
    # What is JSON is YAML too.
    lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in head.items()]
    of_scores = "Its scores are not calibrated."
    if stored.calibration is not None:
        of_scores = (
            "Its scores are calibrated: of the answers with a score of 0.8, eight of ten were "
            f"right. Below {stored.calibration.threshold:.2f} an answer is called not sure."
        )
    does = "Tells which statements about tables are true."
    return _CARD.format(
        head="\n".join(lines),
        name=name,
        does=does if is_classifier else "Answers questions about tables.",
        millions=num_weights / 1e6,
        layers=encoder.num_layers,
        width=encoder.hidden_size,
        attention=encoder.attention.architecture,
        longest=stored.feature_config.max_seq_length,
        of_scores=of_scores,
    )


_CARD = """\
---
{head}
---

# {name}

{does} It has {millions:.1f} million weights, {layers} layers of width {width}, and the attention
`{attention}`. It reads questions with tables of up to {longest} tokens. {of_scores}

    pip install 'mate_tf[hub]'

```python
from mate_tf import Table, from_pretrained

model = from_pretrained("{name}")
answer = model.answer(Table.from_csv("table.csv"), "which one is the largest?")
print(answer.text, answer.score, answer.cells)
```
"""
