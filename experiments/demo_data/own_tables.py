"""Trains on questions in words of a trade, and counts what is right before and after.

    python -m experiments.demo_data.own_tables --output_dir=out/own_tables

For each folder of experiments/demo_data/trades and each seed it runs the three commands of README,
`mate-tf data`, `train` and `export`, each with its defaults. It asks the model of the package and
the exported one the 45 questions that were trained on, the 15 that were kept back, and 24 about
other tables, and writes a table of how many each got right.
"""

import pathlib
import subprocess
import sys
from collections.abc import Iterator

from absl import app, flags

TRADES = pathlib.Path(__file__).parent / "trades"
_OUTPUT_DIR = flags.DEFINE_string("output_dir", None, "folder to write to", required=True)
_TRADES = flags.DEFINE_list("trades", ["walling", "lace"], "folders of trades")
_SEEDS = flags.DEFINE_list("seeds", ["1", "2", "3"], "seeds of the training")


def files(trade: str) -> list[pathlib.Path]:
    """The questions that are trained on, that are kept back, and that are about other tables."""
    return [TRADES / trade / "train.jsonl", TRADES / trade / "kept.jsonl", TRADES / "others.jsonl"]


def trained(trade: str, seed: str, folder: pathlib.Path) -> pathlib.Path:
    """The exported model of a trade and a seed; the log of its training is beside it."""
    records, run, model = folder / "records", folder / "run", folder / "model"
    commands = {
        "data": [f"--input-dir={TRADES / trade}", f"--output-dir={records}"],
        "train": [f"--data-dir={records}", f"--model-dir={run}", f"--config.seed={seed}"],
        "export": [f"--model-dir={run}", f"--output-dir={model}"],
    }
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "log.txt").open("w") as log:
        for command, options in commands.items():
            program = [sys.executable, "-m", "mate_tf", command, *options]
            subprocess.run(program, stdout=log, stderr=subprocess.STDOUT, check=True)
    return model


def scores(model: pathlib.Path | None, trade: str) -> Iterator[str]:
    """How many of each file a model gets right, and how far its scores are from that."""
    from mate_tf.answers.answer import Answer
    from mate_tf.evaluation.predictions import read_asked
    from mate_tf.evaluation.scoring import expected_calibration_error, is_correct
    from mate_tf.serving.loading import from_pretrained

    predictor = from_pretrained(model) if model else from_pretrained()
    held_out = list[tuple[float, bool]]()
    for number, path in enumerate(files(trade)):
        answered = [
            (Answer.of(answer), question)
            for _, question, answer in predictor.answer_all(read_asked(path, "JSONL").pairs)
        ]
        right = [is_correct("JSONL", answer, question) for answer, question in answered]
        yield f"{sum(right)} of {len(right)}"
        if number:
            held_out += zip((answer.score for answer, _ in answered), right, strict=True)
    answer_scores, right = [score for score, _ in held_out], [is_right for _, is_right in held_out]
    yield f"{expected_calibration_error(answer_scores, right):.2f}"


def main(_: list[str]) -> None:
    print("| trade | seed | trained on | kept back | other tables | calibration error |")
    print("|---|---|---|---|---|---|", flush=True)
    for trade in _TRADES.value:
        print(f"| {trade} | before | {' | '.join(scores(None, trade))} |", flush=True)
        for seed in _SEEDS.value:
            model = trained(trade, seed, pathlib.Path(_OUTPUT_DIR.value, trade, seed))
            print(f"| {trade} | {seed} | {' | '.join(scores(model, trade))} |", flush=True)


if __name__ == "__main__":
    app.run(main)
