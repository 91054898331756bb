"""Compares the answers of an exported model's signatures with those of the library.

    python -m experiments.benchmarks.compare_signatures --model=out/wtq_model \\
        --data=out/wtq/dev.jsonl

Each question of the file is answered by the library (`from_pretrained`) and by each signature:
`serving_default` on serialized examples, `features` on token features, both read as the library
does, and `tables` on raw text, which reads the answer itself. With --server a server is asked too.
The program prints for each how many answers are the same (text, aggregation and cells, or the
class) and the others. A question that both refuse, such as one about too long a table, counts as
the same. For `tables` it names the features that the graph makes in another way.

Shapes: B batch, S sequence.
"""

import itertools
import pathlib
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from absl import flags
from tqdm import tqdm

from experiments import program
from mate_tf.command_line import arguments

_QUESTIONS = program.define_flags(arguments.add_questions)
_MODEL = flags.DEFINE_string("model", None, "folder of an exported model", required=True)
_BATCH_TOKENS = flags.DEFINE_integer(
    "batch_tokens", 4096, "tokens, padding included, in a batch", lower_bound=1
)
_SERVER = flags.DEFINE_string(
    "server",
    None,
    "also ask a server of the same model, by the URL of its predictions, such as "
    "http://127.0.0.1:8080/v1/models/wtq_model:predict",
)
_SIGNATURES = ("tables", "features", "serving_default")
_STEP = 128  # batches differ by so many tokens in length, as in the library
_AT_ONCE = 16  # requests to a server


class Given(NamedTuple):
    """What is compared of an answer; for a refused question the reason is the text."""

    text: str
    aggregation: str = ""
    cells: tuple[tuple[int, int], ...] = ()
    is_refused: bool = False


def _given(answer) -> Given:
    """What is compared of an `Answer`, or of the error in its place."""
    if isinstance(answer, Exception):
        return Given(str(answer).strip().split("\n")[0], is_refused=True)
    cells = tuple((cell.row, cell.column) for cell in answer.cells)
    return Given(answer.text, answer.aggregation, cells)


class Folder:
    """An exported model: its signatures, how its features are made and its outputs read."""

    def __init__(self, directory: pathlib.Path):
        import tensorflow as tf

        from mate_tf.config import EncoderConfig, read_json_object
        from mate_tf.dataclass_json import from_dict
        from mate_tf.features.builder import FeatureBuilder
        from mate_tf.features.config import FeatureConfig
        from mate_tf.features.wordpiece import Wordpiece
        from mate_tf.serving.folder import CONFIG_FILE, VOCAB_FILE, check_exported
        from mate_tf.tasks import TASKS

        check_exported(directory)
        config = read_json_object(directory / CONFIG_FILE)
        self.encoder = EncoderConfig.from_dict(config["encoder"])
        self.task = from_dict(TASKS[config["kind"]].config_class, config["task"], "task")
        self.features = from_dict(FeatureConfig, config["features"], "features")
        self.wordpiece = Wordpiece(directory / VOCAB_FILE)
        self.builder = FeatureBuilder(self.wordpiece, self.features)
        import tensorflow_text  # noqa: F401 (registers the operations of `tables`)

        self._loaded = tf.saved_model.load(str(directory))
        self.signatures = self._loaded.signatures


def library_answers(directory: pathlib.Path, pairs: Sequence[tuple]) -> Iterator[Given]:
    """The library's answers."""
    from mate_tf.serving.loading import from_pretrained

    answered: Iterator = from_pretrained(directory, calibrated=False).answer_all(pairs)
    for _, _, answer in tqdm(answered, "library", len(pairs), unit="question"):
        yield _given(answer)


def server_answers(url: str, pairs: Sequence[tuple]) -> list[Given]:
    """The answers of a server, asked by the URL of its predictions; OSError if it fails."""
    import httpx

    def ask(pair: tuple) -> Given:
        table, question = pair
        asked = {
            "question": question.text,
            "table": {"header": table.header, "rows": table.expanded_rows},
        }
        reply = client.post(url, json={"instances": [asked]}, timeout=600)
        if reply.status_code == httpx.codes.REQUEST_ENTITY_TOO_LARGE:
            return Given(reply.json()["error"], is_refused=True)
        reply.raise_for_status()
        (found,) = reply.json()["predictions"]
        cells = tuple((cell["row"], cell["column"]) for cell in found["cells"])
        return Given(found["answer"], found["aggregation"], cells)

    try:
        with httpx.Client() as client, ThreadPoolExecutor(_AT_ONCE) as pool:
            return list(tqdm(pool.map(ask, pairs), "server", len(pairs), unit="question"))
    except httpx.HTTPError as error:
        raise OSError(f"expected answers from a server at {url}: {error}") from None


