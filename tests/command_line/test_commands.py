"""mate-tf's other commands: their help, their options, and the way from questions to a model."""

import json
import pathlib
import re
import shlex

import pytest

from mate_tf.command_line import arguments, ask, data
from mate_tf.command_line.main import COMMANDS, main
from mate_tf.datasets import tasks
from mate_tf.page.page import EXAMPLES
from mate_tf.serving import loading
from mate_tf.tables.table import Table
from tests.small import PIECES, ROOT, bert_config, cases, succeeded, write_vocabulary

DEMO_DATA = ROOT / "experiments" / "demo_data"
PLANETS = str(DEMO_DATA / "planets.csv")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself_with_examples(capsys, name):
    with pytest.raises(SystemExit) as caught:
        main([name, "--help"])
    assert caught.value.code == 0
    shown = capsys.readouterr().out
    assert f"\n  mate-tf {name} " in shown.partition("example")[2]
    assert "_" not in "".join(re.findall(r"\n +(--[^\s=]+)", shown))
    with pytest.raises(SystemExit):
        main(["--help"])
    assert COMMANDS[name].HELP in capsys.readouterr().out


def test_data_sets_are_those_that_there_are(capsys):
    for name in (*tasks.TASKS, *data.LAYOUTS):
        assert data.task_name(name) == name
    assert set(data.LAYOUTS) < set(tasks.LAYOUTS)
    with pytest.raises(SystemExit):
        main(["data", "--task=WQT", "--input-dir=a", "--output-dir=b"])
    assert "expected one of WTQ, SQA, " in capsys.readouterr().err


@cases(
    "given, expected",
    ("--max_seq_length=5", "--max-seq-length=5"),
    ("--output_dir=my_folder", "--output-dir=my_folder"),
    ("--config.num_steps=3", "--config.num_steps=3"),
    ("--which _is it?", "--which _is it?"),
    ("what_is_it", "what_is_it"),
)
def test_underscores_in_names_of_options_are_dashes(given, expected):
    assert arguments.with_dashes([given]) == [expected]
    assert arguments.with_dashes(["--", given]) == ["--", given]


def test_show_prints_the_table_as_it_was_read(capsys, tmp_path):
    assert main(["show", PLANETS, "--rows=1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "planets.csv: 8 rows, 6 columns"
    assert lines[2:4] == ["Planet: text", "Position: number"]
    assert lines[9].split()[:3] == ["row", "Planet", "Position"]
    assert lines[11].split()[:3] == ["1", "Mercury", "1"]
    assert lines[12] == "  … 7 rows" and lines[13].startswith("left out: 7 of 8 rows")
    assert main(["show", PLANETS, "--rows=0"]) == 0
    assert "\n  … 8 rows\n" in capsys.readouterr().out
    (tmp_path / "t.csv").write_text("a;b\n1,5;\u00e4\n", encoding="utf-8")
    assert main(["show", str(tmp_path / "t.csv"), "--delimiter=;", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["header"], shown["rows"]) == (["a", "b"], [["1,5", "\u00e4"]])
    assert shown["assumed"] == ["Column 'a' has a decimal comma."]
    kind = {"name": "a", "kind": "number", "values": [1.5], "unit": "", "sum": 1.5, "average": 1.5}
    assert shown["columns"][0] == kind
    assert main(["show", str(tmp_path / "none.csv")]) == 1
    assert capsys.readouterr().err.startswith("mate-tf: expected a file at ")


# Of each line the status at the end, a command, and how the one sentence begins that it says; or,
# where an argument is wrong, what the sentence has.
REFUSED = pathlib.Path(__file__).with_name("refused.txt").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("line", REFUSED)
def test_what_cannot_be_used_is_one_sentence(capsys, monkeypatch, tmp_path, line):
    monkeypatch.delenv("MATE_TF_MODEL", raising=False)
    monkeypatch.setattr(loading, "from_pretrained", lambda *_, **__: pytest.fail("loads a model"))
    command, message = line.format(tmp=tmp_path, data=DEMO_DATA).split(" => ")
    status, *command = shlex.split(command)
    try:
        assert main(command) == int(status) == 1
    except SystemExit as error:
        assert error.code == int(status) == 2
    printed = capsys.readouterr()
    (sentence,) = printed.err.splitlines()
    assert sentence.startswith(f"mate-tf: {message if status == '1' else ''}")
    assert message in sentence and printed.out == ""


def test_help_and_page_have_one_example():
    """Which tests/test_commands_of_docs.py asks."""
    table = DEMO_DATA / "moon_landings.csv"
    example = EXAMPLES[0]
    assert table.read_text(encoding="utf-8") == example.table
    assert f'mate-tf ask {table.name} "{example.question}"' in ask.EPILOG


@pytest.mark.medium
@pytest.mark.parametrize("kind", ["hugging_face", "tf1"])
def test_a_published_checkpoint_becomes_a_model_that_attends_as_asked(tmp_path, kind):
    from tests.weights import small_models as models

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
    assert loading.from_pretrained(exported).answer(table, "a").cells
