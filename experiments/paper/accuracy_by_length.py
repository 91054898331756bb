"""Compares how many questions several models answer right, by the length of the tables.

    mate-tf predict --model=MODEL --data=out/wtq/dev.jsonl --output=whole.jsonl
    mate-tf predict --model=MODEL --data=out/wtq/dev.jsonl --output=cut.jsonl \\
        --max-tokens=512 --drop-rows-to-fit
    python -m experiments.paper.accuracy_by_length --data=out/wtq/dev.jsonl \\
        --vocab_file=minilm/vocab.txt --predictions=whole=whole.jsonl,cut=cut.jsonl

A question's length is the number of its tokens and of all of its table's tokens, before anything is
left out. For each class of lengths the program prints the number of questions, and how many of them
each file answers right by the task's main score (mate-tf evaluate). For each file after the
first it also prints how many questions it gains and loses against the first.
"""

import bisect
import functools
import itertools

from absl import flags

from experiments import program
from experiments.paper.comparison_results import read_verdicts
from mate_tf.command_line import arguments

_QUESTIONS = program.define_flags(arguments.add_questions)
_PREDICTIONS = flags.DEFINE_list(
    "predictions", None, "NAME=FILE of mate-tf predict, one or more", required=True
)
_VOCAB = flags.DEFINE_string("vocab_file", None, "BERT's or TAPAS's vocabulary", required=True)
_LENGTHS = flags.DEFINE_list("lengths", ["512", "2048"], "where a class of lengths ends, ascending")


def token_counts(pairs) -> list[int]:
    """The tokens of each question with its whole table, special tokens included."""
    from mate_tf.features.wordpiece import Wordpiece

    wordpiece = Wordpiece(_VOCAB.value)

    @functools.cache
    def table_size(table) -> int:
        cells = [cell for row in (table.header, *table.expanded_rows) for cell in row]
        return int(wordpiece.ids_and_lengths(cells)[1].sum())

    tables, questions = zip(*pairs, strict=True)
    lengths = wordpiece.ids_and_lengths([question.text for question in questions])[1]
    return [table_size(table) + int(own) + 2 for table, own in zip(tables, lengths, strict=True)]


def class_names(bounds: list[int]) -> list[str]:
    """The names of the classes of lengths."""
    named = [f"up to {bounds[0]:,}"]
    named += [f"{low + 1:,} to {high:,}" for low, high in itertools.pairwise(bounds)]
    return [*named, f"beyond {bounds[-1]:,}"]


def main(_) -> None:
    try:
        bounds = [int(bound) for bound in _LENGTHS.value]
    except ValueError:
        bounds = []
    if not bounds or sorted(set(bounds)) != bounds or bounds[0] < 1:
        raise ValueError(f"expected ascending numbers as --lengths, got {_LENGTHS.value}")
    asked = arguments.read_asked(_QUESTIONS())
    right = read_verdicts(_PREDICTIONS.value, asked, [question for _, question in asked.pairs])
    classes = [bisect.bisect_left(bounds, count) for count in token_counts(asked.pairs)]
    first = next(iter(right.values()))
    print(f"| tokens | questions | {' | '.join(right)} |")
    print("|---" * (len(right) + 2) + "|")
    for index, name in enumerate([*class_names(bounds), "all"]):
        members = [i for i, of in enumerate(classes) if of == index or name == "all"]
        cells = []
        for verdicts in right.values():
            count = sum(verdicts[i] for i in members)
            cell = f"{count} ({count / max(len(members), 1):.1%})"
            if verdicts is not first:
                gained = sum(verdicts[i] and not first[i] for i in members)
                lost = sum(first[i] and not verdicts[i] for i in members)
                cell += f", +{gained} -{lost}"
            cells.append(cell)
        print(f"| {name} | {len(members)} | {' | '.join(cells)} |")


if __name__ == "__main__":
    program.run(main)
