"""Times real tables: batches of equal length, the conversion, and attention without a window.

    python -m experiments.benchmarks.long_tables --data=out/wtq_data/dev.jsonl
    python -m experiments.benchmarks.long_tables --data=out/wtq_data/train.jsonl --measure=coverage

It takes the first question about each table in a file of experiments/create_data.py, or in a file
of your own in the same format. The models have random weights, which take as long as trained ones.

  batches   questions about the first --num_tables tables, with a model of MiniLM's size: batches of
            similar length, as `Predictor` makes them, against padding to 512 or 2,048 tokens
  pipeline  the way from a CSV file to the answer, for the longest table within 512 tokens, against
            the encoder alone
  coverage  the encoder at coverage 1.0 against all pairs, with two layers of BERT base's size, for
            each table of more than --longer_than tokens
"""

import csv
import dataclasses
import functools
import itertools
import pathlib
import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from absl import flags

from experiments import program
from experiments.benchmarks.runners import built_encoder, forward_pass, interleaved, set_up
from experiments.paper.comparison_results import spread
from mate_tf.command_line import arguments

_QUESTIONS = program.define_flags(arguments.add_questions)
_MEASURE = flags.DEFINE_multi_enum(
    "measure", ["batches", "pipeline"], ["batches", "pipeline", "coverage"], "what is timed"
)
_NUM_TABLES = flags.DEFINE_integer("num_tables", 100, "tables of batches", lower_bound=1)
_ROUNDS = flags.DEFINE_integer("rounds", 3, "measurements of each", lower_bound=1)
_LONGEST_DENSE = flags.DEFINE_integer(
    "longest_dense", 8192, "tokens of the longest table of coverage; all its pairs take 9 GB"
)
_LONGER_THAN = flags.DEFINE_integer("longer_than", 1024, "tokens that tables of coverage exceed")

_SHORT, _LONG = 512, 2048


def main(_) -> None:
    from mate_tf.features.wordpiece import Wordpiece

    set_up(1, "float32")
    options = _QUESTIONS()
    asked = arguments.read_asked(options)
    by_table = {table.table_id: (table, question) for table, question in reversed(asked.pairs)}
    pairs = [by_table[id_] for id_ in dict.fromkeys(table.table_id for table, _ in asked.pairs)]
    wordpiece = Wordpiece(pathlib.Path(options.data).parent / "vocab.txt")
    measurements: Mapping[str, Callable[..., str]] = {
        "batches": measure_batches,
        "pipeline": measure_pipeline,
        "coverage": measure_coverage,
    }
    for name in dict.fromkeys(_MEASURE.value):
        print(measurements[name](pairs, wordpiece), flush=True)


def measure_batches(pairs: list, wordpiece) -> str:
    from mate_tf.answers.inference import inference_function
    from mate_tf.answers.predictor import Predictor

    class PaddedPredictor(Predictor):
        """Pads to two lengths."""

        def _padded_length(self, num_tokens: int) -> int:
            return _SHORT if num_tokens <= _SHORT else _LONG

    builder = _builder(wordpiece, _LONG)
    examples = list(itertools.islice(_examples(pairs, builder), _NUM_TABLES.value))
    chosen = [(table, question) for table, question, _ in examples]
    lengths = [example.report.num_tokens for *_, example in examples]
    model = _minilm_model()
    run = inference_function(model)

    def answer_all(predictor: Predictor) -> None:
        for _table, _question, answer in predictor.answer_all(chosen):
            if isinstance(answer, ValueError):
                raise answer

    predictors = {
        kind.__name__: functools.partial(
            answer_all, kind(run, builder, task_config=model.task_config)
        )
        for kind in (Predictor, PaddedPredictor)
    }
    seconds = interleaved(predictors, _ROUNDS.value)
    similar, padded = (len(chosen) / statistics.median(one) for one in seconds.values())
    return (
        f"batches: {len(chosen)} tables of {min(lengths)} to {max(lengths)} tokens, mean "
        f"{statistics.mean(lengths):.0f}: {similar:.1f} tables a second in batches of similar "
        f"length, {padded:.1f} padded to {_SHORT} or {_LONG}, ratio {similar / padded:.2f}"
    )


