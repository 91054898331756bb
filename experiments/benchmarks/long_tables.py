"""Times real tables: what batches of like length, the linear evaluator and the conversion cost.

    python -m experiments.benchmarks.long_tables --data=out/wtq_data/dev.jsonl
    python -m experiments.benchmarks.long_tables --data=out/wtq_data/train.jsonl --measure=coverage

Takes the first question of each table in a file of experiments/create_data.py, or your own in its
format, and models with random weights, which cost what trained ones do:

  batches   questions about the first --num_tables tables in a row, with MiniLM's sizes: batches of
            like length, as `Predictor` makes them, beside all padded to 512 tokens, or to 2,048
            where needed
  pipeline  from a CSV file and a question to the answer, of the table that fills 512 tokens best,
            beside a pass of the encoder alone
  coverage  the encoder at coverage 1.0 beside all pairs, with BERT base's sizes, two layers, on
            each table of more than --longer_than tokens

Each in rounds, one measurement of each a round.
"""

import csv
import dataclasses
import functools
import itertools
import pathlib
import tempfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from absl import flags
from tqdm import tqdm

from experiments import program
from experiments.benchmarks.process import interleaved
from experiments.benchmarks.runners import set_up
from experiments.paper.comparison_results import median_and_spread, spread
from mate_tf.command_line import arguments

_QUESTIONS = program.define_flags(arguments.add_questions)
_MEASURE = flags.DEFINE_multi_enum(
    "measure", ["batches", "pipeline"], ["batches", "pipeline", "coverage"], "what is timed"
)
_NUM_TABLES = flags.DEFINE_integer("num_tables", 100, "tables of batches", lower_bound=1)
_DTYPE = flags.DEFINE_enum("dtype", "float32", ["float32", "mixed_bfloat16"], "of the models")
_THREADS = flags.DEFINE_integer("threads", 1, "that TensorFlow computes with", lower_bound=0)
_ROUNDS = flags.DEFINE_integer("rounds", 3, "measurements of each", lower_bound=1)
_LONGEST_DENSE = flags.DEFINE_integer(
    "longest_dense", 8192, "tokens of the longest table of coverage; all its pairs take 9 GB"
)
_LONGER_THAN = flags.DEFINE_integer("longer_than", 1024, "tokens that tables of coverage exceed")

_SHORT, _LONG = 512, 2048
_FEW_LAYERS = 2


def main(_) -> None:
    from mate_tf.features.wordpiece import Wordpiece

    set_up({"threads": _THREADS.value, "dtype": _DTYPE.value})
    options = _QUESTIONS()
    asked = arguments.read_asked(options)
    of_tables = {table.table_id: (table, question) for table, question in reversed(asked.pairs)}
    pairs = [of_tables[id_] for id_ in dict.fromkeys(table.table_id for table, _ in asked.pairs)]
    wordpiece = Wordpiece(pathlib.Path(options.data).parent / "vocab.txt")
    for name in dict.fromkeys(_MEASURE.value):
        print(_MEASUREMENTS[name](pairs, wordpiece), flush=True)


def measure_batches(pairs: list, wordpiece) -> str:
    from mate_tf.answers.predictor import Predictor, inference_function
    from mate_tf.features.builder import FeatureBuilder
    from mate_tf.features.config import FeatureConfig

    class PaddedPredictor(Predictor):
        """Pads to two lengths."""

        def _padded_length(self, num_tokens: int) -> int:
            return _SHORT if num_tokens <= _SHORT else _LONG

    builder = FeatureBuilder(wordpiece, FeatureConfig(max_seq_length=_LONG))
    examples = list(itertools.islice(_examples(pairs, builder), _NUM_TABLES.value))
    chosen = [(table, question) for table, question, _ in examples]
    lengths = [example.report.num_tokens for *_, example in examples]
    run = inference_function(_minilm_model())
    predictors = [kind(run, builder) for kind in (Predictor, PaddedPredictor)]

    def answer_all(predictor: Predictor) -> None:
        for _table, _question, answer in predictor.answer_all(chosen):
            if isinstance(answer, ValueError):
                raise answer

    like, padded = interleaved(
        {
            str(number): functools.partial(answer_all, predictor)
            for number, predictor in enumerate(predictors)
        },
        _ROUNDS.value,
    ).values()
    rates = [len(chosen) / median_and_spread(one)[0] for one in (like, padded)]
    return (
        f"batches: {len(chosen)} tables of {min(lengths)} to {max(lengths)} tokens, mean "
        f"{sum(lengths) / len(lengths):.0f}: {rates[0]:.1f} tables a second in batches of like "
        f"length, {rates[1]:.1f} padded to {_SHORT} or {_LONG}, ratio {rates[0] / rates[1]:.2f}"
    )


