"""Which cells an answer's cells attended to."""

import types

import numpy as np
import pytest

from mate_tf.answers import attended_cells
from mate_tf.tables.table import Table


def test_a_histogram_row_counts_as_text(monkeypatch):
    shares = np.array([[0.1, 0.2, 0.3, 0.4]])  # of [CLS], the header, the cell and the histogram
    monkeypatch.setattr(attended_cells, "attention_by_group", lambda *_: {"all heads": shares})
    features = types.SimpleNamespace(
        row_ids=np.array([[0, 0, 1, 2]]), column_ids=np.array([[0, 1, 1, 1]])
    )
    seen = attended_cells.attended_cells(
        encoder=None,
        table=Table.from_rows([["a"], ["b"]]),
        features=features,
        answer=types.SimpleNamespace(cells=(), alternatives=()),
        histogram_row=True,
    )
    assert seen.groups["all heads"].tolist() == [[0.2], [0.3]]
    assert seen.question["all heads"] == pytest.approx(0.5)
