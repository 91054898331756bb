"""The original's prediction files: the same cells, aggregations, classes and spans.

A line of them has the cells whose tokens' mean probability is above one half, without ours where
none is, and the runs of tokens above one half, with the geometric mean of their probabilities; a
run goes on into the next cell and is listed under the one that it begins in.

Shapes: B batch, S sequence.
"""

import ast
import csv
import json
from typing import Any, NamedTuple

import numpy as np
import pytest

from mate_tf.answers import decoding, spans
from mate_tf.config import EncoderConfig
from mate_tf.features.token_features import TokenFeatures
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.models.classification import SequenceClassification
from mate_tf.models.span_reading import SpanReading
from mate_tf.models.table_qa import TableQuestionAnswering
from mate_tf.records.batches import read_records
from mate_tf.tables.table import Table
from mate_tf.task_configs import ClassificationConfig, SpanReadingConfig
from tests.golden.comparison import GOLDEN, NotSupportedError, compare, each_of
from tests.golden.heads import built, supported_config, task_config

TOLERANCE = 1e-5


class Run(NamedTuple):
    """A prediction file of the original, and the examples that it is about."""

    tapas: dict[str, Any]  # its config
    encoder_config: EncoderConfig
    features: TokenFeatures  # int32 [B, S]
    tables: list[Table]  # of the right sizes, with empty cells
    lines: list[dict[str, Any]]
    vocab_file: str

    def outputs(self, model_class, config) -> dict[str, np.ndarray]:
        """What a model with the checkpoint's weights makes of the examples."""
        model = built(GOLDEN, model_class(self.encoder_config, config))
        return {name: value.numpy() for name, value in model(self.features).items()}


# The tasks whose predictions are compared; TabFact's have both cells and classes.
OF_CELLS = {"HYBRIDQA", "SQA", "TABFACT", "WIKISQL", "WIKISQL_SUPERVISED", "WTQ"}
OF_SPANS = {"HYBRIDQA_RC"}


@pytest.fixture
def run(golden, name) -> Run:
    entry = golden.load_index("e2e")[name]
    predictions, records, vocab_file = golden.require(
        f"e2e/{name}.tsv", f"data/{entry['data']}.tfrecord", "data/vocab.txt"
    )
    with predictions.open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file, delimiter="\t"))
    for line in lines:
        line["answers"] = json.loads(line["answers"])
    batch = next(iter(read_records(str(records)).batch(len(lines) + 1)))
    keys = [key.decode() for key in batch["question_id"].numpy().flat]
    asked = [line["question_id"] for line in lines]
    assert keys == asked, f"{name}: other questions in the records than in the predictions"
    features = TokenFeatures.from_dict(batch)
    sizes = np.max([features.row_ids, features.column_ids], axis=2).T.clip(1).tolist()
    tapas, encoder_config = supported_config(golden, entry, features.input_ids.shape[1])
    tables = [Table(("",) * width, (("",) * width,) * height) for height, width in sizes]
    return Run(tapas, encoder_config, features, tables, lines, str(vocab_file))


def token_runs(probabilities, ids, rows, columns) -> list[dict[str, Any]]:
    """The runs of an example's tokens above one half, as a prediction file has them; each [S]."""
    selected = (probabilities > 0.5) & (rows > 0) & (columns > 0)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], selected, [0]])))
    found = []
    for begin, end in edges.reshape(-1, 2).tolist():
        cell = (rows == rows[begin]) & (columns == columns[begin])
        first = int(cell.argmax())
        found.append(
            {
                "column_index": int(columns[begin]) - 1,
                "row_index": int(rows[begin]) - 1,
                "begin_token_index": begin - first,
                "end_token_index": end - first,
                "token_ids": ids[begin:end].tolist(),
                "score": float(np.exp(np.log(probabilities[begin:end]).mean())),
            }
        )
    return found


