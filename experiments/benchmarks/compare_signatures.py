"""Compares the answers of an exported model's signature `tables` with those of the library.

    python -m experiments.benchmarks.compare_signatures --model=out/wtq_model \\
        --data=out/wtq/dev.jsonl

The library (`from_pretrained`) and the signature, which makes its features in the graph, answer
every question of the file. The program prints how many answers are equal: in text, aggregation and
cells, or in class. It lists the others, with the features that the graph computes differently. A
question that both refuse, such as one about a table that is too long, counts as equal.
"""

import pathlib
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from absl import flags

from experiments import program
from mate_tf.command_line import arguments

_QUESTIONS = program.define_flags(arguments.add_questions)
_MODEL = flags.DEFINE_string("model", None, "folder of an exported model", required=True)
_BATCH_TOKENS = flags.DEFINE_integer(
    "batch_tokens", 4096, "tokens in a batch, padding included", lower_bound=1
)


class Given(NamedTuple):
    """The compared parts of an answer. For a refused question the text is the reason."""

    text: str
    aggregation: str = ""
    cells: tuple[tuple[int, int], ...] = ()
    is_refused: bool = False


def _given(answer) -> Given:
    if isinstance(answer, Exception):
        return Given(str(answer).strip().split("\n")[0], is_refused=True)
    return Given(answer.text, answer.aggregation, answer.coordinates)


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
    for batch in arguments.with_progress([*alone, *filter(None, batches)], "tables", "batch"):
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
    aggregations, selected = outputs["aggregations"].numpy(), outputs["selected"].numpy()
    return [
        Given(
            text,
            aggregation.decode(),
            tuple((row, column) for row, column in np.argwhere(cells).tolist()),
        )
        for text, aggregation, cells in zip(texts, aggregations, selected, strict=True)
    ]


def different_features(builder, fixed_length: int | None, table, question) -> list[str]:
    """The names of the features that the graph computes differently from the library."""
    import tensorflow as tf

    from mate_tf.features.token_features import TAPAS_FEATURES
    from mate_tf.serving.raw_text.features import RawInput, build_features, raw_input

    given = raw_input([question.text], [table]).items()
    raw = RawInput(**{key: tf.constant(values.tolist()) for key, values in given})
    in_graph = build_features(builder.wordpiece, builder.config, fixed_length, raw).tokens
    expected = builder.build(table, question, require_answers=False).features
    names = []
    for name in TAPAS_FEATURES:
        actual, of_library = getattr(in_graph, name)[0].numpy(), expected[name]
        length = min(len(actual), len(of_library))
        is_same = np.array_equal(actual[:length], of_library[:length])
        if not is_same or actual[length:].any() or of_library[length:].any():
            names.append(name)
    return names


def main(_) -> None:
    import tensorflow as tf
    import tensorflow_text  # noqa: F401 (registers the operations of `tables`)

    from mate_tf.features.builder import FeatureBuilder
    from mate_tf.features.wordpiece import Wordpiece
    from mate_tf.serving.loading import from_pretrained
    from mate_tf.serving.stored import exported_model

    directory = pathlib.Path(_MODEL.value)
    stored = exported_model(directory)
    fixed_length = stored.encoder_config.fixed_length
    builder = FeatureBuilder(Wordpiece(stored.vocab_file), stored.feature_config)
    library = from_pretrained(directory, calibrated=False)
    pairs = arguments.read_asked(_QUESTIONS()).pairs
    answered = arguments.with_progress(library.answer_all(pairs), "library", "question", len(pairs))
    expected = [_given(answer) for _, _, answer in answered]
    num_refused = sum(answer.is_refused for answer in expected)
    print(f"library: {len(expected)} questions, {num_refused} refused", flush=True)
    signatures = tf.saved_model.load(str(directory)).signatures
    if "tables" not in signatures:
        raise ValueError(
            f"expected a model with the signature tables at {directory}; its signatures.txt says "
            "why there is none"
        )
    answers = table_answers(signatures["tables"], builder, pairs)
    lines, reasons = [], Counter[str]()
    for (table, question), ours, theirs in zip(pairs, expected, answers, strict=True):
        if ours == theirs or (ours.is_refused and theirs.is_refused):
            continue
        why = []
        if not (ours.is_refused or theirs.is_refused):
            why = different_features(builder, fixed_length, table, question)
        reason = ", ".join(why) or "rounding"
        reasons[reason] += 1
        lines.append(
            f"  {question.question_id}: {ours.text!r} ({ours.aggregation}) in the library, "
            f"{theirs.text!r} ({theirs.aggregation}); {reason}"
        )
    same = len(pairs) - len(lines)
    print(f"tables: {same} of {len(pairs)} the same, {100 * same / len(pairs):.2f} %")
    lines += [f"  {count} differ in {reason}" for reason, count in reasons.most_common()]
    print("".join(f"{line}\n" for line in lines), end="")


if __name__ == "__main__":
    program.run(main)
