"""Rewords questions that were made or written: other headers, lower case, typing errors.

    python -m experiments.create_reworded --input_file=out/people/train.jsonl \\
        --output_file=out/reworded/train.jsonl --share=0.3

Each question is one line with its table, in the format of docs/training.md. Of --share of them a
copy is written in which headers that have other names (experiments/synthesis/synonyms.txt) have
one, the words have a typing error in one of three, and are in lower case in one of two. The answer,
its cells and the aggregation stay. Questions whose answer is a header are left out. The same flags
give the same file.
"""

import json
import pathlib
import random

from absl import flags

from experiments import program
from mate_tf.reading.text_files import read_json_values

_INPUT = flags.DEFINE_string("input_file", None, "JSON Lines of questions", required=True)
_OUTPUT = flags.DEFINE_string("output_file", None, "file to write", required=True)
_SHARE = flags.DEFINE_float("share", 0.3, "share of the questions that are reworded", 0.0, 1.0)
_SEED = flags.DEFINE_integer("seed", 0, "all draws follow from it and the question's id")


def main(_) -> None:
    from experiments.synthesis.rewording import mistyped, other_header

    output = pathlib.Path(_OUTPUT.value)
    output.parent.mkdir(parents=True, exist_ok=True)
    number = 0
    with output.open("w", encoding="utf-8") as written:
        for _, question in read_json_values(_INPUT.value):
            rng = random.Random(f"{_SEED.value}/{question['id']}")
            if rng.random() >= _SHARE.value or question.get("aggregation") == "HEADER":
                continue
            question["table"]["header"] = other_header(question["table"]["header"], rng)
            text = question["question"]
            text = mistyped(text, rng) if rng.random() < 1 / 3 else text
            question["question"] = text.lower() if rng.random() < 0.5 else text
            question["id"] = f"reworded-{question['id']}"
            written.write(json.dumps(question, ensure_ascii=False) + "\n")
            number += 1
    print(f"{output}: {number} questions")


if __name__ == "__main__":
    program.run(main)
