"""Writes tables with passages and questions in the layout of HybridQA's release."""

import json
import pathlib
from collections.abc import Iterable
from typing import Any

from experiments.demo_data.linked_corpus.drawing import Asked
from mate_tf.tables.linked_table import LinkedTable
from mate_tf.tables.table import Table
from mate_tf.tables.text_files import complete_text_file


def write_table(directory: pathlib.Path, linked: LinkedTable) -> None:
    """Writes a table and its passages, under WikiTables-WithLinks."""
    table = linked.table
    rows = [
        [
            [text, [passage.link for passage in passages]]
            for text, passages in zip(texts, passages_of_row, strict=True)
        ]
        for texts, passages_of_row in zip(table.rows, linked.passages, strict=True)
    ]
    record = {
        "uid": table.table_id,
        "title": table.document_title,
        "url": "",
        "section_title": "",
        "section_text": "",
        "header": [[name, []] for name in table.header],
        "data": rows,
    }
    folder = directory / "WikiTables-WithLinks"
    _write(folder / "tables_tok" / f"{table.table_id}.json", record)
    _write(folder / "request_tok" / f"{table.table_id}.json", dict(linked.distinct_passages()))


def write_questions(
    directory: pathlib.Path, split: str, asked: Iterable[tuple[Table, Asked]]
) -> None:
    """Writes a split's questions, and the reference that scores are against."""
    records, answers = [], {}
    places: dict[str, list[str]] = {"table": [], "passage": []}
    for table, drawn in asked:
        question = drawn.question
        (answer,) = question.answers
        answers[question.question_id] = answer
        places["table" if drawn.in_table else "passage"].append(question.question_id)
        records.append(
            {
                "question_id": question.question_id,
                "question": question.text,
                "table_id": table.table_id,
                "answer-text": answer,
            }
        )
    folder = directory / "released_data"
    _write(folder / f"{split}.json", records)
    _write(folder / f"{split}_reference.json", {"reference": answers} | places)


def _write(path: pathlib.Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with complete_text_file(path) as file:
        file.write(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
