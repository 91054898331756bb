"""Options that commands share and their values, printing, and the sentences of errors.

Each command is a module with HELP, DESCRIPTION and EPILOG, `add_arguments`, which defines its
options, and `run`, which does what they say. The programs in experiments/ define their flags by the
same functions (experiments/program.py), so `add_arguments` uses only `add_argument`,
`add_argument_group` and `set_defaults` of a parser. Nothing slow is imported here.
"""

import argparse
import contextlib
import inspect
import json
import logging
import os
import pathlib
import re
import shutil
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from mate_tf.dataclass_json import PREFIX
from mate_tf.reading.text_files import check_delimiter
from mate_tf.tables.drawing import error_text, escaped, quoted, with_names

VARIABLE = "MATE_TF_MODEL"
_NONE: Mapping[str, Any] = {}
_WORDS = ("delimiter", "encoding", "sheet", "which")  # names of options for reading a file


def add(
    parser: Any,
    text: str,
    types: Mapping[str, Callable[[str], Any]] = _NONE,
    defaults: Mapping[str, Any] = _NONE,
    required: Sequence[str] = (),
) -> None:
    """Adds options that a text describes.

    Each begins on a line of its own, "--names=VALUE  what it is for", and its other lines are
    indented. A value may be choices, "--dtype=float32|mixed_bfloat16"; without one it is a switch.
    What reads the values (types), their defaults, and which have to be given (required), goes by an
    option's last name with underscores.
    """
    described = re.split(r"\n(?=--)", inspect.cleandoc(text))
    for option in described:
        spelled, _, meaning = option.partition("  ")
        spelled, _, value = spelled.partition("=")
        names = spelled.split()
        dest = names[-1][2:].replace("-", "_")
        more: dict[str, Any] = {"metavar": value, "type": types.get(dest, str)}
        if "|" in value:
            more = {"choices": value.split("|")}
        elif not value:
            more = {"action": "store_true"}
        if dest in defaults:
            more["default"] = defaults[dest]
        if dest in required:
            more["required"] = True
        parser.add_argument(*names, dest=dest, help=" ".join(meaning.split()), **more)


def with_dashes(arguments: Sequence[str]) -> list[str]:
    """The arguments with dashes in the names of options, whose underscores are the same."""
    normal = list[str]()
    for place, argument in enumerate(arguments):
        if argument == "--":
            return [*normal, *arguments[place:]]
        name, equals, value = argument.partition("=")
        if name.startswith("--") and not name.startswith(PREFIX) and " " not in name:
            name = name.replace("_", "-")
        normal.append(f"{name}{equals}{value}")
    return normal


def number(
    low: float, high: float | None = None, kind: Callable[[str], float] = int, what: str = "number"
) -> Callable[[str], Any]:
    """The type of an option that is a number between bounds, both included."""
    bounds = f"of at least {low}" if high is None else f"from {low} to {high}"

    def read(text: str) -> float:
        try:
            value = kind(text)
        except ValueError:
            value = float("nan")
        if not low <= value <= (float("inf") if high is None else high):
            raise argparse.ArgumentTypeError(f"expected a {what} {bounds}, got {text}")
        return value

    return read


score = number(0, 1, float, "score")


def names(text: str) -> list[str]:
    """The type of an option that is a list with commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def delimiter(text: str) -> str:
    """The type of an option that separates columns."""
    try:
        check_delimiter("\t" if text in ("tab", "\\t") else text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{error}; tab stands for a tabulator") from None
    return text


def add_table(parser: Any) -> None:
    """Adds how a table's file is read."""
    add(
        parser,
        """
        --sheet=NAME  of a workbook: the sheet; by default the first one that is shown
        --which=N  of several tables on a page or in JSON or Markdown: the number of one, from 0
        --delimiter=CHARACTER  of text: what separates the columns, such as ';', or tab
        --encoding=NAME  of text: its encoding, such as cp1252 or gb18030
        --header-rows=N  how many rows are the header; 0 for a file without one
        --skip-rows=N  how many rows or lines at the top to pass over; 0 for none, not even titles
        --show-hidden  read hidden rows and columns of a workbook too
        """,
        types=dict(
            which=number(0), delimiter=delimiter, header_rows=number(0), skip_rows=number(0)
        ),
    )