def measure_pipeline(pairs: list, wordpiece) -> str:
    from mate_tf.answers.inference import inference_function
    from mate_tf.answers.predictor import Predictor
    from mate_tf.tables.table import Table

    builder = _builder(wordpiece, _SHORT)
    table, question, example = max(
        _examples(pairs, builder), key=lambda one: one[2].report.num_tokens
    )
    model = _minilm_model()
    predictor = Predictor(inference_function(model), builder, task_config=model.task_config)
    features, encode = _features(example, None), forward_pass(model.encoder)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "table.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([table.header, *table.rows])
        seconds = interleaved(
            {
                "whole": lambda: predictor.answer(Table.from_csv(path), question.text),
                "encoder": lambda: encode(features),
            },
            10 * _ROUNDS.value,
        )
    whole, encoder = map(statistics.median, seconds.values())
    return (
        f"pipeline: a table of {example.report.num_tokens} tokens: "
        f"{spread(seconds['whole'], 1000)} ms from CSV to answer, "
        f"{spread(seconds['encoder'], 1000)} ms the encoder alone, ratio {whole / encoder:.2f}"
    )


def measure_coverage(pairs: list, wordpiece) -> str:
    from mate_tf.config import AttentionConfig, EncoderConfig

    kinds = AttentionConfig("mate", bucket_size=64, coverage=1.0), AttentionConfig("tapas")
    runs = [
        forward_pass(built_encoder(EncoderConfig(num_layers=2, attention=kind))) for kind in kinds
    ]
    lines, ratios = [], []
    examples = _examples(pairs, _builder(wordpiece, _LONGEST_DENSE.value))
    for table, _question, example in arguments.with_progress(examples, None, "table"):
        tokens = example.report.num_tokens
        if tokens <= _LONGER_THAN.value:
            continue
        features = _features(example, -(-tokens // 128) * 128)
        runners = {str(n): functools.partial(run, features) for n, run in enumerate(runs)}
        seconds = interleaved(runners, _ROUNDS.value)
        exact, dense = (1000 * statistics.median(one) for one in seconds.values())
        ratios.append(dense / exact)
        lines.append(
            f"| {table.table_id} | {tokens:,} | {len(table.header)} | {exact:,.0f} | {dense:,.0f} "
            f"| {dense / exact:.2f} |"
        )
    if not ratios:
        return f"coverage: no table of more than {_LONGER_THAN.value:,} tokens"
    head = (
        f"coverage: {len(ratios)} tables; all pairs take {min(ratios):.2f} to "
        f"{max(ratios):.2f} times as long, median {statistics.median(ratios):.2f}\n",
        "| table | tokens | columns | exact, ms | all pairs, ms | all pairs / exact |",
        "|---|---:|---:|---:|---:|---:|",
    )
    return "\n".join([*head, *lines])


def _minilm_model():
    from mate_tf.models.table_qa import TableQuestionAnswering
    from mate_tf.training.starting_points import find_config

    config = find_config("wtq_minilm")
    encoder = dataclasses.replace(config.encoder, position="per_cell")  # of any length
    model = TableQuestionAnswering(encoder, config.task)
    model.build()
    return model


def _features(example, length: int | None):
    """The `TokenFeatures` of one example, cut to a length: int32 [1, S]."""
    import numpy as np
    import tensorflow as tf

    from mate_tf.features.token_features import TokenFeatures

    given = example.features
    names = [name for name in TokenFeatures._fields if name in given]
    cut = {name: tf.constant(given[name][None, :length].astype(np.int32)) for name in names}
    return TokenFeatures.from_dict(cut)


def _builder(wordpiece, length: int):
    from mate_tf.features.builder import FeatureBuilder
    from mate_tf.features.config import FeatureConfig

    return FeatureBuilder(wordpiece, FeatureConfig(max_seq_length=length))


def _examples(pairs: list, builder) -> Iterator[tuple[Any, Any, Any]]:
    """Tables and questions that are not too long for a builder, and their examples."""
    for pair, example in zip(pairs, builder.build_all(pairs, require_answers=False), strict=True):
        if not isinstance(example, ValueError):
            yield (*pair, example)


if __name__ == "__main__":
    program.run(main)
