import gzip
import itertools
import re

import numpy as np
import pytest
import tensorflow as tf

from mate_tf.features.builder import FeatureBuilder
from mate_tf.features.config import FeatureConfig
from mate_tf.records.batches import batch_by_length, bucket_length, read_records, training_batches
from mate_tf.records.records import check_records, serialize_example
from mate_tf.tables.table import Question, Table
from tests.small import assert_same_features, cases, write_records

LENGTH = 32
TABLE = Table.from_rows([["a", "b"], ["1", "2"]])


@pytest.fixture(scope="module")
def examples(wordpiece):
    """Examples of 9 to 28 tokens, named by their place."""
    builder = FeatureBuilder(wordpiece, FeatureConfig(max_seq_length=LENGTH))
    asked = [(f"q{n}", "a " * (1 + 7 * n % 20)) for n in range(20)]
    questions = [Question(text, name, answer_coordinates=((0, 1),)) for name, text in asked]
    return [builder.build(TABLE, question).features for question in questions]


@pytest.fixture
def file(tmp_path, examples):
    path = tmp_path / "train.tfrecord"
    write_records(path, examples)
    return path


def names(batches) -> list[list[str]]:
    return [[name.decode() for name in batch["question_id"][:, 0].numpy()] for batch in batches]


@pytest.mark.parametrize("compression", ["GZIP", "ZLIB", ""])
def test_examples_are_read_as_they_were_written(tmp_path, examples, compression):
    path = tmp_path / "folder" / "some.tfrecord"
    assert write_records(path, iter(examples), compression) == len(examples)
    for skip in (False, True):
        read = read_records(path, skip_corrupt=skip).as_numpy_iterator()
        for actual, expected in zip(read, examples, strict=True):
            assert_same_features(actual, expected)
        assert check_records(path, skip_corrupt=skip) == len(examples)
    assert [child.name for child in path.parent.iterdir()] == [path.name]


def test_features_may_lack_unknown_ones_are_left_out_and_several_files_are_read(tmp_path, examples):
    features = {**examples[0], "of_another_program": np.arange(5)}
    del features["column_ranks"]
    write_records(tmp_path / "x", [features])
    (read,) = read_records(tmp_path / "x").as_numpy_iterator()
    assert not read["column_ranks"].any() and len(read["column_ranks"]) == LENGTH
    assert set(read) == set(examples[0])
    write_records(tmp_path / "1", examples[:5])
    write_records(tmp_path / "2", examples[5:], compression="")
    read = read_records([tmp_path / "1", tmp_path / "2"])
    assert [n[0] for n in names(read.batch(1))] == [f"q{n}" for n in range(20)]


def shortened(features):
    return {name: v[:24] if len(v) == LENGTH else v for name, v in features.items()}


def with_rows(change):
    return lambda features: {**features, "row_ids": change(features["row_ids"])}


def without(name):
    return lambda features: {key: v for key, v in features.items() if key != name}


@cases(
    "change, error",
    (shortened, "expected .* of length 32, as in .*good, got length 24 .*bad"),
    (without("answer"), r"expected the features of .*good, got others: \['answer'\] .*bad"),
    (without("row_ids"), r"expected the features \['row_ids'\], got none .*bad"),
    (with_rows(lambda ids: ids[:-1]), "32 row_ids, as many as input_ids, got 31 .*bad"),
    (with_rows(np.float32), "expected row_ids as int64, got float_list .*bad"),
)
def test_files_that_differ_are_named_with_the_difference(tmp_path, examples, change, error):
    write_records(tmp_path / "good", examples[:2])
    write_records(tmp_path / "bad", [change(examples[0])])
    with pytest.raises(ValueError, match=error):
        read_records([tmp_path / "good", tmp_path / "bad"])
    write_records(tmp_path / "late_bad", [examples[0], change(examples[0])])
    with pytest.raises(ValueError, match="late_bad, record 1"):
        check_records(tmp_path / "late_bad")


@cases(
    "content",
    b"question\ttable\nwhat?\tt1\n",
    b"\x1f\x8b\x08 no gzip in truth",
    gzip.compress(b"no records inside", mtime=0),
    b"\x78\x9cno zlib in truth",
    ids=["text", "no gzip", "gzip of no records", "no zlib"],
)
def test_a_file_that_is_no_record_file_is_named(tmp_path, content):
    path = tmp_path / "other.tfrecord"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"expected a TFRecord file of examples, got .*other") as e:
        read_records(path)
    assert "\n" not in str(e.value)


