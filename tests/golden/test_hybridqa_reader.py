"""The cells that HybridQA's reader reads: their texts, and which they are, as the original's.

Its features are compared in test_data.py, from the original's own cells. Those are all cells that
hold the answer ("default"), in addition as many others drawn from the whole table ("multi_full"),
or each by itself, as the release traced them, with as many others of its rows and columns
("single_noisy"), all in an order that follows from a hash. Which others are drawn is not compared.
"""

import dataclasses
import zipfile
from collections import Counter

import pytest

from mate_tf.datasets.hybridqa import read_hybridqa
from mate_tf.datasets.supervision import SupervisionError, supervise_linked
from mate_tf.pointr.inputs import cell_text
from tests.golden.interactions import load

FAMILY = "hybridqa"
SYNTHETIC = ("golden", "data/", "data/hybridqa_mini_input")
REAL = ("golden_real", "", "inputs/hybridqa_mini")
# What of the answer's cells: all of them, and as many others; each alone.
CASES = [
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


@pytest.mark.parametrize(("folder", "place", "source", "split", "name", "traced", "others"), CASES)
def test_cells_to_read_equal_the_originals(
    request, tmp_path, folder, place, source, split, name, traced, others
):
    folder = request.getfixturevalue(folder)
    file, input_dir, archive = folder.require(
        f"{place}{name}.json.gz", source, f"{source}/WikiTables-WithLinks.zip"
    )
    with zipfile.ZipFile(archive) as zipped:
        zipped.extractall(tmp_path)
    (tmp_path / "released_data").symlink_to((input_dir / "released_data").resolve())
    read = {
        question.question_id: (linked, question)
        for linked, question in read_hybridqa(tmp_path, split, traced=True)
    }
    found = Counter[str]()
    texts: dict[str, list[str]] = {}
    for interaction in load(file):
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
        folder.tally.compared[FAMILY].append((f"{name} {id_}", 0.0, 0.0))


def answer_cells(linked, question, traced: bool):
    if traced:
        return question.answer_coordinates
    untraced = dataclasses.replace(question, answer_coordinates=())
    try:
        return supervise_linked(linked, untraced, original=True).answer_coordinates
    except SupervisionError:
        return ()
