"""Every command of README.md and docs/ runs as it stands, and its examples are answered right."""

import concurrent.futures
import contextlib
import io
import json
import pathlib
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf import text_format

from mate_tf.command_line import ask, show
from mate_tf.command_line.main import COMMANDS, _parse, main
from mate_tf.datasets.interactions import interactions_of
from mate_tf.datasets.json_lines import read_json_lines
from mate_tf.weights.run import FILE
from tests.forked import ROOT, free_port, run_program, start_program
from tests.small import bert_config, small_flags, stored, write_lines
from tests.test_examples import run_blocks
from tests.weights.small_models import table_qa, values_of, write_hugging_face, write_tf1

DOCUMENTS = ["README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md"))]
TESTED_BELOW = ("docs/training.md", "docs/serving.md")
# A command of an indented block; after "$ " the lines below it are what it prints.
COMMAND = re.compile(
    r"^ {2,4}(\$ )?((?:(?:grep|gzip) .* \| )?(?:mate-tf|python -m|make|pip|curl) "
    r"(?:[^\n'\\]|\\\n|'[^']*')*)\n(?(1)((?:    .*\n)*))",
    re.MULTILINE,
)

# Commands that are not run, and why.
NOT_RUN = dict(stored(__file__, "NOT_RUN"))
SMALL_ENCODER = {"num_layers": 1, "hidden_size": 16, "num_heads": 2, "intermediate_size": 16}
# What cuts a command down to a test's size.
CUT = {
    "mate-tf data": "--max-seq-length=64",
    "mate-tf train": "--config.num_steps=2 --config.batch_size=2",
    "mate-tf serve": "--max-tokens=512",  # it begins with a question of the longest
    "python -m experiments.create_pretraining_data": "--max_seq_length=32 --dupe_factor=2",
    "python -m experiments.pretrain": " ".join(small_flags("max_seq_length=32")),
    "python -m experiments.finetune": " ".join(small_flags("max_seq_length=64")),
    "python -m experiments.pointr": " ".join(
        flag.replace(".", f".{stage}.", 1)
        for stage in ("point", "read")
        for flag in small_flags("max_seq_length=256", "dtype=float32")
    ),
}
# What takes the place of devices and folders that a test has not, and a smaller model on them.
TINY = " ".join(["--init-checkpoint=none", *small_flags()])
IN_PLACE = {
    "--num-gpus=8": f"--num-virtual-cpus=2 {TINY}",
    "--tpu=local": f"--num-virtual-cpus=2 {TINY}",
    "--task-index=": f"{TINY} --task-index=",
    "=/data/": "=out/",
}
# What the default model answers to the questions that are shown.
ANSWERS = dict(stored(__file__, "ANSWERS"))


def commands_of(text: str) -> dict[str, list[str]]:
    """The commands in the indented blocks of a text, each with the lines that it prints."""
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    return {
        re.sub(r"\\\n *|   +[(#].*", "", match[2]): [
            line.strip() for line in (match[3] or "").splitlines()
        ]
        for match in COMMAND.finditer(text)
    }


def commands_in(document: str) -> dict[str, list[str]]:
    return commands_of((ROOT / document).read_text(encoding="utf-8"))


