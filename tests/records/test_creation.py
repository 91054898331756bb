"""Folders of records: their splits, of however few tables, and what is never left over."""

import dataclasses
import json
import shutil

import pytest

from mate_tf.datasets.json_lines import write_json_lines
from mate_tf.datasets.tasks import Division
from mate_tf.features.config import FeatureConfig, MaskedLmConfig, PretrainingConfig
from mate_tf.records.batches import read_records
from mate_tf.records.conversion_file import read_conversion
from mate_tf.records.creation import Creation, create_pretraining_records, create_records
from mate_tf.records.splits import read_questions
from mate_tf.tables.table import Question, Table
from mate_tf.training.examples import check_classification as check_data
from mate_tf.training.starting_points import fitted
from tests.datasets.releases import RELEASES, write_release
from tests.small import assert_same_files, cases, write_vocabulary

FEATURES = FeatureConfig(max_seq_length=24)
MASKED = PretrainingConfig(MaskedLmConfig(max_seq_length=24, require_text=False), dupe_factor=2)


def creation_of(folder, num_tables, **changes) -> Creation:
    """The creation of records from a training split with two questions about each table."""
    (folder / "in").mkdir(exist_ok=True)
    tables = [Table.from_rows([["a"], ["b"]], table_id=f"t{n // 2}") for n in range(2 * num_tables)]
    asked = (Question("a", f"{table.table_id}-{n % 2}", ("b",)) for n, table in enumerate(tables))
    write_json_lines(folder / "in" / "train.jsonl", zip(tables, asked, strict=True))
    creation = Creation(
        task="JSONL",
        input_dir=str(folder / "in"),
        output_dir=str(folder / "out"),
        vocab_file=str(write_vocabulary(folder / "vocab.txt")),
    )
    return dataclasses.replace(creation, **changes)


def num_examples(folder, split) -> int:
    return sum(1 for _ in read_records(folder / "out" / f"{split}.tfrecord"))


@cases(
    "num_tables, sentence, percentages",
    (2, "1 of 4 questions are kept for dev; a dev.jsonl or --divide", "train=80,dev=20"),
    (9, "4 of 18 questions are kept for dev; a dev.jsonl or --divide", "train=80,dev=20"),
    (10, "the training tables are divided (90 % train, 10 % dev); --divide", "train=90,dev=10"),
)
def test_without_a_dev_split_some_tables_or_questions_become_one(
    tmp_path, num_tables, sentence, percentages
):
    said = list(create_records(creation_of(tmp_path, num_tables), FEATURES))
    assert said[0] == f"no dev split: {sentence} changes that"
    train, dev = (num_examples(tmp_path, split) for split in ("train", "dev"))
    assert train >= dev > 0 and train + dev == 2 * num_tables
    if num_tables < 10:
        assert said[0].startswith(f"no dev split: {dev} of {train + dev} ")
    assert read_conversion(tmp_path / "out").division == f"train:{percentages}"


@pytest.mark.parametrize(("num_tables", "splits"), [(1, None), (3, ["train"])])
def test_two_questions_and_a_choice_of_splits_are_not_divided(tmp_path, num_tables, splits):
    said = list(create_records(creation_of(tmp_path, num_tables, splits=splits), FEATURES))
    too_few = "no dev split: 2 questions are too few to keep some for it"
    assert said[0].startswith("train: 6 of 6 " if splits else too_few)
    assert num_examples(tmp_path, "train") == 2 * num_tables
    assert not (tmp_path / "out" / "dev.tfrecord").exists()


def test_no_file_of_an_earlier_conversion_is_left(tmp_path):
    list(create_records(creation_of(tmp_path, 3), FEATURES))
    shorter = dataclasses.replace(FEATURES, max_seq_length=4)
    with pytest.raises(ValueError, match="expected examples in each split, got none in train, dev"):
        list(create_records(creation_of(tmp_path, 3), shorter))
    assert {file.name for file in (tmp_path / "out").iterdir()} == {"conversion.json", "vocab.txt"}


def test_questions_of_several_folders_are_joined_by_their_splits(tmp_path):
    creation = creation_of(tmp_path, 3)
    for name, split in (("more", "train"), ("more", "dev"), ("others", "rest")):
        table = Table.from_rows([["a"], ["b"]], table_id=name)
        file = tmp_path / name / f"{split}.jsonl"
        file.parent.mkdir(exist_ok=True)
        write_json_lines(file, [(table, Question("a?", f"{name}-{split}", ("b",)))])
    inputs = ",".join(str(tmp_path / name) for name in ("in", "more", "others"))
    said = list(create_records(dataclasses.replace(creation, input_dir=inputs), FEATURES))
    assert [line.split(" ")[0] for line in said] == ["dev:", "rest:", "train:"]
    assert num_examples(tmp_path, "train") == 7 and num_examples(tmp_path, "dev") == 1
    with pytest.raises(ValueError, match="expected another folder than the input's, got "):
        dataclasses.replace(creation, input_dir=inputs, output_dir=str(tmp_path / "more"))