def record_sizes(examples) -> list[int]:
    """Bytes that each takes in a file: eight and four before it, four behind it."""
    return [len(serialize_example(features)) + 16 for features in examples]


CONTENTS = {"content": [7], "contents": [7, 8, 12, 19]}  # the records whose content is damaged
NUMBER = 7  # of the first record that is damaged


def damaged(tmp_path, examples, name: str):
    """A file of 20 records, the byte that the damage begins at, and how many can be read."""
    path = tmp_path / "train.tfrecord"
    write_records(path, examples, "")
    content, sizes = bytearray(path.read_bytes()), record_sizes(examples)
    begin = sum(sizes[:NUMBER])
    if name == "cut short":
        del content[begin + 40 :]
    for other in CONTENTS.get(name, [NUMBER] if name != "cut short" else []):
        content[sum(sizes[:other]) + {"length": 2, "its checksum": 9}.get(name, 30)] ^= 255
    path.write_bytes(content)
    return path, begin, 20 - len(CONTENTS[name]) if name in CONTENTS else NUMBER


@pytest.mark.parametrize("token", ["question", "header", "padding"])
def test_a_label_outside_of_the_table_is_named_with_its_question(tmp_path, examples, token):
    example = dict(examples[3])
    places = {
        "question": example["segment_ids"] == 0,
        "header": (example["column_ids"] > 0) & (example["row_ids"] == 0),
        "padding": example["input_mask"] == 0,
    }
    place = np.flatnonzero(places[token])[0]
    example["label_ids"] = np.where(np.arange(LENGTH) == place, 1, example["label_ids"])
    path = tmp_path / "train.tfrecord"
    write_records(path, [*examples[:3], example])
    where = r"\(question 'q3', .*, record 3"
    message = f"table's body, got one on token {place}, whose row_ids is 0 {where}"
    with pytest.raises(ValueError, match=message):
        check_records(path)


@pytest.mark.parametrize("name", [*CONTENTS, "length", "its checksum", "cut short"])
def test_damage_is_named_with_its_place_or_skipped_and_counted(tmp_path, examples, name, caplog):
    path, begin, readable = damaged(tmp_path, examples, name)
    place = rf"expected a TFRecord file of examples, got .*train.*record {NUMBER}, byte {begin}"
    with pytest.raises(ValueError, match=place):
        check_records(path)
    with caplog.at_level("WARNING"):
        assert check_records(path, skip_corrupt=True) == readable
    (message,) = (record.getMessage() for record in caplog.records if "read" in record.msg)
    assert f"{len(CONTENTS.get(name, []))} records skipped in {path}" in message
    assert f"record {NUMBER}, byte {begin}" in message
    assert f"{readable} were read" in message
    assert (f"from byte {begin} on is lost" in message) == (name not in CONTENTS)
    kept = [n for n in range(20) if n not in CONTENTS.get(name, [NUMBER])][:readable]
    assert names(read_records(path, skip_corrupt=True).batch(1)) == [[f"q{n}"] for n in kept]


