"""Compares the answers of an exported model's signatures with those of the library.

    python -m experiments.benchmarks.compare_signatures --model=out/wtq_model
    --data=out/wtq/dev.jsonl

Every question of the file is answered by the library (`from_pretrained`), and from what each
signature of the folder returns: `serving_default` on serialized examples and `features` on token
features, both made and read as the library does, and `tables` on raw text, which reads the answer
itself. It prints for each how many answers are the same: text, aggregation and cells, or the class.
A question that both refuse, as one whose table is too long, counts as the same. Of each other one
it prints both answers, and of `tables` the features that the graph makes in another way. With
--server a server is asked too, over HTTP.
"""

import pathlib
from collections import Counter

from absl import flags

from experiments import program
from experiments.benchmarks.signature_answers import (
    Folder,
    different_features,
    library_answers,
    server_answers,
    signature_answers,
)
from mate_tf.command_line import arguments

_QUESTIONS = program.define_flags(arguments.add_questions)
_MODEL = flags.DEFINE_string("model", None, "folder of experiments/export.py", required=True)
_BATCH_TOKENS = flags.DEFINE_integer(
    "batch_tokens", 4096, "tokens, padding included, in a batch", lower_bound=1
)
_SERVER = flags.DEFINE_string(
    "server",
    None,
    "also ask a server of the same model (experiments/serve.py), by the URL of its predictions, "
    "such as http://127.0.0.1:8080/v1/models/wtq_model:predict",
)
_SIGNATURES = ("tables", "features", "serving_default")


def main(_) -> None:
    directory = pathlib.Path(_MODEL.value)
    folder = Folder(directory)
    pairs = arguments.read_asked(_QUESTIONS()).pairs
    expected = list(library_answers(directory, pairs))
    num_refused = sum(answer.is_refused for answer in expected)
    print(f"library: {len(expected)} questions, {num_refused} refused", flush=True)
    for name in (*_SIGNATURES, *(["server"] if _SERVER.value else [])):
        if name == "server":
            answers = server_answers(_SERVER.value, pairs)
        elif name in folder.signatures:
            answers = signature_answers(folder, name, pairs, _BATCH_TOKENS.value)
        else:
            print(f"{name}: the model has no such signature")
            continue
        different, reasons = [], Counter[str]()
        for (table, question), ours, theirs in zip(pairs, expected, answers, strict=True):
            if ours == theirs or (ours.is_refused and theirs.is_refused):
                continue
            why = []
            if name == "tables" and not (ours.is_refused or theirs.is_refused):
                why = different_features(folder, table, question)
            reason = ", ".join(why) or "rounding"
            reasons[reason] += 1
            different.append(
                f"  {question.question_id}: {ours.text!r} ({ours.aggregation}) of the library, "
                f"{theirs.text!r} ({theirs.aggregation}); {reason}"
            )
        same = len(pairs) - len(different)
        print(f"{name}: {same} of {len(pairs)} the same, {100 * same / len(pairs):.2f} %")
        for line in different:
            print(line)
        for reason, count in reasons.most_common():
            print(f"  {count} differ in {reason}", flush=True)


if __name__ == "__main__":
    program.run(main)