class Scratch:
    """A folder in which the commands run, with the files that they name."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.said: dict[str, str] = {}
        data = ROOT / "experiments" / "demo_data"
        for name in ("experiments", "mate_tf"):
            (folder / name).symlink_to(ROOT / name)
        for name in ("planets.csv", "moon_landings.csv"):
            shutil.copy(data / name, folder)
        shutil.copytree(data, folder / "my_tables", ignore=shutil.ignore_patterns("[!mop]*"))
        write_files(folder)

    def run_document(self, name: str) -> None:
        """Runs those commands of a document that no other document had before it."""
        with contextlib.ExitStack() as servers:
            port = free_port()
            for command, shown in commands_in(name).items():
                if command not in self.said and not any(re.match(no, command) for no in NOT_RUN):
                    self.said[command] = self.run(command, port, servers)
                for line in shown:
                    assert line in self.said[command] or line.startswith("... "), command

    def run(self, command: str, port: int, servers: contextlib.ExitStack) -> str:
        """Runs a command; a server runs until the end of the document, at a free port.

        The first of two workers is run together with the second.
        """
        if "--task-index=0" in command:
            self.said[command.replace("--task-index=0", "--task-index=1")] = ""
            hosts = f"127.0.0.1:{free_port()},127.0.0.1:{free_port()}"
            first = re.sub(r"--worker-hosts=\S+", f"--worker-hosts={hosts}", command)
            second = first.replace("--task-index=0", "--task-index=1")
            with concurrent.futures.ThreadPoolExecutor() as both:
                printed, _ = both.map(
                    lambda one: self.run_here(one, port, servers), (first, second)
                )
            return printed
        return self.run_here(command, port, servers)

    def run_here(self, command: str, port: int, servers: contextlib.ExitStack) -> str:
        for given, here in IN_PLACE.items():
            command = command.replace(given, here)
        extra = next((extra for start, extra in CUT.items() if command.startswith(start)), "")
        program, *args = shlex.split(
            f"{command.replace(':8080', f':{port}')} {extra}", comments=True
        )
        if "curl" in (program, *args):
            done = subprocess.run(
                command.replace(":8080", f":{port}").replace("curl ", "curl -sS "),
                shell=True,
                cwd=self.folder,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            sent = read(self.folder / "request.json") if program == "gzip" else args[-1]
            (question,) = (question for question in ANSWERS if f'"{question}"' in sent)
            assert told(json.loads(done.stdout)) == ANSWERS[question], done.stdout
            return done.stdout
        module = "mate_tf" if program == "mate-tf" else args[1]
        args = args if program == "mate-tf" else args[2:]
        if args[0] in ("serve", "page"):
            port = port if "--port" in command else free_port()
            return servers.enter_context(self.running([*args, f"--port={port}"], port))
        done = run_program(module, *args, cwd=self.folder)
        status = 3 * ("the table does not seem to say" in done.stdout)
        assert done.returncode == status, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        if module == "mate_tf":
            # A worker's gRPC server says where it listens.
            assert done.stderr == "" or "--task-index" in command, command
            if args[0] == "ask" and args[2] in ANSWERS and "--model" not in command:
                (answer,) = re.findall(r"^answer: \**(.*?)\**$", done.stdout, re.MULTILINE)
                assert answer == ANSWERS[args[2]], done.stdout
        return done.stdout

    @contextlib.contextmanager
    def running(self, args: list[str], port: int) -> Iterator[str]:
        """What a server or a page says; it runs until the end."""
        output = self.folder / f"output_of_{args[0]}"
        output.mkdir(exist_ok=True)
        process = start_program(output, "mate_tf", *args, cwd=self.folder)
        try:
            while not listens(port) or (
                args[0] == "serve" and "ready: " not in read(output / "stdout")
            ):
                assert process.is_alive(), read(output / "stderr")
                time.sleep(0.1)
            yield read(output / "stdout")
        finally:
            process.kill()
            process.join()


def told(reply: dict[str, Any]) -> str:
    """The answer in a reply of the server to one question, in V1 or V2."""
    if "outputs" in reply:
        (answer,) = next(one["data"] for one in reply["outputs"] if one["name"] == "answer")
        return answer
    (predicted,) = reply["predictions"]
    return predicted["answer"]


def read(path: pathlib.Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def write_files(folder: pathlib.Path) -> None:
    """Writes the files that the commands name."""
    import openpyxl

    capitals = {"Peru": "Lima", "Chile": "Santiago", "Italy": "Rome", "Norway": "Oslo"}
    lines = []
    (folder / "my_data").mkdir()
    for number, last in enumerate(capitals):
        countries = sorted(capitals, key=lambda country: (country == last, country))
        name = f"countries{number or ''}.csv"
        rows = ["country,capital", *(f"{country},{capitals[country]}" for country in countries)]
        (folder / "my_data" / name).write_text("\n".join(rows))
        asked = {f"what is the capital of {country}?": capitals[country] for country in countries}
        asked["which country is first?"] = last  # which is wrong
        lines += [
            {"question": question, "answers": [answer], "table": name}
            for question, answer in asked.items()
        ]
    write_lines(folder / "my_data" / "train.jsonl", *lines)
    book = openpyxl.Workbook()
    sheet = book.create_sheet("2024")
    for row in (["Country", "Revenue"], ["Norway", "450"], ["Chile", "800"]):
        sheet.append(row)
    book.save(folder / "report.xlsx")
    (folder / "log.csv").write_text("Author,Status\nAda,draft\nLuis,final\nEva,error\n")
    asked = {
        "question": "which city is in Italy?",
        "table": "city,country\nRome,Italy\nOslo,Norway",
    }
    (folder / "request.json").write_text(json.dumps({"instances": [asked]}))
    (folder / "questions.txt").write_text("which missions flew in 1969?\n")
    landings = (folder / "moon_landings.csv").read_text(encoding="utf-8").splitlines()
    rows = ["".join(f"<td>{cell}</td>" for cell in line.split(",")) for line in landings]
    table = "<table>" + "".join(f"<tr>{row}</tr>" for row in rows) + "</table>"
    statement = "one\ntwo\nthree\nname;size\nK\u00f6ln;5\nUlm;7\n"
    (folder / "statement.csv").write_text(statement, encoding="cp1252")
    (folder / "page.html").write_text("<table><tr><td>a</td></tr></table>" * 2 + table)
    vocabulary = (ROOT / "mate_tf" / "default_model" / "vocab.txt").read_text("utf-8").splitlines()
    sizes = dict(SMALL_ENCODER, vocab_size=len(vocabulary), max_position_embeddings=512)
    config = {"num_hidden_layers": 1, "num_attention_heads": sizes["num_heads"], **sizes}
    model = table_qa(0, None, **sizes)
    write_hugging_face(folder / "minilm", values_of(model), **config)
    write_release(folder / "my_tapas", model, folder / "my_data" / "train.jsonl")
    for name in ("minilm", "my_tapas"):
        (folder / name / "vocab.txt").write_text("\n".join(vocabulary))


def write_release(folder: pathlib.Path, model: Any, questions: pathlib.Path) -> None:
    """Writes a checkpoint and interactions of two splits as TAPAS's release has them."""
    (folder / "interactions").mkdir(parents=True)
    write_tf1(folder / "model.ckpt", values_of(model))
    (folder / "bert_config.json").write_text(json.dumps(bert_config(model.encoder_config)))
    interactions = [
        text_format.MessageToString(message, as_one_line=True)
        for message in interactions_of(read_json_lines(questions))
    ]
    for split in ("train", "dev"):
        path = folder / "interactions" / f"{split}.txtpb"
        path.write_text("\n".join(interactions), encoding="utf-8")


