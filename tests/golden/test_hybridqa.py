"""HybridQA from its official layout: questions, cells, labels and features as the original's.

The features of its reader are compared in test_data.py, from the original's own cells.

Where several sentences are as like the question as the last one taken, the original's choice is
that of a hash map's order: for one question it differs between its own files. On the synthetic
tables, which are full of such ties, features must equal the original's exactly for one choice among
those sentences; on the real ones, which have none, for the choice that is made here.
"""

import dataclasses
import itertools
import pathlib
import re
import zipfile
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

from mate_tf.datasets.hybridqa import expand_cells, expand_with, read_hybridqa, score_sentences
from mate_tf.datasets.supervision import SupervisionError, supervise_linked
from mate_tf.features.builder import FeatureBuilder
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.pointr.answering import cell_text
from mate_tf.tables.linked_table import LinkedTable
from mate_tf.tables.table import Question, Table
from tests import golden_tally
from tests.golden import interactions
from tests.golden.comparison import GOLDEN, GOLDEN_REAL, Golden

FAMILY = "hybridqa"
# The options of passages; the others are those of every conversion.
OF_PASSAGES = "entity_descriptions_sentence_limit expand_entity_descriptions use_entity_title"
# A folder of goldens, where in it the files and the input are.
SYNTHETIC = (GOLDEN, "data/", "data/hybridqa_mini_input")
REAL = (GOLDEN_REAL, "", "inputs/hybridqa_mini")
INTERACTIONS = [
    (*SYNTHETIC, "train", "hybridqa_interactions_train"),
    (*SYNTHETIC, "dev", "hybridqa_interactions_dev"),
    (*SYNTHETIC, "test", "hybridqa_interactions_test"),
    (*REAL, "dev", "hybridqa_dev24_interactions"),
    (*REAL, "test", "hybridqa_test24_interactions"),
]
_EXTENSION = "[language.tapas.{}_ext]"
LINKS = _EXTENSION.format("AnnotatedText.annotated_cell")
PASSAGES = _EXTENSION.format("AnnotationDescription.annotation_descriptions")


def unpacked(path: pathlib.Path, folder: Golden, source: str) -> pathlib.Path:
    """A golden folder's input, in the layout of the release, at a path."""
    input_dir, archive = folder.require(source, f"{source}/WikiTables-WithLinks.zip")
    with zipfile.ZipFile(archive) as file:
        file.extractall(path)
    (path / "released_data").symlink_to((input_dir / "released_data").resolve())
    return path


def read_split(directory: pathlib.Path, split: str) -> dict[str, tuple[LinkedTable, Question]]:
    """The questions of a split, supervised, by their ids."""
    return {
        question.question_id: (linked, supervised(linked, question))
        for linked, question in read_hybridqa(directory, split, original=True)
    }


def supervised(linked: LinkedTable, question: Question) -> Question:
    try:
        return supervise_linked(linked, question, original=True)
    except SupervisionError:
        return question


@pytest.mark.parametrize(("folder", "place", "source", "split", "name"), INTERACTIONS)
def test_what_is_read_equals_the_originals(tmp_path, folder, place, source, split, name):
    (file,) = folder.require(f"{place}{name}.json.gz")
    read = read_split(unpacked(tmp_path, folder, source), split)
    for interaction in interactions.load(file):
        (asked,) = interaction["questions"]
        linked, question = interactions.of_question(read, asked["id"])
        assert interaction["id"] == asked["id"].removesuffix("_0")
        assert linked.table == interactions.to_table(interaction["table"])
        assert question.text == asked["original_text"]
        assert question.answers == tuple(asked.get("answer", {}).get("answer_texts", ()))
        assert sorted(question.answer_coordinates) == sorted(interactions.coordinates(asked))
        assert [
            [[passage.link for passage in cell] for cell in row] for row in linked.passages
        ] == [[links(cell) for cell in row["cells"]] for row in interaction["table"]["rows"]]
        everything = [*linked.distinct_passages(), *linked.other_passages]
        assert dict(everything) == interaction[PASSAGES]["descriptions"]
        golden_tally.compared(FAMILY, f"{name} {question.question_id}", 0.0, 0.0)


def links(cell: dict) -> list[str]:
    return [link["identifier"] for link in cell.get(LINKS, {}).get("annotations", ())]


