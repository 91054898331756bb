"""mate-tf's other commands: their help, their options, and the way from questions to a model."""

import json
import re

import pytest

from mate_tf.command_line import arguments, ask, data
from mate_tf.command_line.main import COMMANDS, main
from mate_tf.datasets import described_tables, tasks
from mate_tf.page.page import EXAMPLES
from tests.small import ROOT, cases

DEMO_DATA = ROOT / "experiments" / "demo_data"
PLANETS, DEV = str(DEMO_DATA / "planets.csv"), DEMO_DATA / "dev.jsonl"


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
    assert set(data.LAYOUTS) < set(described_tables.LAYOUTS)
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


@cases(
    "command, message",
    ("", "expected a command such as ask or show, got none (mate-tf --help says more)"),
    ("answer", "expected a command such as ask or show, got answer (mate-tf"),
    ("shwo t.csv", "got shwo; did you mean show?"),
    (PLANETS, f"got the file {PLANETS}; did you mean mate-tf ask {PLANETS}?"),
    ("ask", "required: TABLE (mate-tf ask --help"),
    ("ask t.csv q --jsn", "mate-tf ask has no --jsn; did you mean --json?"),
    ("ask t.csv q --min-score=2", "expected a score from 0 to 1, got 2"),
    ("ask t.csv q --min-score=nan", "expected a score from 0 to 1, got nan"),
    ("ask t.csv q --alternatives=-1", "a number of at least 0, got -1"),
    ("ask t.csv q --which=first", "expected a number of at least 0, got first"),
    ("show t.csv more", "mate-tf show has no more (mate-tf show --help says more)"),
    ("predict --data=d --output=o --config.num_steps=3", "mate-tf predict has no --config.num_s"),
    ("train --model-dir=m --num-gpus=-1", "expected a number of at least 0, got -1"),
    ("serve --port=65536", "expected a number from 0 to 65535, got 65536"),
    ("serve --grace-seconds=0", "expected a number of at least 1.0, got 0"),
    ("data --input-dir=i", "required: --output-dir"),
)
def test_wrong_arguments_end_with_2(capsys, command, message):
    with pytest.raises(SystemExit, match=r"^2$"):
        main(command.split())
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("mate-tf: ") and message in line


@cases(
    "command, message",
    ("train --model-dir={0}/run", "expected --data-dir, the folder of records to train on"),
    ("train --model-dir={0}/run --data-dir={0}", "expected conversion.json in "),
    ("data --task=TABLES --input-dir={0} --output-dir={0}/o", "expected --masked-words with"),
    (
        "data --input-dir={0} --output-dir={0}/o --masked-words --write-interactions",
        "expected no --write-interactions with --masked-words",
    ),
    ("export --checkpoint=c --model-dir=m --output-dir={0}/o", "expected either --model-dir or --"),
    ("export --revision=main --output-dir={0}/o", "expected --revision with --checkpoint alone"),
    ("export --checkpoint=c --weights-alone --output-dir={0}/o", "expected --weights-alone with"),
    ("calibrate --model= --data={0}/d.jsonl", "expected the folder or name of a model, got an"),
    ("calibrate --model=google/b --data=d", "expected an exported model at google/b"),
    ("calibrate --model=. --architecture=mate --data=d", "expected the attention that the mod"),
    (f"predict --data={DEV} --output={{0}}", "expected a file to write answers to, got the f"),
    ("predict --data={0}/d.csv --output={0}/o", "expected a .jsonl file of questions, got "),
    ("page --model={0}", "expected a model at "),
    ("serve --model={0}", "expected a model at "),
)
def test_what_cannot_be_used_is_one_sentence(capsys, tmp_path, command, message):
    assert main(command.format(tmp_path).split()) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"mate-tf: {message}")


@pytest.mark.medium
def test_the_example_of_help_and_page_is_answered_right(capsys):
    table = DEMO_DATA / "moon_landings.csv"
    example = EXAMPLES[0]
    assert table.read_text(encoding="utf-8") == example.table
    assert f'mate-tf ask {table.name} "{example.question}"' in ask.EPILOG
    assert main(["ask", str(table), example.question, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["answer"] == example.answer