def read_options(options: argparse.Namespace) -> Any:
    """The `ReadOptions` that the options of `add_table` name."""
    from mate_tf.reading.files import ReadOptions

    given = {name: getattr(options, name) for name in ReadOptions.__dataclass_fields__}
    return ReadOptions(**given)


def add_model(parser: Any, required: bool = False) -> None:
    """Adds which model answers, and how."""
    add(
        parser,
        """
        --model=MODEL  the folder of an exported model, of a run or of published weights, or a name
            on the Hugging Face Hub; by default what the environment variable MATE_TF_MODEL says, or
            else the small model that comes with the package
        --revision=REVISION  for a name on the Hub: a commit, branch or tag
        --architecture=NAME  how tokens attend to each other instead of how the model was trained,
            such as mate for published weights on long tables
        --dtype=float32|mixed_bfloat16  what is computed in; bfloat16 is faster on processors that
            have it, and starts more slowly; by default float32, by TensorFlow what is faster here
        --max-tokens=N  the longest question with its table, in tokens, if less than the model
            takes; of a longer table the rows are read that the question needs
        --tagger=TAGGER  for a model with grammar-guided attention, the tagger of its training data:
            textblob, spacy:MODEL or MODULE:FUNCTION
        """,
        types=dict(max_tokens=number(4)),
        required=["model"] if required else [],
    )


def add_answers(parser: Any, alternatives: int = 0, most_seconds: int = 20) -> None:
    """Adds which answers are given."""
    add(
        parser,
        """
        --min-score=SCORE  from 0 to 1: an answer with a lower score is not given
        --alternatives --num-alternatives=N  how many of the next best answers go with each answer
        --most-seconds=S  how long an answer may take that counts or adds the rows of a table longer
            than the model; then it is "not sure", and says that it lacks rows
        """,
        types=dict(min_score=score, num_alternatives=number(0), most_seconds=number(0)),
        defaults=dict(min_score=0.0, num_alternatives=alternatives, most_seconds=most_seconds),
    )


def model_name(given: str | None) -> str:
    """The path or name of a model: the given one, that of MATE_TF_MODEL, or the default.

    ValueError if the given one is empty, as with a shell's variable that is not set.
    """
    from mate_tf.weights.folder import DEFAULT_MODEL

    if given == "":
        raise ValueError("expected the folder or name of a model, got an empty --model")
    return given or os.environ.get(VARIABLE) or str(DEFAULT_MODEL)


def find_model(given: str | None) -> str:
    """The `model_name`; also raises as `check_named`."""
    from mate_tf.weights.folder import check_named

    name = model_name(given)
    check_named(name)
    return name


def load_model(options: argparse.Namespace, tables: Sequence[Any] = (), **more: Any) -> Any:
    """The predictor of the options of `add_model` and `add_answers`, and more options of it.

    Where there are GPUs, or options of `add_devices` name devices, all of these answer, by
    TensorFlow. ConversionError, before it is loaded, where a table has too many columns.
    """
    from mate_tf.features.tokenized_table import check_columns
    from mate_tf.serving import loading
    from mate_tf.tables.part_of_speech import load_tagger

    named = [getattr(options, name, None) for name in ("num_gpus", "num_virtual_cpus", "tpu")]
    # Whether there are GPUs is found without TensorFlow.
    has_devices = any(it is not None for it in named) or shutil.which("nvidia-smi") is not None
    answers_on_all = hasattr(options, "num_gpus") and has_devices
    names = ("drop_rows_to_fit", "dtype", "min_score", "num_alternatives", "most_seconds")
    given = {name: getattr(options, name, None) for name in names}
    given |= {"max_seq_length": options.max_tokens}
    given |= {"runtime": "tensorflow" if answers_on_all else None}
    stored = loading.find_model(find_model(options.model), options.revision, options.architecture)
    for table in tables:
        check_columns(stored.feature_config, table)
    with make_strategy(options).scope() if answers_on_all else contextlib.nullcontext():
        return loading.from_pretrained(
            stored,
            architecture=options.architecture,
            tagger=load_tagger(options.tagger) if options.tagger else None,
            **{name: value for name, value in given.items() if value is not None},
            **more,
        )