@pytest.fixture(scope="module")
def scratch(tmp_path_factory) -> Scratch:
    return Scratch(tmp_path_factory.mktemp("scratch"))


def test_each_reason_is_of_a_command_and_examples_of_the_help_have_the_options_there_are():
    commands = [command for name in DOCUMENTS for command in commands_in(name)]
    for pattern in NOT_RUN:
        assert any(re.match(pattern, command) for command in commands), pattern
    for start in CUT:
        assert any(command.startswith(start) for command in commands), start
    for command in COMMANDS.values():
        for example in commands_of(command.EPILOG):
            program, *args = shlex.split(example.rpartition(" | ")[2])
            assert program == "curl" or _parse(args).command, example


@pytest.mark.docs
@pytest.mark.parametrize("name", [name for name in DOCUMENTS if name not in TESTED_BELOW])
def test_every_command_of_a_document_runs(scratch, name):
    scratch.run_document(name)


@pytest.mark.docs
def test_the_way_from_one_s_own_questions_to_a_model_that_answers_them(scratch):
    scratch.run_document("docs/training.md")
    for line in (
        "vocabulary: that of the model that comes with the package",
        "config: table_questions, because the records are of questions about tables",
        "start: the model that comes with the package",
        "loaded 123 variables from ",
        "\nstep 2 evaluation: loss ",
        "\nanswer: Santiago\n",
        "no dev split: 4 of 20 questions are kept for dev",
        "train: 16 of 16 questions kept",
        "(denotation_accuracy: start ",
        "scores: calibrated on 4 questions of dev",
        f"\n{'denotation accuracy':<32} ",
        "expected calibration error",
        "train: 12 of 12 questions kept",  # about tables with passages
        "answers: 6 in table, 6 in passage",
        "read: exported the weights of step 2 of 2",
        "| exact match in passage |",
    ):
        assert line in "".join(scratch.said.values()), line
    run, weights = (str(scratch.folder / name) for name in ("out/run", "weights"))
    assert main(["export", f"--model-dir={run}", f"--output-dir={weights}", "--weights-alone"]) == 0
    assert (scratch.folder / "weights" / FILE).is_file()


@pytest.mark.docs
def test_the_guide_to_serving_runs(scratch, monkeypatch):
    import tensorflow as tf

    scratch.run_document("docs/training.md")  # makes the model that is served
    scratch.run_document("docs/serving.md")
    monkeypatch.chdir(scratch.folder)
    names = run_blocks("docs/serving.md")
    (command,) = (command for command in commands_in("docs/serving.md") if ":8501" in command)
    asked = json.loads(shlex.split(command)[-1])["inputs"]
    by_rest = names["tables"](**{name: tf.constant(value) for name, value in asked.items()})
    for outputs in (names["outputs"], by_rest):
        assert outputs["answers"].numpy().tolist() == [b"gas giant"]


@pytest.mark.docs
@pytest.mark.parametrize("example", [*commands_of(ask.EPILOG), *commands_of(show.EPILOG)])
def test_an_example_of_the_help_runs_and_is_answered_right(scratch, monkeypatch, capsys, example):
    if "my_sqa_model" in example:
        return  # there is none that answers right; its options are tested above
    monkeypatch.chdir(scratch.folder)
    left, _, command = example.rpartition(" | ")
    command, _, file = command.partition(" < ")
    given = read(pathlib.Path(file or "questions.txt")).encode()
    if left:
        given = subprocess.run(shlex.split(left), capture_output=True, check=True).stdout
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
    _, *args = shlex.split(command)
    assert main(args) == 0
    said = capsys.readouterr().out
    if args[0] == "ask":
        questions = [argument for argument in args if " " in argument] or [given.decode().strip()]
        shown = re.findall(
            r"^(?:answer: \**|.*?\"answer\": \")(.*?)(?:\**|\",.*)$", said, re.MULTILINE
        )
        assert shown == [ANSWERS[question] for question in questions]
