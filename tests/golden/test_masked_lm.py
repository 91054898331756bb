"""The golden pre-training examples: every feature of every one of them is compared exactly."""

import re

import pytest

from mate_tf.features.config import MaskedLmConfig
from mate_tf.features.masked_lm import MaskedLmBuilder, example_rng
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.records.batches import read_records
from mate_tf.records.records import write_records
from tests.golden.interactions import compare_examples, load, to_table

SYNTHETIC = ("pretrain_128", "pretrain_128_nocontinue", "pretrain_512_noconcat")
REAL = ("wtq_pretrain_128", "wtq_pretrain_512_p80")
BEAM = "pretrain_beam_128"
# The original's program creates these by its flags' defaults, which are those of the other files.
BEAM_DEFAULTS_OF = "pretrain_128"


def folder(name, golden, golden_real):
    """The golden folder of a file, its path there without suffix, and its entry in the index."""
    if name in REAL:
        source, path, part, key = golden_real, name, "", f"public/{name}"
    else:
        source, path, part, key = golden, f"data/{name}", "data", name
    source.require(f"{path}.json.gz")
    return source, path, source.load_index(part)[key]


def to_config(options):
    return MaskedLmConfig(
        max_seq_length=options["max_seq_length"],
        max_predictions=options["max_predictions_per_seq"],
        masking_probability=options["masked_lm_prob"],
        min_text_length=options["min_question_length"],
        max_text_length=options["max_question_length"],
        join_texts=options.get("concatenate_snippets", True),
        whole_cells=options["always_continue_cells"],
        strip_column_names=options["strip_column_names"],
        max_column_id=options["max_column_id"],
        max_row_id=options["max_row_id"],
        original_conversion=True,
    )


def convert(builder, interaction, seed, negatives):
    table = to_table(interaction["table"])
    texts = [question["original_text"] for question in interaction["questions"]]
    for number, negative in enumerate(negatives):
        key = f"{interaction['id']}_{number}"
        rng = example_rng(key, seed, builder.config.max_seq_length)
        yield builder.build(table, texts, rng, negative)


def check_same(source, name, actual, expected):
    assert [sorted(example) for example in actual] == [sorted(example) for example in expected]
    compare_examples(source, name, actual, expected)


@pytest.mark.parametrize("name", SYNTHETIC + REAL)
def test_examples_equal_the_originals(golden, golden_real, name):
    source, path, entry = folder(name, golden, golden_real)
    options = entry["config"]
    directory = path.removesuffix(name)
    example_file, interaction_file, vocab_file = source.require(
        f"{path}.json.gz",
        f"{directory}{entry['source']}.json.gz",
        f"{directory}{options['vocab_file']}",
    )
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
    check_same(source, name, actual, [example["features"] for example in examples])


def test_examples_equal_those_of_the_originals_pipeline(golden):
    golden.require(f"data/{BEAM}.json.gz")
    index = golden.load_index("data")
    entry, options = index[BEAM], index[BEAM_DEFAULTS_OF]["config"]
    assert entry["config"]["max_seq_length"] == options["max_seq_length"]
    example_file, input_file, interaction_file, vocab_file = golden.require(
        f"data/{BEAM}.json.gz",
        f"data/{entry['source']}",
        f"data/{index[BEAM_DEFAULTS_OF]['source']}.json.gz",
        f"data/{options['vocab_file']}",
    )
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
    # The pipeline's order is not defined.
    actual.sort(key=lambda example: list(example["input_ids"]))
    expected.sort(key=lambda example: example["input_ids"]["values"])
    check_same(golden, BEAM, actual, expected)


@pytest.mark.parametrize("name", (*SYNTHETIC, *REAL, BEAM))
def test_records_of_the_original_are_read_and_written_again(golden, golden_real, name, tmp_path):
    source, path, _ = folder(name, golden, golden_real)
    example_file, record_file = source.require(f"{path}.json.gz", f"{path}.tfrecord")
    expected = [example["features"] for example in load(example_file)["examples"]]
    read = list(read_records(record_file).as_numpy_iterator())
    check_same(source, f"{name} read", read, expected)
    written = tmp_path / "again.tfrecord"
    assert write_records(written, read) == len(expected)
    again = list(read_records(written).as_numpy_iterator())
    check_same(source, f"{name} written", again, expected)