@pytest.mark.parametrize("compression", ["GZIP", "ZLIB"])
def test_a_compressed_file_is_read_to_wherever_it_is_cut(tmp_path, examples, compression):
    path, whole = tmp_path / "train.tfrecord", tmp_path / "whole.tfrecord"
    many = examples * 8
    write_records(whole, many, compression)
    content, sizes = whole.read_bytes(), record_sizes(many)
    found = set()
    for length in [0, 1, 5, 12, *range(20, len(content), len(content) // 20), len(content) - 2000]:
        path.write_bytes(content[:length])
        with pytest.raises(ValueError, match=r"train.tfrecord.*record \d+, byte \d+") as error:
            check_records([whole, path])
        number, begin = map(int, re.findall(r"record (\d+), byte (\d+)", str(error.value))[0])
        assert begin == sum(sizes[:number])
        found.add(number)
    assert "unpacked" in str(error.value)
    assert 0 < number == check_records(path, skip_corrupt=True) < len(many)
    assert len(found) > 8


def test_what_is_no_example_is_skipped_and_counted(tmp_path, examples, caplog):
    path = tmp_path / "train.tfrecord"
    with tf.io.TFRecordWriter(str(path)) as writer:
        for record in (serialize_example(examples[0]), b"\xff", serialize_example(examples[1])):
            writer.write(record)
    with pytest.raises(ValueError, match=r"train.*record 1, byte \d+"):
        check_records(path)
    with caplog.at_level("WARNING"):
        assert check_records(path, skip_corrupt=True) == 2
    assert "1 records skipped" in caplog.text and "2 were read" in caplog.text
    assert names(read_records(path, skip_corrupt=True).batch(2)) == [["q0", "q1"]]


def test_training_skips_damage_and_still_resumes_exactly(tmp_path, examples):
    path, *_ = damaged(tmp_path, examples, "content")
    batches = first(path, 20, skip_corrupt=True)
    assert batches[9:] == first(path, 11, skip=9, skip_corrupt=True)
    assert {name for batch in batches for name in batch} == {f"q{n}" for n in range(20)} - {"q7"}


def test_files_without_examples_and_no_files_are_refused(tmp_path):
    write_records(tmp_path / "empty", [])
    (tmp_path / "short").write_bytes(b"short")
    cut = "expected a TFRecord file of examples, got .*short: the file is cut short"
    for files, message in (
        ([tmp_path / "empty"] * 2, "expected examples in .*empty, got none"),
        (tmp_path / "short", cut),
        ([], "at least one record file, got none"),
    ):
        with pytest.raises(ValueError, match=message):
            read_records(files)
    for path in (tmp_path / "absent", tmp_path):
        with pytest.raises(FileNotFoundError, match=f"expected a record file at {path}"):
            read_records(path)


@pytest.mark.parametrize("remainder", ["keep", "repeat"])
def test_batches_hold_examples_of_like_length_and_are_trimmed(file, examples, remainder):
    lengths = {e["question_id"][0].decode(): int(e["input_mask"].sum()) for e in examples}
    batches = list(batch_by_length(read_records(file), 3, (12, 20, 99), remainder))
    seen = []
    for batch, batch_names in zip(batches, names(batches), strict=True):
        limit = batch["input_ids"].shape[1]
        below = {12: 0, 20: 12, 32: 20}[limit]
        assert all(below < lengths[name] <= limit for name in batch_names)
        for name in ("label_ids", "numeric_values"):
            assert batch[name].shape == (len(batch_names), limit)
        assert batch["question_id_ints"].shape == (len(batch_names), 64)
        assert remainder == "keep" or len(batch_names) == 3
        seen += batch_names
    assert set(seen) == set(lengths)
    assert remainder == "repeat" or len(seen) == len(lengths)


def test_batches_have_as_many_shapes_as_boundaries_and_one_is_static(file):
    batches = batch_by_length(read_records(file), 4, (12, 20), "repeat")
    assert {tuple(batch["input_ids"].shape) for batch in batches} == {(4, 12), (4, 20), (4, 32)}
    assert batches.element_spec["input_ids"].shape.as_list() == [4, None]
    one_length = batch_by_length(read_records(file), 4, (), "repeat").element_spec
    assert one_length["input_ids"].shape == (4, LENGTH)
    training = [training_batches(file, 4, 1, (), perturbed_copies=c).element_spec for c in (0, 2)]
    for specs in (one_length, *training):
        assert all(spec.shape.is_fully_defined() for spec in specs.values())


def test_the_default_length_of_a_batch_is_a_power_of_two_and_sizes_are_positive(file):
    for num_tokens, length in ((1, 64), (64, 64), (65, 128), (129, 200), (200, 200)):
        assert bucket_length(num_tokens, 200) == length
    for batch_size, boundaries in ((0, None), (2, (0, 8))):
        with pytest.raises(ValueError, match=r"expected .*positive"):
            batch_by_length(read_records(file), batch_size, boundaries)


def first(file, count, seed=5, **options):
    """The names in the first batches of training."""
    batches = training_batches(file, 3, seed=seed, boundaries=(12, 20), **options)
    return names(itertools.islice(batches, count))


@pytest.mark.parametrize("skip", [0, 1, 7, 8, 20])
def test_training_goes_on_after_any_number_of_batches_as_if_not_interrupted(file, skip):
    assert first(file, 5, skip=skip) == first(file, skip + 5)[skip:]


def test_the_order_of_training_follows_from_its_seed_alone_and_each_epoch_is_whole(file):
    orders = []
    for global_seed in (0, 7):
        tf.random.set_seed(global_seed)
        orders.append(first(file, 6))
    assert orders[0] == orders[1] != first(file, 6, seed=6)
    batches = names(itertools.islice(training_batches(file, 32, seed=5, boundaries=(12, 20)), 6))
    for epoch in (batches[:3], batches[3:]):
        assert len({name for batch in epoch for name in batch}) == 20
    assert batches[:3] != batches[3:]
