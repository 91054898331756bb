"""Compares the answers of an exported model's signatures with those of the library.

    python -m experiments.benchmarks.compare_signatures --model=out/wtq_model \\
        --data=out/wtq/dev.jsonl

The library (`from_pretrained`) and each signature answer every question of the file. The signatures
are `tables`, which takes raw text and gives the answer itself; `features`, which takes token
features; and `serving_default`, which takes serialized examples. With --server a server answers
too. For each the program prints how many answers equal the library's, and lists the others. Two
answers are equal if they have the same text, aggregation and cells, or the same class. A question
that both refuse, such as one about a table that is too long, counts as equal. For `tables` the
program also names the features that the graph computes differently.
"""

import pathlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
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
    "batch_tokens", 4096, "tokens in a batch, padding included", lower_bound=1
)
_SERVER = flags.DEFINE_string(
    "server",
    None,
    "also ask a server of the same model, at the URL of its predictions, such as "
    "http://127.0.0.1:8080/v1/models/wtq_model:predict",
)
_SIGNATURES = ("tables", "features", "serving_default")
_AT_ONCE = 16  # requests to a server


class Given(NamedTuple):
    """The compared parts of an answer. For a refused question the text is the reason."""

    text: str
    aggregation: str = ""
    cells: tuple[tuple[int, int], ...] = ()
    is_refused: bool = False


def _given(answer) -> Given:
    """The compared parts of an `Answer`, or of the error in its place."""
    if isinstance(answer, Exception):
        return Given(str(answer).strip().split("\n")[0], is_refused=True)
    cells = tuple((cell.row, cell.column) for cell in answer.cells)
    return Given(answer.text, answer.aggregation, cells)


def predictor_answers(predictor, pairs: Sequence[tuple], name: str) -> Iterator[Given]:
    """The answers of a `Predictor`, with a progress bar."""
    answered: Iterator = predictor.answer_all(pairs)
    for _, _, answer in tqdm(answered, name, len(pairs), unit="question"):
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


def token_function(signature: Any, name: str) -> Callable[..., Any]:
    """A signature of tokens, "features" or "serving_default", as the model of a `Predictor`."""
    import tensorflow as tf

    from mate_tf.features.token_features import TAPAS_FEATURES
    from mate_tf.records.records import serialize_example

    def run(features):  # int32 [B, S] each
        tensors = {key: getattr(features, key) for key in TAPAS_FEATURES}
        if name == "features":
            return signature(**tensors)
        arrays = {key: tensor.numpy() for key, tensor in tensors.items()}
        records = [
            serialize_example({key: array[index] for key, array in arrays.items()})
            for index in range(len(arrays["input_ids"]))
        ]
        return signature(examples=tf.constant(records))

    return run


def table_answers(signature: Any, builder, pairs: Sequence[tuple]) -> list[Given]:
    """The answers of the signature "tables", asked in batches of similar length."""
    examples = builder.build_all(pairs, require_answers=False)
    lengths = {
        index: example.report.num_tokens
        for index, example in enumerate(examples)
        if not isinstance(example, ValueError)
    }
    # One refused question refuses its whole batch, so what the library refuses is asked alone.
    alone = [[index] for index in range(len(pairs)) if index not in lengths]
    batches: list[list[int]] = [[]]
    for index in sorted(lengths, key=lengths.__getitem__):
        if batches[-1] and lengths[index] * (len(batches[-1]) + 1) > _BATCH_TOKENS.value:
            batches.append([])
        batches[-1].append(index)
    answers: dict[int, Given] = {}
    for batch in tqdm([*alone, *filter(None, batches)], "tables", unit="batch"):
        answers |= zip(batch, _ask_tables(signature, [pairs[i] for i in batch]), strict=True)
    return [answers[index] for index in range(len(pairs))]


def _ask_tables(signature: Any, pairs: Sequence[tuple]) -> list[Given]:
    import tensorflow as tf

    from mate_tf.serving.raw_text.features import raw_input

    raw = raw_input([question.text for _, question in pairs], [table for table, _ in pairs])
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


def different_features(builder, fixed_length: int | None, table, question) -> list[str]:
    """The names of the features that the graph computes differently from the library."""
    import tensorflow as tf

    from mate_tf.features.token_features import TAPAS_FEATURES
    from mate_tf.serving.raw_text.features import RawInput, build_features, raw_input

    raw = {
        key: tf.constant(values.tolist())
        for key, values in raw_input([question.text], [table]).items()
    }
    in_graph = build_features(
        builder.wordpiece, builder.config, fixed_length, RawInput(**raw)
    ).tokens
    expected = builder.build(table, question, require_answers=False).features
    names = []
    for name in TAPAS_FEATURES:
        actual, of_library = getattr(in_graph, name)[0].numpy(), expected[name]
        length = min(len(actual), len(of_library))
        is_same = np.array_equal(actual[:length], of_library[:length])
        if not is_same or actual[length:].any() or of_library[length:].any():
            names.append(name)
    return names


def _load(directory: pathlib.Path) -> Any:
    import tensorflow as tf
    import tensorflow_text  # noqa: F401 (registers the operations of `tables`)

    return tf.saved_model.load(str(directory))


def main(_) -> None:
    from mate_tf.answers.predictor import Predictor
    from mate_tf.features.builder import FeatureBuilder
    from mate_tf.features.wordpiece import Wordpiece
    from mate_tf.serving.loading import exported_model, from_pretrained

    directory = pathlib.Path(_MODEL.value)
    stored = exported_model(directory)
    fixed_length = stored.encoder_config.fixed_length
    builder = FeatureBuilder(Wordpiece(stored.vocab_file), stored.feature_config)
    library = from_pretrained(directory, calibrated=False)
    pairs = arguments.read_asked(_QUESTIONS()).pairs
    expected = list(predictor_answers(library, pairs, "library"))
    num_refused = sum(answer.is_refused for answer in expected)
    print(f"library: {len(expected)} questions, {num_refused} refused", flush=True)
    loaded = _load(directory)
    for name in (*_SIGNATURES, *(["server"] if _SERVER.value else [])):
        answers: Iterable[Given]
        if name == "server":
            answers = server_answers(_SERVER.value, pairs)
        elif name not in loaded.signatures:
            print(f"{name}: the model has no such signature")
            continue
        elif name == "tables":
            answers = table_answers(loaded.signatures[name], builder, pairs)
        else:
            predictor = Predictor(
                token_function(loaded.signatures[name], name),
                builder,
                _BATCH_TOKENS.value,
                fixed_length,
                task_config=stored.task_config,
            )
            answers = predictor_answers(predictor, pairs, name)
        lines, reasons = [], Counter[str]()
        for (table, question), ours, theirs in zip(pairs, expected, answers, strict=True):
            if ours == theirs or (ours.is_refused and theirs.is_refused):
                continue
            why = []
            if name == "tables" and not (ours.is_refused or theirs.is_refused):
                why = different_features(builder, fixed_length, table, question)
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
