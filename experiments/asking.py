"""What the binaries share that ask an exported model: flags, loading, and answers with progress."""

from collections.abc import Iterable, Iterator
from typing import Any

from absl import flags
from tqdm import tqdm

from experiments import model_flags
from experiments.question_files import Asked

DTYPE = flags.DEFINE_enum(
    "dtype",
    None,
    ["float32", "mixed_bfloat16"],
    "what is computed in; bfloat16 is faster on processors that have it, and starts more slowly",
)
DROP = flags.DEFINE_bool(
    "drop_rows_to_fit",
    False,
    "leave out rows at the end of a table that is too long for the model, where its question would "
    "not be accepted otherwise",
)
MAX_TOKENS = flags.DEFINE_integer(
    "max_tokens",
    None,
    "the longest question with its table, in tokens, where it is to be less than the model takes",
    lower_bound=4,
)
TAGGER = flags.DEFINE_string(
    "tagger",
    None,
    "for a model with grammar-guided attention, the tagger of its training data: textblob, "
    "spacy:MODEL or MODULE:FUNCTION",
)


def load(**options: Any):
    """The predictor of --model and the flags beside it, with options of its own."""
    from mate_tf.serving.loading import from_pretrained
    from mate_tf.tables.part_of_speech import load_tagger

    tagger = load_tagger(TAGGER.value) if TAGGER.value else None
    if DROP.value:
        options["drop_rows_to_fit"] = True
    if MAX_TOKENS.value is not None:
        options["max_seq_length"] = MAX_TOKENS.value
    return from_pretrained(
        model_flags.model_path(),
        revision=model_flags.REVISION.value,
        architecture=model_flags.ARCHITECTURE.value,
        dtype=DTYPE.value,
        tagger=tagger,
        **options,
    )


def answers(
    predictor, asked: Asked, pairs: Iterable | None = None, history: str | None = None, **bar: Any
) -> Iterator:
    """Answers with a progress bar.

    Args:
        predictor: what `load` gave.
        asked: the questions.
        pairs: others in their place, as many.
        history: "predicted" for the model's own answers before a question of a sequence, "gold" for
            those that it brings along; by default predicted for SQA, gold for the rest, whose
            questions mostly have none.
        **bar: options of the progress bar.

    Yields:
        Table, question, and answer or error.
    """
    from mate_tf.answers.sequences import answer_sequences

    pairs = asked.pairs if pairs is None else pairs
    history = history or ("predicted" if asked.task == "SQA" else "gold")
    if history == "predicted":
        found = answer_sequences(predictor.answer_all, pairs)
    else:
        found = predictor.answer_all(pairs)
    yield from tqdm(found, total=len(asked.pairs), unit="question", **bar)
