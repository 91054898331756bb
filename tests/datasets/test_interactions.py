"""Interactions of TAPAS's release, hand-made in its format: read, refused, and written back."""

import dataclasses
import gzip
import logging
import re

import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from experiments.synthesis.creation import read_sources
from mate_tf.datasets.interactions import (
    interactions_of,
    message_class,
    read_interactions,
    read_messages,
)
from mate_tf.datasets.tasks import read_corpus, splits_there
from mate_tf.features.config import FeatureConfig, MaskedLmConfig, PretrainingConfig
from mate_tf.records.creation import Creation, create_pretraining_records, create_records
from mate_tf.records.splits import read_questions
from mate_tf.tables.operators import ABSENT
from mate_tf.tables.table import Question, Table
from tests.small import cases

TABLE = (
    'table: { columns: { text: "City" } columns: { text: "Rank\\n(2020)" } '
    'rows: { cells: { text: "Ōsaka" } cells: { text: "1" } } '
    'rows: { cells: { text: "" } cells: { text: "2" numeric_value { float_value: 2 } } } '
)
CORPUS = (
    TABLE + 'table_id: "http://x/A_1" document_title: "A" context_heading: "H" } '
    'questions: { id: "TITLE" original_text: "Cities \\"by\\" rank" } '
    'questions: { id: "DESCRIPTION" original_text: "Osaka is first." }'
)
NEGATIVE = (
    "[language.tapas.NegativeRetrievalExamples.negative_retrieval_examples_ext] { examples { "
    'table { columns { text: "a" } rows { cells { text: "b" } } table_id: "no" } type: DOCUMENT } }'
)
OTHER = "[language.tapas.TableSelection.table_selection_ext] { selected_tokens { row_index: 1 } }"
ASKED = (
    f'id: "s-0" {TABLE} table_id: "t" }} questions {{ id: "s-0_0" text: "first" '
    "answer { answer_coordinates { row_index: 0 column_index: 0 } aggregation_function: NONE "
    'answer_texts: "Ōsaka" } } questions { id: "s-0_1" original_text: "and second" text: "second" '
    f'answer {{ answer_texts: "2" float_value: 2 }} {NEGATIVE} {OTHER} }}'
)
CLASSIFIED = (
    f'id: "c" {TABLE} table_id: "t" }} questions {{ id: "c_0" original_text: "true" answer '
    '{ class_index: 1 } } questions { id: "c_1" original_text: "false" answer { class_index: 0 } }'
)
HEADER, ROWS = ("City", "Rank\n(2020)"), (("Ōsaka", "1"), ("", "2"))


def write(path, *messages, packed=False):
    path.parent.mkdir(parents=True, exist_ok=True)
    content = "".join(f"{message}\n" for message in messages).encode()
    path.write_bytes(gzip.compress(content) if packed else content)
    return path.parent


def write_binary(path, messages, compression=""):
    path.parent.mkdir(parents=True, exist_ok=True)
    with tf.io.TFRecordWriter(str(path), compression) as writer:
        for message in messages:
            writer.write(message.SerializeToString())


def test_questions_come_with_tables_history_and_negative_tables(tmp_path):
    write(tmp_path / "train.txtpb.gz", ASKED, "", CLASSIFIED, packed=True)
    table = Table(HEADER, ROWS, "t")
    first = Question("first", "s-0_0", ("Ōsaka",), ((0, 0),), aggregation="NONE")
    second = Question("and second", "s-0_1", ("2",), answer_number=2.0)
    history = {"previous_coordinates": ((0, 0),), "previous_answers": ("Ōsaka",)}
    negative = Question("and second", "s-0_1_negative_0", aggregation=ABSENT)
    expected = [
        (table, first),
        (table, dataclasses.replace(second, **history)),
        (Table(("a",), (("b",),), "no"), negative),
        (table, Question("true", "c_0", class_index=1)),
        (table, Question("false", "c_1", class_index=0)),
    ]
    assert list(read_interactions(tmp_path, "train")) == expected
    assert next(read_interactions(tmp_path, "train", original=True))[1].text == "first"
    binary = tmp_path / "binary"
    messages = [message for message, _ in read_messages(tmp_path / "train.txtpb.gz")]
    write_binary(binary / "interactions" / "random-split-1-train.tfrecord", messages, "GZIP")
    assert list(read_interactions(binary, "train")) == expected