def measure_pipeline(pairs: list, wordpiece) -> str:
    from mate_tf.answers.predictor import Predictor, inference_function
    from mate_tf.features.builder import FeatureBuilder
    from mate_tf.features.config import FeatureConfig
    from mate_tf.features.token_features import TokenFeatures
    from mate_tf.tables.table import Table

    builder = FeatureBuilder(wordpiece, FeatureConfig(max_seq_length=_SHORT))
    table, question, example = max(
        _examples(pairs, builder), key=lambda one: one[2].report.num_tokens
    )
    model = _minilm_model()
    predictor = Predictor(inference_function(model), builder)
    features = TokenFeatures.from_dict(
        {
            name: example.features[name][None]
            for name in TokenFeatures._fields
            if name in example.features
        }
    )
    encode = inference_function(model.encoder)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "table.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([table.header, *table.rows])
        seconds = interleaved(
            {
                "whole": lambda: predictor.answer(Table.from_csv(path), question.text),
                "encoder": lambda: encode(features).pooled_output.numpy(),
            },
            10 * _ROUNDS.value,
        )
    whole, encoder = (median_and_spread(one)[0] for one in seconds.values())
    return (
        f"pipeline: a table of {example.report.num_tokens} tokens: "
        f"{spread(seconds['whole'], 1000)} ms from CSV to answer, "
        f"{spread(seconds['encoder'], 1000)} ms the encoder alone, ratio {whole / encoder:.2f}"
    )


def measure_coverage(pairs: list, wordpiece) -> str:
    import numpy as np

    from mate_tf.answers.predictor import inference_function
    from mate_tf.config import AttentionConfig, EncoderConfig
    from mate_tf.features.builder import FeatureBuilder
    from mate_tf.features.config import FeatureConfig
    from mate_tf.features.token_features import TokenFeatures
    from mate_tf.layers.encoder import TableEncoder

    runs = {}
    for name, attention in {
        "exact": AttentionConfig("mate", bucket_size=64, coverage=1.0),
        "dense": AttentionConfig("tapas"),
    }.items():
        config = EncoderConfig(num_layers=_FEW_LAYERS, attention=attention)
        encoder = TableEncoder(config)
        encoder.build()
        runs[name] = inference_function(encoder)

    def passed(run, features) -> None:
        run(features).pooled_output.numpy()

    builder = FeatureBuilder(wordpiece, FeatureConfig(max_seq_length=_LONGEST_DENSE.value))
    lines, ratios = [], []
    for table, _question, example in tqdm(_examples(pairs, builder), unit=" tables"):
        length = -(-example.report.num_tokens // 128) * 128
        if example.report.num_tokens <= _LONGER_THAN.value:
            continue
        features = TokenFeatures.from_dict(
            {
                name: np.asarray(example.features[name][None, :length], np.int32)
                for name in TokenFeatures._fields
                if name in example.features
            }
        )
        seconds = interleaved(
            {name: functools.partial(passed, run, features) for name, run in runs.items()},
            _ROUNDS.value,
        )
        exact, dense = (median_and_spread(seconds[name])[0] for name in ("exact", "dense"))
        ratios.append(dense / exact)
        lines.append(
            f"| {table.table_id} | {example.report.num_tokens:,} | {len(table.header)} | "
            f"{1000 * exact:,.0f} | {1000 * dense:,.0f} | {dense / exact:.2f} |"
        )
    if not ratios:
        return f"coverage: no table of more than {_LONGER_THAN.value:,} tokens"
    head = "| table | tokens | columns | exact, ms | all pairs, ms | all pairs / exact |"
    return "\n".join(
        [
            f"coverage: {len(ratios)} tables; all pairs take {min(ratios):.2f} to "
            f"{max(ratios):.2f} times as long, median {median_and_spread(ratios)[0]:.2f}\n",
            head,
            "|---|---:|---:|---:|---:|---:|",
            *lines,
        ]
    )


_MEASUREMENTS: Mapping[str, Callable[..., str]] = {
    "batches": measure_batches,
    "pipeline": measure_pipeline,
    "coverage": measure_coverage,
}


def _minilm_model():
    from mate_tf.models.table_qa import TableQuestionAnswering
    from mate_tf.training.starting_points import find_config

    config = find_config("wtq_minilm")
    encoder = dataclasses.replace(config.encoder, position="per_cell")  # of any length
    model = TableQuestionAnswering(encoder, config.task)
    model.build()
    return model


def _examples(pairs: list, builder) -> Iterator[tuple[Any, Any, Any]]:
    """Tables and questions that are not too long for a builder, and their examples."""
    for pair, example in zip(pairs, builder.build_all(pairs, require_answers=False), strict=True):
        if not isinstance(example, ValueError):
            yield (*pair, example)


if __name__ == "__main__":
    program.run(main)