def signature_answers(folder: Folder, name: str, pairs: Sequence[tuple]) -> list[Given]:
    """The answers of a signature, asked in batches of similar length."""
    answers: dict[int, Given] = {}
    lengths: dict[int, int] = {}
    examples = list(folder.builder.build_all(pairs, require_answers=False))
    for index, example in enumerate(examples):
        if not isinstance(example, ValueError):
            lengths[index] = -(-example.report.num_tokens // _STEP) * _STEP
        elif name == "tables":
            (answers[index],) = _ask_tables(folder, [pairs[index]])
        else:
            answers[index] = _given(example)  # there is nothing to ask with
    batches = []
    for length, group in itertools.groupby(sorted(lengths, key=lengths.__getitem__), lengths.get):
        members, size = list(group), max(1, _BATCH_TOKENS.value // length)
        batches += [(length, members[at : at + size]) for at in range(0, len(members), size)]
    for length, batch in tqdm(batches, name, unit="batch"):
        asked = [pairs[index] for index in batch]
        if name == "tables":
            results = _ask_tables(folder, asked)
        else:
            features = [examples[index].features for index in batch]
            results = _ask_tokens(folder, name, asked, features, length)
        answers |= zip(batch, results, strict=True)
    return [answers[index] for index in range(len(pairs))]


def _ask_tokens(
    folder: Folder, name: str, pairs: Sequence[tuple], examples: list[dict], length: int
) -> list[Given]:
    import tensorflow as tf

    from mate_tf.answers.decoding import Asked
    from mate_tf.answers.predictor import Decoder
    from mate_tf.features.token_features import TAPAS_FEATURES, TokenFeatures
    from mate_tf.records.records import serialize_example

    length = folder.encoder.fixed_length or min(length, folder.features.max_seq_length or length)

    def padded(values):
        return np.pad(values[:length], (0, max(0, length - len(values)))).astype(np.int32)

    features = TokenFeatures(
        *(np.stack([padded(example[key]) for example in examples]) for key in TAPAS_FEATURES)
    )  # [B, S]
    if name == "features":
        tensors = {key: tf.constant(getattr(features, key)) for key in TAPAS_FEATURES}
        outputs = folder.signatures[name](**tensors)
    else:
        records = [
            serialize_example({key: getattr(features, key)[index] for key in TAPAS_FEATURES})
            for index in range(len(examples))
        ]
        outputs = folder.signatures[name](examples=tf.constant(records))
    asked = Asked(
        [table for table, _ in pairs], features, folder.wordpiece, folder.features.histogram_row
    )
    return [_given(answer) for answer in Decoder(folder.task)(outputs, asked)]


def _ask_tables(folder: Folder, pairs: Sequence[tuple]) -> list[Given]:
    import tensorflow as tf

    from mate_tf.serving.raw_text.features import raw_input

    raw = raw_input([question.text for _, question in pairs], [table for table, _ in pairs])
    signature = folder.signatures["tables"]
    try:
        outputs = signature(**{key: tf.constant(values.tolist()) for key, values in raw.items()})
    except tf.errors.InvalidArgumentError as error:
        if len(pairs) > 1:
            raise
        return [_given(error)]
    texts = [text.decode("utf-8") for text in outputs["answers"].numpy()]
    if "selected" not in outputs:
        return [Given(text, "NONE") for text in texts]
    aggregations = [name.decode() for name in outputs["aggregations"].numpy()]
    return [
        Given(text, aggregation, tuple((int(row), int(column)) for row, column in np.argwhere(one)))
        for text, aggregation, one in zip(
            texts, aggregations, outputs["selected"].numpy(), strict=True
        )
    ]


def different_features(folder: Any, table, question) -> list[str]:
    """The names of the features that the graph makes in another way than the library."""
    import tensorflow as tf

    from mate_tf.features.token_features import TAPAS_FEATURES
    from mate_tf.serving.raw_text.features import RawInput, build_features, raw_input

    raw = {
        key: tf.constant(values.tolist())
        for key, values in raw_input([question.text], [table]).items()
    }
    in_graph = build_features(
        folder.wordpiece, folder.features, folder.encoder.fixed_length, RawInput(**raw)
    ).tokens
    expected = folder.builder.build(table, question, require_answers=False).features
    names = []
    for name in TAPAS_FEATURES:
        actual, of_library = getattr(in_graph, name)[0].numpy(), expected[name]
        length = min(len(actual), len(of_library))
        is_same = np.array_equal(actual[:length], of_library[:length])
        if not is_same or actual[length:].any() or of_library[length:].any():
            names.append(name)
    return names


def main(_) -> None:
    directory = pathlib.Path(_MODEL.value)
    folder = Folder(directory)
    pairs = arguments.read_asked(_QUESTIONS()).pairs
    expected = list(library_answers(directory, pairs))
    num_refused = sum(answer.is_refused for answer in expected)
    print(f"library: {len(expected)} questions, {num_refused} refused", flush=True)
    for name in (*_SIGNATURES, *(["server"] if _SERVER.value else [])):
        if name == "server":
            answers = server_answers(_SERVER.value, pairs)
        elif name in folder.signatures:
            answers = signature_answers(folder, name, pairs)
        else:
            print(f"{name}: the model has no such signature")
            continue
        lines, reasons = [], Counter[str]()
        for (table, question), ours, theirs in zip(pairs, expected, answers, strict=True):
            if ours == theirs or (ours.is_refused and theirs.is_refused):
                continue
            why = []
            if name == "tables" and not (ours.is_refused or theirs.is_refused):
                why = different_features(folder, table, question)
            reason = ", ".join(why) or "rounding"
            reasons[reason] += 1
            lines.append(
                f"  {question.question_id}: {ours.text!r} ({ours.aggregation}) in the library, "
                f"{theirs.text!r} ({theirs.aggregation}); {reason}"
            )
        same = len(pairs) - len(lines)
        print(f"{name}: {same} of {len(pairs)} the same, {100 * same / len(pairs):.2f} %")
        lines += [f"  {count} differ in {reason}" for reason, count in reasons.most_common()]
        print("".join(f"{line}\n" for line in lines), end="", flush=True)


if __name__ == "__main__":
    program.run(main)