@cases(
    "name, split",
    *(("interactions.txtpb.gz", "train"), ("interactions_sample.txtpb", "train")),
    *(("train-00000-of-00001.txtpb", "train"), ("random-split-1-dev.tfrecord", "dev")),
    ("test.txtpb-00000-of-00001", "test"),
)
def test_splits_have_the_releases_names(tmp_path, name, split):
    if "tfrecord" in name:
        write_binary(tmp_path / name, [message_class()(id="a")])
    else:
        write(tmp_path / name, CORPUS, packed=name.endswith(".gz"))
    assert splits_there("INTERACTIONS", str(tmp_path))[0] == [split]


def test_a_corpus_is_tables_with_texts(tmp_path):
    write(tmp_path / "interactions.txtpb", CORPUS, CLASSIFIED, ASKED)
    first, *_ = read_corpus("INTERACTIONS", tmp_path, "train")
    assert first.name == "http://x/A_1" and first.table == Table(HEADER, ROWS, first.name, "A", "H")
    assert first.texts == ('Cities "by" rank', "Osaka is first.")
    ids = [question.question_id for _, question in read_interactions(tmp_path, "train")]
    assert ids[:2] == ["http://x/A_1_TITLE", "http://x/A_1_DESCRIPTION"]
    # Of what is true of its table, statements are made.
    texts = [source.texts for source in read_sources("INTERACTIONS", tmp_path, ["train"])]
    assert texts == [first.texts, ("true",), ()]


def test_damaged_files_are_named_with_the_place(tmp_path):
    whole = gzip.compress(f"{CORPUS}\n".encode())
    (tmp_path / "train.txtpb.gz").write_bytes(whole[:-20])
    with pytest.raises(ValueError, match=r"expected a whole file, got .*train.txtpb.gz', line \d"):
        list(read_interactions(tmp_path, "train"))
    write_binary(tmp_path / "dev.tfrecord", [message_class()(id="a")])
    content = bytearray((tmp_path / "dev.tfrecord").read_bytes())
    content[-6] ^= 1
    (tmp_path / "dev.tfrecord").write_bytes(content)
    with pytest.raises(ValueError, match=r"expected interactions, got .*dev.tfrecord', record 0"):
        list(read_interactions(tmp_path, "dev"))


def test_an_empty_or_ragged_table_is_left_out_with_a_warning(tmp_path, caplog):
    ragged = 'table { columns { text: "a" } rows { cells { text: "b" } cells { text: "c" } } }'
    write(tmp_path / "train.txtpb", 'id: "e"', *[ragged] * 4, CLASSIFIED)
    with caplog.at_level(logging.WARNING, logger="absl"):
        assert len(list(read_interactions(tmp_path, "train"))) == 2
    assert re.search(r"left out: .*\(table 'e'\).*line 1\)", caplog.text)
    assert "left out: 5 interactions of" in caplog.text and "line 4)" not in caplog.text


TEXTS = st.text(st.characters(codec="utf-8"), max_size=3)


@given(
    st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=3),
    st.lists(st.tuples(TEXTS, st.booleans()), min_size=1, max_size=3),
)
def test_what_is_written_is_read_back(tmp_path_factory, rows, asked):
    folder = tmp_path_factory.mktemp("written")
    table = Table(("x", "y"), tuple(rows), "t", "title", "heading")
    questions = [
        Question(
            text, f"q-{number}", (rows[0][0],), ((0, 0),) * has_cells, class_index=number or None
        )
        for number, (text, has_cells) in enumerate(asked)
    ]
    pairs = [(table, question) for question in questions]
    write_binary(folder / "dev.tfrecord", interactions_of(pairs))
    assert list(read_interactions(folder, "dev")) == pairs


def test_records_are_made_of_interactions_and_become_interactions(tmp_path, vocab_file):
    source = write(tmp_path / "in" / "train.txtpb.gz", ASKED, packed=True)
    write(source / "dev.txtpb", ASKED.replace("s-0", "s-1").replace('"t"', '"u"'))
    creation = Creation(
        task="INTERACTIONS",
        input_dir=str(source),
        output_dir=str(tmp_path / "out"),
        vocab_file=str(vocab_file),
        num_shards=2,
        write_interactions=True,
    )
    said = list(create_records(creation, FeatureConfig(max_seq_length=64)))
    words = dataclasses.replace(creation, output_dir=str(tmp_path / "words"))
    config = PretrainingConfig(MaskedLmConfig(64, max_predictions=4, require_text=False))
    said += create_pretraining_records(words, config)
    text = "\n".join(said)
    assert "train: 3 of 3 questions kept" in text and "train: 10 of 10 examples kept" in text
    for split in ("train", "dev"):
        there = read_questions(tmp_path / "out", split)
        back = read_interactions(tmp_path / "out", split)
        ids = [sorted(question.question_id for _, question in pairs) for pairs in (there, back)]
        assert ids[0] == ids[1] and len(ids[0]) == 3
