"""The whole way, from raw tables to answers, on tables written for it.

    make demo            (or: python -m experiments.demo)

Each step is one of the other binaries, run as you would run it: learn a vocabulary, turn tables
and questions into records, fine-tune a small model from random weights, export it, score it on the
questions it was trained on and on others, and ask it questions in a new process. One table is
longer than 2,048 tokens; no row of it is dropped. At the end the model that comes with the package,
which has never seen these tables, answers all of the questions too.
"""

import json
import pathlib
import shutil
import subprocess
import sys
import time

from absl import flags

from experiments import program

_OUTPUT_DIR = flags.DEFINE_string("output_dir", "out/demo", "folder to work in; emptied first")
DATA = pathlib.Path(__file__).parent / "demo_data"
LONG_TABLE = "elements.csv"
MAX_SEQ_LENGTH = 4096
VOCABULARY_SIZE = 2000
# From the dev split, so none was trained on; the first and the last are about the long table.
QUESTIONS_SHOWN = 4


def learn_vocabulary(path: pathlib.Path) -> int:
    """Writes a wordpiece vocabulary of the demo's texts, and returns its size."""
    import tensorflow as tf
    from tensorflow_text.tools.wordpiece_vocab import bert_vocab_from_dataset

    files = [*sorted(DATA.glob("*.csv")), DATA / "train.jsonl"]
    texts = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    pieces = bert_vocab_from_dataset.bert_vocab_from_dataset(
        tf.data.Dataset.from_tensor_slices(texts).batch(1000),
        vocab_size=VOCABULARY_SIZE,
        reserved_tokens=["[PAD]", "[EMPTY]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"],
        bert_tokenizer_params={"lower_case": True},
        # The texts are few: a word is worth a piece of its own from its second appearance on.
        learn_params={"lower_thresh": 2},
    )
    path.write_text("".join(f"{piece}\n" for piece in pieces), encoding="utf-8")
    return len(pieces)


def run(module: str, *arguments: str) -> str:
    """Runs a binary in a new process, shows its command and what it prints, and returns that."""
    print(f"\n$ python -m {module} {' '.join(arguments)}", flush=True)
    command = [sys.executable, "-m", module, *arguments]
    process = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    print(process.stdout, end="", flush=True)
    if process.returncode:
        raise ValueError(f"{module} ended with {process.returncode}; its message is above")
    return process.stdout


def long_table_questions(path: pathlib.Path) -> pathlib.Path:
    """Writes the training questions about the long table to a file of their own."""
    lines = (DATA / "train.jsonl").read_text(encoding="utf-8").splitlines()
    records = [record for record in map(json.loads, lines) if record["table"] == LONG_TABLE]
    moved = {"table": str((DATA / LONG_TABLE).resolve())}
    texts = (json.dumps(record | moved) for record in records)
    path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return path


def accuracy(data: pathlib.Path, *model: str) -> float:
    """The share of a file's questions that a model answers; the default one without --model."""
    predictions = data.with_name(f"{data.stem}_predictions{'' if model else '_default'}.jsonl")
    files = f"--data={data}", f"--predictions={predictions}"
    run("mate_tf", "predict", *model, files[0], f"--output={predictions}")
    scores = json.loads(run("mate_tf", "evaluate", *files, "--json"))["scores"]
    return scores["denotation_accuracy"]


def ask_some(*model: str) -> None:
    """Asks questions of the command line; the default model without --model."""
    records = [json.loads(line) for line in (DATA / "dev.jsonl").open(encoding="utf-8")]
    long = [record for record in records if record["table"] == LONG_TABLE]
    others = [record for record in records if record["table"] != LONG_TABLE]
    step = max(1, len(others) // (QUESTIONS_SHOWN - 2))
    for record in [long[0], *others[::step][: QUESTIONS_SHOWN - 2], long[-1]]:
        run("mate_tf", "ask", str(DATA / record["table"]), record["question"], *model)
        print(f"(gold: {', '.join(record['answers'])})")


def main(_) -> int:
    began = time.monotonic()
    out = pathlib.Path(_OUTPUT_DIR.value)
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    print(f"learned a vocabulary of {learn_vocabulary(out / 'vocab.txt')} wordpieces")
    data, run_dir, model = (out / name for name in ("data", "run", "saved_model"))
    run(
        "experiments.create_data",
        *("--task=JSONL", f"--input_dir={DATA}", f"--output_dir={data}"),
        *(f"--vocab_file={out / 'vocab.txt'}", f"--max_seq_length={MAX_SEQ_LENGTH}"),
    )
    folders = f"--data_dir={data}", f"--model_dir={run_dir}"
    run("experiments.finetune", "--config=demo", *folders)
    run("mate_tf", "export", f"--model-dir={run_dir}", f"--output-dir={model}")
    learned_by, train, dev = f"--model={model}", data / "train.jsonl", data / "dev.jsonl"
    on_long = long_table_questions(out / "long.jsonl")
    scores = {
        "training questions": accuracy(train, learned_by),
        "of them, on the long table": accuracy(on_long, learned_by),
        "questions it was not trained on": accuracy(dev, learned_by),
        "the default model, on the first": accuracy(train),
        "the default model, on the last": accuracy(dev),
    }
    ask_some(learned_by)
    ask_some()
    print(f"\nanswered right, after {time.monotonic() - began:.0f} s in all:")
    for name, score in scores.items():
        print(f"  {name:<32} {score:6.1%}")
    learned = scores["training questions"] >= 0.9 and scores["of them, on the long table"] >= 0.9
    print("demo passed" if learned else "demo FAILED: expected 90 % of the training questions")
    return 0 if learned else 1


if __name__ == "__main__":
    program.run(main)