@pytest.mark.parametrize("num_tables", [2, 3])
def test_few_tables_are_divided_to_pre_train_on_them_too(tmp_path, num_tables):
    said = list(create_pretraining_records(creation_of(tmp_path, num_tables), MASKED))
    assert said[0].startswith("no dev split: the training tables are divided (95 % train, 5 % dev)")
    assert num_examples(tmp_path, "train_24") == 2 * num_tables - 2
    assert num_examples(tmp_path, "dev_24") == 2


@pytest.mark.parametrize("changes", [{}, {"num_shards": 2}])
def test_all_questions_left_out_are_named_with_a_remedy(tmp_path, changes):
    creation = creation_of(tmp_path, 3, splits=["train"], **changes)
    table = Table.from_rows([["a"], ["$5.00"]], table_id="t")
    asked = [Question("a", f"q{n}", (answer,)) for n, answer in enumerate(["5 $", *"xxxxx"])]
    write_json_lines(tmp_path / "in" / "train.jsonl", [(table, question) for question in asked])
    (said,) = create_records(creation, FEATURES)
    assert "kept with answers found by value: 1" in said
    named = ("train-*" if changes else "train") + ".left_out.jsonl"
    assert f"with remedies: {named}" in said
    lines = [
        json.loads(line)
        for file in (tmp_path / "out").glob("*.left_out.jsonl")
        for line in file.read_text().splitlines()
    ]
    assert {line["question_id"] for line in lines} == {f"q{n}" for n in range(1, 6)}
    assert {line["reason"] for line in lines} == {"answer not found"}
    assert all("answer_coordinates" in line["remedy"] for line in lines)
    list(create_records(creation_of(tmp_path, 3, splits=["train"], **changes), FEATURES))
    assert not list((tmp_path / "out").glob("*.left_out.jsonl"))


def test_a_folder_s_splits_are_all_made_in_one_way(tmp_path):
    list(create_records(creation_of(tmp_path, 3), FEATURES))
    before = shutil.copytree(tmp_path / "out", tmp_path / "before")
    longer = dataclasses.replace(FEATURES, max_seq_length=32)
    message = r"options: features.max_seq_length=32 \(there: 24\).*; choose another folder"
    with pytest.raises(ValueError, match=message):
        list(create_records(creation_of(tmp_path, 3, splits=["train"]), longer))
    assert_same_files(tmp_path / "out", before)
    list(create_records(creation_of(tmp_path, 3, num_shards=1), longer))
    assert read_conversion(tmp_path / "out").features == longer
    assert not (tmp_path / "out" / "train.tfrecord").exists()


def test_files_of_others_are_never_written_over(tmp_path):
    creation = creation_of(tmp_path, 3)
    others = shutil.copytree(tmp_path / "in", tmp_path / "out")
    with pytest.raises(ValueError, match="a new folder or one that `mate-tf data` wrote, got"):
        list(create_records(creation, FEATURES))
    assert_same_files(others, tmp_path / "in")


def test_of_an_official_data_set_the_splits_that_are_there_are_converted(tmp_path):
    creation = creation_of(tmp_path, 0, task="WTQ")
    shutil.rmtree(tmp_path / "in")
    with pytest.raises(FileNotFoundError, match=r"expected a \.jsonl file in .*, found none"):
        list(create_records(dataclasses.replace(creation, task="JSONL"), FEATURES))
    write_release(tmp_path / "in", RELEASES["WTQ"])
    train, *absent = create_records(creation, FEATURES)
    assert train.startswith("train: 1 of 1 questions kept")
    assert [text.partition(":")[0] for text in absent] == ["not there, dev", "not there, test"]
    with pytest.raises(FileNotFoundError, match="random-split-1-dev"):
        list(create_records(dataclasses.replace(creation, splits=["dev"]), FEATURES))


def test_a_split_is_divided_by_its_tables(tmp_path):
    creation = creation_of(tmp_path, 0, division=Division("train", (("train", 60), ("more", 40))))
    tables = [Table.from_rows([["a"], *[["b"]] * (1 + n)], table_id=f"{n}.csv") for n in range(30)]
    for split in ("train", "test"):
        pairs = [(t, Question("a", f"{t.num_rows}-{n}", ("b",))) for t in tables for n in range(2)]
        write_json_lines(tmp_path / "in" / f"{split}.jsonl", pairs)
    list(create_records(creation, FEATURES))
    train, more, test = (
        {question.question_id: table.num_rows for table, question in read_questions(folder, part)}
        for folder, part in ((tmp_path / "out", of) for of in ("train", "more", "test"))
    )
    assert len(test) == 60 and train | more == test
    assert train and more and not {*train.values()} & {*more.values()}
    again = dataclasses.replace(creation, division=None, splits=["test"])
    with pytest.raises(ValueError, match=r"as for the splits \['more', 'train'\]"):
        list(create_records(again, FEATURES))


def test_a_classifier_needs_classes(tmp_path):
    list(create_records(creation_of(tmp_path, 3), FEATURES))
    config = fitted("classification", tmp_path / "out")
    with pytest.raises(ValueError, match="expected a 'class_index' of each question to train a"):
        check_data(config, tmp_path / "out")
