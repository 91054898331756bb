"""Writes the questions of experiments/demo_data/people as JSON Lines, one a line with its table.

    python -m experiments.demo_data.people --output_dir=out/people

A line of people/PART.jsonl is a table with all of its questions, each a list of its text, its
aggregation and, if the table answers it, the answers and the coordinates of their cells.
"""

import json
import pathlib
from collections.abc import Iterator
from typing import Any

from absl import app, flags

# The questions of a file under its tables' other headers, by the part's name.
_OTHER_HEADERS = {"train_other_headers": "train", "other_headers": "synonyms"}
PARTS = ("train", "calibration", "dev", "near_misses", "synonyms", *_OTHER_HEADERS)
_COMPUTED = (
    *("COUNT", "SUM", "AVERAGE", "DISTINCT", "DIFFERENCE", "SHARE"),
    *("ROW_SUM", "ROW_AVERAGE", "ROW_DIFFERENCE"),
)


def questions(part: str) -> Iterator[dict[str, Any]]:
    """Yields the questions of one of PARTS, as `create_data --task=JSONL` reads them."""
    file = _OTHER_HEADERS.get(part, part)
    path = pathlib.Path(__file__).parent / "people" / f"{file}.jsonl"
    for line in path.read_text(encoding="utf-8").splitlines():
        table = json.loads(line)
        other = table.pop("other_header", None)
        if part in _OTHER_HEADERS:
            table |= {"id": f"{table['id']}-other", "header": other}
        for number, (text, aggregation, *answer) in enumerate(table.pop("questions")):
            question = {"id": f"{table['id']}#{number}", "question": text}
            question["aggregation"] = aggregation
            if answer:
                question["answers"], question["answer_coordinates"] = answer
            if aggregation == "HEADER":
                question["answers"] = [table["header"][column] for _, column in answer[1]]
            if aggregation in _COMPUTED:
                question["answer_number"] = float(answer[0][0])
            yield question | {"table": table}


def write(folder: pathlib.Path) -> None:
    """Writes {part}.jsonl of each part."""
    folder.mkdir(parents=True, exist_ok=True)
    for part in PARTS:
        lines = [json.dumps(question, ensure_ascii=False) + "\n" for question in questions(part)]
        (folder / f"{part}.jsonl").write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":  # a flag of the module would meet those of programs that import it
    output_dir = flags.DEFINE_string("output_dir", None, "folder to write to", required=True)
    app.run(lambda _: write(pathlib.Path(output_dir.value)))
