"""Options that several commands take, and what they stand for.

Each command is a module with HELP, DESCRIPTION and EPILOG, `add_arguments`, which defines its
options, and `run`, which does what they say. The programs in experiments/ define their flags by the
same functions (experiments/program.py), so `add_arguments` uses only `add_argument`,
`add_argument_group` and `set_defaults` of a parser. Nothing slow is imported here.
"""

import argparse
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from mate_tf.dataclass_json import PREFIX
from mate_tf.tables.text_files import check_delimiter

VARIABLE = "MATE_TF_MODEL"


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
    text = {"tab": "\t", "\\t": "\t"}.get(text, text)
    try:
        check_delimiter(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{error}; tab stands for a tabulator") from None
    return text


def add_table(parser: Any) -> None:
    """Adds how a table's file is read."""
    parser.add_argument(
        "--sheet", metavar="NAME", help="Excel: the sheet; by default the first one that is shown"
    )
    parser.add_argument(
        "--which",
        metavar="N",
        type=number(0),
        help="HTML: the number of the table on the page, from 0",
    )
    parser.add_argument(
        "--delimiter",
        metavar="CHARACTER",
        type=delimiter,
        help="CSV: what separates the columns if it is no comma, such as ';', or tab",
    )


def read_table(options: argparse.Namespace) -> Any:
    """The table that TABLE and the options of `add_table` name."""
    from mate_tf.tables import files

    said = files.ReadOptions(options.delimiter, options.sheet, options.which)
    return files.read_table(options.table, said)


def add_model(parser: Any, required: bool = False) -> None:
    """Adds which model answers, and how."""
    parser.add_argument(
        "--model",
        metavar="MODEL",
        required=required,
        help="the folder of an exported model, of a run or of published weights, or a name on the "
        f"Hugging Face Hub; by default what the environment variable {VARIABLE} says, or else the "
        "small model that comes with the package",
    )
    parser.add_argument(
        "--revision", metavar="REVISION", help="for a name on the Hub: a commit, branch or tag"
    )
    parser.add_argument(
        "--architecture",
        metavar="NAME",
        help="how tokens attend to each other instead of how the model was trained, such as mate "
        "for published weights on long tables",
    )
    parser.add_argument(
        "--dtype",
        choices=["float32", "mixed_bfloat16"],
        help="what is computed in; bfloat16 is faster on processors that have it, and starts more "
        "slowly",
    )
    parser.add_argument(
        "--drop-rows-to-fit",
        action="store_true",
        help="leave out the last rows of a table that is too long for the model; otherwise its "
        "questions are not accepted",
    )
    parser.add_argument(
        "--max-tokens",
        metavar="N",
        type=number(4),
        help="the longest question with its table, in tokens, if less than the model takes",
    )
    parser.add_argument(
        "--tagger",
        metavar="TAGGER",
        help="for a model with grammar-guided attention, the tagger of its training data: "
        "textblob, spacy:MODEL or MODULE:FUNCTION",
    )


def add_answers(parser: Any, alternatives: int = 0) -> None:
    """Adds which answers are given."""
    parser.add_argument(
        "--min-score",
        metavar="SCORE",
        type=score,
        default=0.0,
        help="from 0 to 1: an answer with a lower score is not given",
    )
    parser.add_argument(
        "--alternatives",
        "--num-alternatives",
        dest="num_alternatives",
        metavar="N",
        type=number(0),
        default=alternatives,
        help="how many of the next best answers go with each answer",
    )


def find_model(given: str | None) -> str:
    """The path or name of a model: the given one, that of MATE_TF_MODEL, or the default.

    Raises:
        FileNotFoundError: if there can be no such model.
        ValueError: if the given one is empty, as with a shell's variable that is not set.
    """
    from mate_tf.serving.folder import DEFAULT_MODEL, check_named

    if given == "":
        raise ValueError("expected the folder or name of a model, got an empty --model")
    name = given or os.environ.get(VARIABLE) or str(DEFAULT_MODEL)
    check_named(name)
    return name


def load_model(options: argparse.Namespace, **more: Any) -> Any:
    """The predictor that the options of `add_model` and `add_answers` name.

    Args:
        options: the options.
        **more: options of `from_pretrained` beside them.
    """
    from mate_tf.serving.loading import from_pretrained
    from mate_tf.tables.part_of_speech import load_tagger

    given = {
        "dtype": options.dtype,
        "max_seq_length": options.max_tokens,
        "drop_rows_to_fit": options.drop_rows_to_fit or None,
        "min_score": getattr(options, "min_score", None),
        "num_alternatives": getattr(options, "num_alternatives", None),
    }
    return from_pretrained(
        find_model(options.model),
        revision=options.revision,
        architecture=options.architecture,
        tagger=load_tagger(options.tagger) if options.tagger else None,
        **{name: value for name, value in given.items() if value is not None},
        **more,
    )


def add_questions(parser: Any) -> None:
    """Adds which file of questions is asked."""
    parser.add_argument(
        "--data",
        metavar="FILE",
        required=True,
        help="JSON Lines file of questions with tables, one that mate-tf data wrote or your own; "
        "the name of a file stands for all of its shards",
    )
    parser.add_argument(
        "--task",
        metavar="TASK",
        help="the data set of the questions, such as SQA; by default what conversion.json beside "
        "the file says, or else JSONL",
    )
    parser.add_argument(
        "--limit", metavar="N", type=number(1), help="only so many questions, the file's first"
    )


def read_asked(options: argparse.Namespace) -> Any:
    """The questions that the options of `add_questions` name."""
    from mate_tf.evaluation.asked import read_asked

    return read_asked(options.data, options.task, options.limit)


def with_progress(items: Iterable, name: str | None, unit: str, total: int | None = None) -> Any:
    """The items, with a bar on a terminal that counts them."""
    from tqdm import tqdm

    return tqdm(items, desc=name, unit=unit, total=total, disable=None)


def answers(
    predictor: Any, asked: Any, history: str | None = None, pairs: Any = None, name: str = ""
) -> Iterator[Any]:
    """What `answer_asked` yields, with a bar on a terminal."""
    from mate_tf.evaluation.asked import answer_asked

    found = answer_asked(predictor, asked, history, pairs)
    return iter(with_progress(found, name or None, "question", len(asked.pairs)))


def add_devices(parser: Any) -> None:
    """Adds on which devices a model is trained, in the names that Google's programs give them."""
    group = parser.add_argument_group("devices")
    group.add_argument(
        "--distribution-strategy",
        choices=["one_device", "mirrored", "multi_worker_mirrored", "tpu"],
        default="one_device",
        help="one device; the GPUs of this machine; those of several machines, each of which "
        "starts this program with the same arguments but for --task-index; a TPU",
    )
    group.add_argument(
        "--num-gpus",
        metavar="N",
        type=number(0),
        help="GPUs to mirror over; by default all; 0 for the CPU",
    )
    group.add_argument(
        "--num-virtual-cpus",
        metavar="N",
        type=number(1),
        help="with mirrored: divides the CPU into so many devices, to try what several do",
    )
    group.add_argument(
        "--tpu", metavar="NAME", help="with tpu: its name or address; local on its own host"
    )
    group.add_argument(
        "--worker-hosts",
        metavar="HOSTS",
        help="with multi_worker_mirrored: host:port of all workers, with commas, in the same order "
        "on each; the first is the chief, which writes the run's files; TF_CONFIG may say it "
        "instead",
    )
    group.add_argument(
        "--task-index",
        metavar="N",
        type=number(0),
        help="the place of this worker in --worker-hosts, from 0",
    )
    group.add_argument(
        "--all-reduce-alg",
        choices=["nccl", "hierarchical_copy", "ring"],
        help="how gradients are summed: nccl or hierarchical_copy with mirrored, ring or nccl with "
        "multi_worker_mirrored; by default TensorFlow chooses",
    )


def make_strategy(options: argparse.Namespace) -> Any:
    """The strategy of the options of `add_devices`; make it before TensorFlow does anything."""
    from mate_tf.training import distribution

    return distribution.make_strategy(
        options.distribution_strategy,
        num_gpus=options.num_gpus,
        num_virtual_cpus=options.num_virtual_cpus,
        tpu=options.tpu,
        worker_hosts=options.worker_hosts,
        task_index=options.task_index,
        all_reduce_alg=options.all_reduce_alg,
    )
