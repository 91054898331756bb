"""The command from the outside: a published checkpoint becomes a model that answers."""

import json

import pytest

from mate_tf.serving.loading import from_pretrained
from mate_tf.tables.table import Table
from tests.small import PIECES, bert_config, succeeded, write_vocabulary
from tests.weights import small_models as models


@pytest.mark.medium
@pytest.mark.parametrize("kind", ["hugging_face", "tf1"])
def test_a_published_checkpoint_becomes_a_model_that_attends_as_asked(tmp_path, kind):
    folder, exported = tmp_path / "weights", tmp_path / "model"
    flags = [f"--checkpoint={folder}", "--architecture=mate", f"--output-dir={exported}"]
    if kind == "tf1":
        folder.mkdir()
        models.write_tf1(folder / "model.ckpt", models.table_qa_values())
        (folder / "bert_config.json").write_text(json.dumps(bert_config(models.encoder_config())))
        flags += [f"--checkpoint={folder / 'model.ckpt'}", "--config=wtq_base"]
    else:
        of_tapas = {"architectures": ["TapasForQuestionAnswering"], "num_aggregation_labels": 4}
        models.write_hugging_face(folder, models.table_qa_values(), **of_tapas)
    write_vocabulary(folder / "vocab.txt", PIECES[: models.BERT_CONFIG["vocab_size"]])
    succeeded("mate_tf", "export", *flags)
    config, conversion = (
        json.loads((exported / "assets.extra" / f"{name}.json").read_text())
        for name in ("config", "conversion")
    )
    assert config["encoder"]["attention"]["architecture"] == "mate"
    assert conversion["features"]["original_conversion"]
    assert conversion["features"]["max_seq_length"] == 16384
    table = Table.from_rows([["a"], *[["c d"]] * 60])
    assert from_pretrained(exported).answer(table, "a").cells