def add_questions(parser: Any) -> None:
    """Adds which file of questions is asked."""
    add(
        parser,
        """
        --data=FILE  JSON Lines file of questions with tables, one that mate-tf data wrote or your
            own; the name of a file stands for all of its shards
        --task=TASK  the data set of the questions, such as SQA; by default what conversion.json
            beside the file says, or else JSONL
        --limit=N  only so many questions, the file's first
        """,
        types=dict(limit=number(1)),
        required=["data"],
    )


def read_asked(options: argparse.Namespace) -> Any:
    """The questions that the options of `add_questions` name."""
    from mate_tf.evaluation.predictions import read_asked

    return read_asked(options.data, options.task, options.limit)


def with_progress(items: Iterable, name: str | None, unit: str, total: int | None = None) -> Any:
    """The items, with a bar on a terminal that counts them."""
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    name = name or f"{unit}s"
    return track(items, name, total, console=console, disable=not console.is_terminal)


def answers(
    predictor: Any, asked: Any, history: str | None = None, pairs: Any = None, name: str = ""
) -> Iterator[Any]:
    """The results of `answer_asked`, with a bar on a terminal."""
    from mate_tf.evaluation.predictions import answer_asked

    results = answer_asked(predictor, asked, history, pairs)
    return iter(with_progress(results, name, "question", len(asked.pairs)))


def add_devices(parser: Any, text: str = "", **defaults: Any) -> None:
    """Adds devices of this machine, or a TPU, on which to compute, behind options of a text."""
    machine_text = """
    --num-gpus=N  GPUs that share each batch; by default all; 0 for the CPU
    --num-virtual-cpus=N  divides the CPU into so many devices, to try what several do
    --tpu=NAME  a TPU's name or address; local on its own host
    """
    types = dict(num_gpus=number(0), num_virtual_cpus=number(1), task_index=number(0))
    add(parser.add_argument_group("devices"), text + machine_text, types, defaults)


def add_training_devices(parser: Any) -> None:
    """Adds on which devices a model is trained, in the names that Google's programs give them."""
    text = """
    --distribution-strategy=auto|one_device|mirrored|multi_worker_mirrored|tpu  one device; the GPUs
        of this machine; those of several machines, each of which starts this program with the same
        arguments but for --task-index; a TPU; or what the other options ask for, by default all
        GPUs of this machine
    --worker-hosts=HOSTS  with multi_worker_mirrored: host:port of all workers, with commas, in the
        same order on each; the first is the chief, which writes the run's files; TF_CONFIG may say
        it instead
    --task-index=N  the place of this worker in --worker-hosts, from 0
    """
    add_devices(parser, text, distribution_strategy="auto")


def make_strategy(options: argparse.Namespace) -> Any:
    """The strategy of the options of `add_devices` or `add_training_devices`.

    Make it before TensorFlow does anything. ValueError as of `distribution.make_strategy`, or if
    several workers were to answer the same questions.
    """
    from mate_tf.training import distribution

    names = ("num_gpus", "num_virtual_cpus", "tpu", "worker_hosts", "task_index")
    given = {name: getattr(options, name, None) for name in names}
    name = getattr(options, "distribution_strategy", None)
    workers = distribution.workers_of_environment()
    if name is None and len(workers) > 1:
        raise ValueError(
            f"expected one process to answer the questions, got the {len(workers)} workers of "
            "TF_CONFIG; unset it"
        )
    return distribution.make_strategy(name or "auto", **given)