@interactions.each_conversion(interactions.CELL_SELECTION)
def test_features_equal_the_originals(tmp_path, conversion):
    folder, place, source = SYNTHETIC if conversion.golden is GOLDEN else REAL
    file, vocab_file = conversion.require(f"{conversion.name}.json.gz", "vocab.txt")
    golden = interactions.load(file)
    options = golden["meta"]["config"]
    assert options.get("expand_entity_descriptions"), f"expected cells with passages, got {options}"
    config = interactions.feature_config(
        {k: v for k, v in options.items() if k not in OF_PASSAGES.split()}
    )
    split = re.search("train|dev|test", conversion.source)
    assert split, f"expected a split in the name of the source, got {conversion.source!r}"
    builder = FeatureBuilder(Wordpiece(vocab_file), config)
    limit = options.get("entity_descriptions_sentence_limit", 5)
    with_titles = options.get("use_entity_title", False)
    read = read_split(unpacked(tmp_path, folder, source), split.group())
    actual, expected = [], []
    for example in golden["examples"]:
        assert "error" not in example, f"expected features only, got {example['error']!r}"
        linked, question = interactions.of_question(read, example["question_id"])
        wanted = interactions.values(example["features"]["input_ids"])
        ours = expand_cells(linked, question, limit, with_titles, original=True)
        others = expansions(linked, question, limit, with_titles) if place else ()
        for table in itertools.chain([ours], others):
            features = builder.build(table, question).features
            if np.array_equal(features["input_ids"], wanted):
                break
        actual.append(features)
        expected.append(example["features"])
    interactions.compare_examples(conversion.name, actual, expected)


def expansions(
    linked: LinkedTable, question: Question, limit: int, with_titles: bool
) -> Iterator[Table]:
    """The table for each choice among the sentences that tie for the last places."""
    sentences, scores = score_sentences(linked, question, original=True)
    last = max(np.sort(scores)[::-1][min(limit, len(scores)) - 1], np.finfo(float).tiny)
    sure = [i for i, score in enumerate(scores) if score > last]
    tied = [i for i, score in enumerate(scores) if score == last]
    places = min(limit - len(sure), len(tied))
    for choice in itertools.combinations(tied, places):
        chosen = {sentences[i] for i in (*sure, *choice)}
        yield expand_with(linked, chosen, with_titles, original=True)


# The cells to read are all that hold the answer ("default"), in addition as many others drawn from
# the whole table ("multi_full"), or each by itself, as the release traced them, with as many of its
# rows and columns ("single_noisy"). Which others are drawn, after a hash, is not compared.
TO_READ = [
    (*SYNTHETIC, "train", "hybridqa_rc_default_interactions_train", False, 0),
    (*SYNTHETIC, "dev", "hybridqa_rc_default_interactions_dev", False, 0),
    (*SYNTHETIC, "train", "hybridqa_rc_multi_full_interactions_train", False, 1),
    (*SYNTHETIC, "dev", "hybridqa_rc_multi_full_interactions_dev", False, 0),
    (*SYNTHETIC, "train", "hybridqa_rc_single_noisy_interactions_train", True, 1),
    (*SYNTHETIC, "dev", "hybridqa_rc_single_noisy_interactions_dev", True, 0),
    (*REAL, "dev", "hybridqa_rc_default_dev_interactions_annotated", False, 0),
    (*REAL, "train", "hybridqa_rc_multi_full_train_interactions_annotated", False, 1),
    (*REAL, "dev", "hybridqa_rc_single_noisy_dev_interactions_annotated", True, 0),
    (*REAL, "train", "hybridqa_rc_single_noisy_train_interactions_annotated", True, 1),
]


@pytest.mark.parametrize(
    ("folder", "place", "source", "split", "name", "traced", "others"), TO_READ
)
def test_cells_to_read_are_alike(tmp_path, folder, place, source, split, name, traced, others):
    (file,) = folder.require(f"{place}{name}.json.gz")
    read = {
        question.question_id: (linked, question)
        for linked, question in read_hybridqa(
            unpacked(tmp_path, folder, source), split, traced=True
        )
    }
    found = Counter[str]()
    texts: dict[str, list[str]] = {}
    for interaction in interactions.load(file):
        id_ = interaction["id"].partition("/")[0]
        cells = [cell for row in interaction["table"]["rows"] for cell in row.get("cells", ())]
        texts.setdefault(id_, []).extend(cell.get("text", "") for cell in cells)
        found[id_] += 1
    assert texts
    for id_, originals in texts.items():
        linked, question = read[id_]
        answers = [cell_text(linked, *cell) for cell in answer_cells(linked, question, traced)]
        if traced:
            assert found[id_] == len(originals)
        drawn = Counter(originals)
        # Of traced cells one may be traced several times, as cell and as passage.
        assert {*answers} <= drawn.keys()
        everything = {
            cell_text(linked, row, column)
            for row in range(linked.table.num_rows)
            for column in range(linked.table.num_columns)
        }
        assert drawn.keys() <= everything
        if not others:
            assert drawn.keys() == {*answers}
        if not traced:
            assert len(originals) == len(answers) * (1 + others)
        golden_tally.compared(FAMILY, f"{name} {id_}", 0.0, 0.0)


def answer_cells(linked, question, traced: bool):
    if traced:
        return question.answer_coordinates
    untraced = dataclasses.replace(question, answer_coordinates=())
    try:
        return supervise_linked(linked, untraced, original=True).answer_coordinates
    except SupervisionError:
        return ()
