"""The parts of TabFact's test split that accuracy is reported on (Chen et al., 2020)."""

from collections.abc import Iterable
from pathlib import Path

from mate_tf.tables.datasets.tabfact import read_table_ids
from mate_tf.tables.table import Question, Table

PARTS = ("simple", "complex", "small")


def read_parts(
    directory: str | Path, pairs: Iterable[tuple[Table, Question]]
) -> dict[str, frozenset[str]]:
    """The ids of the statements in each part, of the release's lists of tables.

    Args:
        directory: the release, with `data/simple_test_id.json` and the others; those that are not
            there are left out.
        pairs: statements with their tables.

    Raises:
        FileNotFoundError: if none of the lists is there.
        ValueError: if one is no list of texts, or no statement is in any part.
    """
    files = {part: Path(directory) / "data" / f"{part}_test_id.json" for part in PARTS}
    lists = {part: set(read_table_ids(file)) for part, file in files.items() if file.exists()}
    if not lists:
        raise FileNotFoundError(f"expected {', '.join(map(str, files.values()))}; found none")
    table_ids = {  # as the authors' release names tables, or as their own does
        question.question_id: table.table_id.removeprefix("table_csv/") for table, question in pairs
    }
    parts = {
        part: frozenset(id_ for id_, table_id in table_ids.items() if table_id in of_part)
        for part, of_part in lists.items()
    }
    if not any(parts.values()):
        raise ValueError(
            f"expected statements about tables of the test split, got {len(table_ids)} about "
            f"others ('{directory}')"
        )
    return {part: ids for part, ids in parts.items() if ids}