def silence_tensorflow() -> None:
    """Keeps TensorFlow quiet; call it before TensorFlow is imported.

    Its C++ side logs harmless errors on machines without a GPU. What matters is raised. Its Python
    side logs which devices a strategy has.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    logging.getLogger("tensorflow").addFilter(is_ours_or_serious)


def say(text: str) -> None:
    """Writes lines to standard output, at once; names in them that may have newlines are quoted."""
    sys.stdout.write("".join(f"{escaped(line)}\n" for line in text.split("\n")))
    sys.stdout.flush()


def say_error(sentence: str) -> None:
    """Writes a sentence to standard error, in a line."""
    sys.stderr.write(f"mate-tf: {quoted(sentence)}\n")


def say_json(record: dict[str, Any]) -> None:
    """Writes an object on a line, in characters that standard output can hold."""
    is_utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    say(json.dumps(record, ensure_ascii=not is_utf8, allow_nan=False))


@contextlib.contextmanager
def waiting(text: str, seconds: float = 1.0) -> Iterator[None]:
    """Says on a terminal what takes longer than a second, as long as it takes."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    status = console.status(text)
    timer = threading.Timer(seconds, status.start)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        status.stop()


class _Formatter(logging.Formatter):
    """Escapes what is logged; further lines of a message or a trace are indented."""

    def format(self, record: logging.LogRecord) -> str:
        return "\n  ".join(map(escaped, super().format(record).split("\n")))


def is_ours_or_serious(record: logging.LogRecord) -> bool:
    """A filter that leaves out what TensorFlow and Orbit say about their own saving and loading."""
    if record.module == "function_deserialization":  # no exported model is trained further
        return False
    folders = pathlib.Path(record.pathname).parts
    return record.levelno >= logging.WARNING or bool({"mate_tf", "experiments"} & {*folders})


@contextlib.contextmanager
def showing_logs(with_progress: bool = False) -> Iterator[None]:
    """Shows what is logged: warnings on standard error, and progress on standard output if asked.

    Each is a line.
    """
    from absl import logging as absl_logging

    logger, verbosity = absl_logging.get_absl_logger(), absl_logging.get_verbosity()
    warnings = logging.StreamHandler(sys.stderr)
    warnings.setLevel(logging.WARNING)
    warnings.setFormatter(_Formatter("mate-tf: %(message)s"))
    progress = logging.StreamHandler(sys.stdout)
    progress.setFormatter(_Formatter())
    progress.addFilter(lambda record: with_progress and record.levelno < logging.WARNING)
    absl_logging.set_verbosity(absl_logging.INFO)
    logger.propagate = False
    for handler in (warnings, progress):
        handler.addFilter(is_ours_or_serious)
        logger.addHandler(handler)
    try:
        yield
    finally:
        logger.propagate = True
        absl_logging.set_verbosity(verbosity)
        for handler in (warnings, progress):
            logger.removeHandler(handler)


def sentence_for_user(error: Exception, options: argparse.Namespace | None = None) -> str | None:
    """One sentence about an error of the input, the files or the machine; None for other errors.

    It names the options of a command as they are written there.
    """
    expected = [ValueError, OSError, FloatingPointError, ModuleNotFoundError]
    sentence = str(error).strip()
    if tensorflow := sys.modules.get("tensorflow"):
        expected.append(tensorflow.errors.OpError)
        if isinstance(error, tensorflow.errors.OpError):
            sentence = sentence.split("\n")[0]  # a trace follows
    if not isinstance(error, tuple(expected)):
        return None
    return error_text(quoted(with_names(sentence, option_names(options))))


def option_names(options: argparse.Namespace | None) -> dict[str, str]:
    """How a command writes the options that have another name in Python."""
    written = re.findall("--[a-z-]+", options.parser.format_usage()) if options else []
    names = {option[2:].replace("-", "_"): option for option in written}
    if "max_tokens" in names:
        names["max_seq_length"] = names["max_tokens"]
    # Others are words of any sentence.
    return {name: names[name] for name in names if "_" in name or name in _WORDS}
