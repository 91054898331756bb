"""TabFact: statements that a table entails (1) or refutes (0), as released (Chen et al., 2020)."""

import csv
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from mate_tf.datasets.json_lines import naming
from mate_tf.datasets.wtq import read_original_rows
from mate_tf.reading.text_files import read_csv_rows, read_json
from mate_tf.tables.table import Question, Table, remember


def read_tabfact(
    directory: str | Path, split: str, original: bool = False
) -> Iterator[tuple[Table, Question]]:
    """Yields each statement with its table, whose document title is the caption.

    The class is 1 if the table entails the statement. Texts are those of the release's folder
    `tokenized_data`, words in their base form ("be" for "is"). "1-2.html.csv_3-0_0" is statement 3,
    counted from 0, about the table "1-2.html.csv".

    The split is "train", "dev" or "test"; or a part of the test split with a list of tables,
    data/{split}_id.json, such as "simple_test". With `original` it reads as the authors' release of
    TAPAS does: texts from the folder `collected_data`; tables are named "table_csv/..." and have no
    caption; quotation marks around a cell are removed. Errors are those of `read_wtq`.
    """
    directory = Path(directory)
    name = {"dev": "val"}.get(split, split)
    read_table = remember(partial(_read_table, directory, original))
    ids_file = directory / "data" / f"{name}_id.json"
    is_whole = name in ("train", "val", "test")
    sources = [directory / "tokenized_data" / f"{name if is_whole else 'test'}_examples.json"]
    if original:
        rounds = ("r1_training_all.json", "r2_training_all.json")
        sources = [directory / "collected_data" / file for file in rounds]
    ids = None if is_whole and not original else read_table_ids(ids_file)
    entries = _read_entries(sources)
    for table_id in entries if ids is None else ids:
        if table_id not in entries:
            expected = f"expected a table of {' or '.join(map(str, sources))}"
            raise ValueError(f"{expected}, got '{table_id}' (file '{ids_file}')")
        statements, labels, caption = entries[table_id]
        table = read_table((table_id, "" if original else caption))
        for i, (text, label) in enumerate(zip(statements, labels, strict=True)):
            yield table, Question(text, f"{table_id}_{i}-0_0", class_index=label)


def read_table_ids(path: str | Path) -> list[str]:
    """Reads one of the release's lists of table names; ValueError if it is no list of texts."""
    ids = read_json(path)
    if not isinstance(ids, list) or not all(isinstance(table_id, str) for table_id in ids):
        raise ValueError(f"expected a list of tables' names, got {ids!r:.80} (file '{path}')")
    return ids


def _read_entries(paths: list[Path]) -> Mapping[str, Any]:
    entries: dict[str, Any] = {}
    for path in paths:
        content = read_json(path)
        if not isinstance(content, dict):
            raise ValueError(f"expected an object, got {type(content).__name__} (file '{path}')")
        for table_id, entry in content.items():
            if not _is_entry(entry):
                expected = "expected statements, as many labels 0 or 1, and a caption"
                where = f"(file '{path}', table '{table_id}')"
                raise ValueError(f"{expected}, got {entry!r:.80} {where}")
        entries |= content
    return entries


def _is_entry(entry: Any) -> bool:
    match entry:
        case [list(statements), list(labels), str()]:
            return (
                len(statements) == len(labels)
                and all(isinstance(text, str) for text in statements)
                and all(type(label) is int and label in (0, 1) for label in labels)
            )
    return False


def _read_table(directory: Path, original: bool, named: tuple[str, str]) -> Table:
    table_id, caption = named
    path = directory / "data" / "all_csv" / table_id
    if original:
        rows, name = list(filter(None, read_original_rows(path, "#"))), f"table_csv/{table_id}"
    else:
        rows, name = read_csv_rows(path, delimiter="#", quoting=csv.QUOTE_NONE), table_id
    with naming(f"(file '{path}')"):
        return replace(Table.from_rows(rows, table_id=name), document_title=caption)
