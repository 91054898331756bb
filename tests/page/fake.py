"""A predictor that answers at once, without TensorFlow, and a page of it to serve."""

import re
import threading
import time

import numpy as np

from mate_tf.answers.answer import Answer, SelectedCell, answer_of_cells
from mate_tf.tables.table import Question, Table

CAPITALS = "city\tcountry\nrome\titaly\nparis\tfrance\n"


class Fake:
    """Answers with the first column of the rows that the question names, or of the first row.

    "how many" counts them, "perhaps" is not sure, "wait" waits until it `may_answer`. What is asked
    is in `asked`.
    """

    def __init__(self):
        self.asked: list[tuple[Table, str]] = []
        self.is_waiting, self.may_answer = threading.Event(), threading.Event()

    def answer(self, table: Table, question: str | Question, after: Answer | None = None) -> Answer:
        text = question if isinstance(question, str) else question.text
        if not text.strip():
            raise ValueError("expected a question, got an empty one")
        self.asked.append((table, text))
        words = set(re.findall(r"\w+", text.lower()))
        rows = [i for i, row in enumerate(table.rows) if words & {cell.lower() for cell in row}]
        cells = tuple(SelectedCell(row, 0, table.rows[row][0], 0.9) for row in rows or [0])
        aggregation = "COUNT" if text.startswith("how many") else "NONE"
        found = answer_of_cells(table, cells, aggregation, 0.9)
        elsewhere = SelectedCell(table.num_rows - 1, 0, table.rows[-1][0], 0.1)
        others = [answer_of_cells(table, one, "NONE", 0.2) for one in (cells[:1], (elsewhere,))]
        assert found is not None and None not in others
        if "wait" in words:
            self.is_waiting.set()
            self.may_answer.wait()
        values = {
            **vars(found),
            "confidence": "not sure" if "perhaps" in words else "sure",
            "alternatives": tuple(others),
            "rows": None if after is None else tuple(cell.row for cell in after.cells),
        }
        return Answer(**values)

    def attended_cells(self, table: Table, question: str | Question, after: Answer | None = None):
        shares = np.zeros([table.num_rows + 1, table.num_columns])
        shares[1, 0] = 0.75
        groups = {"row heads": shares, "column heads": shares / 3}
        return None, groups, {"row heads": 0.25, "column heads": 0.75}


class Failing:
    """A predictor that raises an error when it is asked."""

    def __init__(self, error: Exception):
        self._error = error

    def answer(self, table, question, after=None):
        raise self._error

    attended_cells = answer


class Hidden(Fake):
    """A predictor that does not show where it looked."""

    def attended_cells(self, table, question, after=None):
        raise ValueError("expected attention <to be seen>, got table_etc")


if __name__ == "__main__":  # what `mate-tf page` does once the model is loaded
    from mate_tf.page.app import end_on_signals, serving

    end_on_signals()
    with serving(Fake(), "model", "127.0.0.1") as served:
        print(served, flush=True)
        while True:
            time.sleep(60)