@each_of("e2e", lambda _, entry: entry["task"] in OF_CELLS)
def test_cells_and_aggregations_are_the_originals(golden, name, run):
    config = task_config(run.tapas)
    outputs = run.outputs(TableQuestionAnswering, config)
    cells = decoding.group_body_cells(decoding.Asked(run.tables, run.features))
    answers = decoding.decode_cells(config, outputs, decoding.Asked(run.tables, run.features))
    ids, rows, columns = (
        np.asarray(getattr(run.features, key)) for key in ("input_ids", "row_ids", "column_ids")
    )
    scores: list[float] = []
    expected_scores: list[float] = []
    for index, line in enumerate(run.lines):
        where = f"{name} {line['question_id']}"
        expected = {ast.literal_eval(p) for p in ast.literal_eval(line["answer_coordinates"])}
        places = np.nonzero(cells[index].means(outputs["token_probabilities"][index]) > 0.5)
        assert set(zip(*map(np.ndarray.tolist, places), strict=True)) == expected, where
        if expected and not config.cell_cross_entropy:  # which answers with the likeliest cell
            assert {(cell.row, cell.column) for cell in answers[index].cells} == expected, where
        found = token_runs(
            outputs["token_probabilities"][index], ids[index], rows[index], columns[index]
        )
        scores += [run.pop("score") for run in found]
        expected_scores += [run.pop("score") for run in line["answers"]]
        assert found == line["answers"], where
        if "pred_aggr" in line:
            chosen = int(outputs["aggregation_logits"][index].argmax())
            assert chosen == int(line["pred_aggr"]), where
    compare("predictions", f"{name} scores", scores, expected_scores, TOLERANCE)


@each_of("e2e", lambda _, entry: entry["task"] == "TABFACT")
def test_classes_are_the_originals(golden, name, run):
    if (num_classes := run.tapas["num_classification_labels"]) != 2:
        raise NotSupportedError(f"{num_classes} classes")
    config = ClassificationConfig()
    outputs = run.outputs(SequenceClassification, config)
    answers = spans.decode_classes(config, outputs)
    assert [answer.class_index for answer in answers] == [int(row["pred_cls"]) for row in run.lines]
    # Of two classes the file has the difference of their logits.
    logits = outputs["class_logits"][:, 1] - outputs["class_logits"][:, 0]
    expected = [float(line["logits_cls"]) for line in run.lines]
    compare("predictions", f"{name} logits", logits, expected, TOLERANCE)


@each_of("e2e", lambda _, entry: entry["task"] in OF_SPANS)
def test_spans_are_the_originals(golden, name, run):
    config = SpanReadingConfig(kind=run.tapas["span_prediction"])
    outputs = run.outputs(SpanReading, config)
    wordpiece = Wordpiece(run.vocab_file)
    answers = spans.decode_spans(
        config, outputs, decoding.Asked(run.tables, run.features, wordpiece)
    )
    best = spans.best_spans(
        outputs["span_logits"], run.features.input_ids.shape[1], config.max_span_length
    )
    rows, columns = np.asarray(run.features.row_ids), np.asarray(run.features.column_ids)
    for index, line in enumerate(run.lines):
        (expected,) = line["answers"]
        start, end = best.starts[index, 0], best.ends[index, 0]
        cell = (rows[index] == rows[index, start]) & (columns[index] == columns[index, start])
        places = np.array([start, end + 1]) - cell.argmax()
        assert places.tolist() == [expected["begin_token_index"], expected["end_token_index"]]
        (read,) = answers[index].cells
        assert (read.row, read.column) == (expected["row_index"], expected["column_index"])
        # The tables here are empty, so that the pieces themselves are the text.
        pieces = [wordpiece.vocabulary[piece] for piece in expected["token_ids"]]
        assert answers[index].text == " ".join(pieces).replace(" ##", "")
    scores = outputs["span_logits"].max(axis=1)
    expected_scores = [line["answers"][0]["score"] for line in run.lines]
    compare("predictions", f"{name} scores", scores, expected_scores, TOLERANCE)
