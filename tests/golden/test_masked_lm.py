"""The golden pre-training examples: every feature of every one of them is compared exactly."""

import re

from mate_tf.features.config import MaskedLmConfig
from mate_tf.features.masked_lm import MaskedLmBuilder, example_rng
from mate_tf.features.wordpiece import Wordpiece
from tests.golden.interactions import (
    MASKED_LM,
    compare_examples,
    each_conversion,
    load,
    to_table,
)

# The original's program creates these by its flags' defaults, which are those of the other files.
BEAM = "pretrain (create_pretrain_examples_main"
BEAM_DEFAULTS_OF = "pretrain_128"
# The original's options by our names.
OPTIONS = {
    **{name: name for name in "max_seq_length max_column_id max_row_id strip_column_names".split()},
    "max_predictions_per_seq": "max_predictions",
    "masked_lm_prob": "masking_probability",
    "min_question_length": "min_text_length",
    "max_question_length": "max_text_length",
    "concatenate_snippets": "join_texts",  # by default, which is the same
    "always_continue_cells": "whole_cells",
}


def to_config(options):
    differing = options.keys() ^ OPTIONS.keys()
    assert differing <= {"concatenate_snippets", "random_seed", "vocab_file"}, options
    values = {name: options[theirs] for theirs, name in OPTIONS.items() if theirs in options}
    return MaskedLmConfig(**values, original_conversion=True)


def convert(builder, interaction, seed, negatives):
    table = to_table(interaction["table"])
    texts = [question["original_text"] for question in interaction["questions"]]
    for number, negative in enumerate(negatives):
        key = f"{interaction['id']}_{number}"
        rng = example_rng(key, seed, builder.config.max_seq_length)
        yield builder.build(table, texts, rng, negative)


@each_conversion(MASKED_LM)
def test_examples_equal_the_originals(conversion):
    if conversion.entry["kind"].startswith(BEAM):
        check_pipeline(conversion)
        return
    options = conversion.entry["config"]
    names = (f"{conversion.name}.json.gz", f"{conversion.source}.json.gz", options["vocab_file"])
    example_file, interaction_file, vocab_file = conversion.require(*names)
    examples = load(example_file)["examples"]
    interactions = {interaction["id"]: interaction for interaction in load(interaction_file)}
    builder = MaskedLmBuilder(Wordpiece(vocab_file), to_config(options))
    negatives = {}
    for example in examples:
        negative = example["random_table"]  # an interaction's id
        of_interaction = negatives.setdefault(example["interaction_id"], [])
        assert example["key"] == f"{example['interaction_id']}_{len(of_interaction)}"
        of_interaction.append(
            None if negative is None else to_table(interactions[negative]["table"])
        )
    actual = [
        example
        for key, of_interaction in negatives.items()
        for example in convert(builder, interactions[key], options["random_seed"], of_interaction)
    ]
    compare_examples(conversion.name, actual, [example["features"] for example in examples])


def check_pipeline(conversion) -> None:
    """The examples of the original's program, which are in no order."""
    index = conversion.golden.load_index(conversion.part)
    entry, options = conversion.entry, index[BEAM_DEFAULTS_OF]["config"]
    assert entry["config"]["max_seq_length"] == options["max_seq_length"]
    names = (
        f"{conversion.name}.json.gz",
        entry["source"],
        f"{index[BEAM_DEFAULTS_OF]['source']}.json.gz",
        options["vocab_file"],
    )
    example_file, input_file, interaction_file, vocab_file = conversion.require(*names)
    text = input_file.read_text(encoding="utf-8")
    interactions = {interaction["id"]: interaction for interaction in load(interaction_file)}
    builder = MaskedLmBuilder(Wordpiece(vocab_file), to_config(options))
    negatives = [None] * entry["config"]["dupe_factor"]
    actual = [
        example
        for key in re.findall(r'^id: "([^"]*)"', text, re.MULTILINE)
        for example in convert(builder, interactions[key], options["random_seed"], negatives)
    ]
    expected = [example["features"] for example in load(example_file)["examples"]]
    actual.sort(key=lambda example: list(example["input_ids"]))
    expected.sort(key=lambda example: example["input_ids"]["values"])
    compare_examples(conversion.name, actual, expected)
