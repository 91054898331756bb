import collections

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mate_tf.datasets.tasks import DescribedTable
from mate_tf.features.config import MaskedLmConfig, PretrainingConfig
from mate_tf.features.masked_lm import example_rng
from mate_tf.records import creation as pretraining
from mate_tf.records.batches import read_records
from mate_tf.records.splits import split_files
from mate_tf.tables.table import Table
from tests.small import assert_same_features

CONFIG = PretrainingConfig(
    MaskedLmConfig(max_seq_length=20, max_predictions=4, min_text_length=2, require_text=False),
    dupe_factor=3,
)


def make_corpus():
    """Tables of one cell and more, every third without a text."""
    corpus = []
    for n in range(7):
        rows = [["a", "b"], *([c, str(n)] for c in "cdefgh"[: n % 6 + 1])]
        texts = ("new york city has people and names", "is it a city?") if n % 3 else ()
        corpus.append(DescribedTable(f"d{n}", Table.from_rows(rows, None, f"t{n}"), texts))
    return corpus


@pytest.fixture(scope="module")
def builder(vocab_file):
    return pretraining.make_builder(CONFIG, str(vocab_file))


def write(folder, corpus, builder, config=CONFIG, num_shards=None):
    """Writes the split "train" and returns what is said of it."""
    written = pretraining.write_split(corpus, builder, config, str(folder), "train", num_shards)
    return sum(written, collections.Counter())


def test_every_table_gives_examples(tmp_path, builder):
    counts = write(tmp_path, make_corpus(), builder, num_shards=3)
    examples = list(read_records(split_files(tmp_path, "train_20")).as_numpy_iterator())
    assert {example["input_mask"].shape for example in examples} == {(20,)}
    assert counts["tokens"] == sum(example["input_mask"].sum() for example in examples)
    assert len(examples) == counts["kept"] == counts["read"] == 7 * 3
    kept = [example["table_id"][0] for example in examples if not example["is_random_table"][0]]
    assert len(examples) - len(kept) == counts["kept with another table in its table's place"] > 0
    assert kept.count(b"t0") == kept.count(b"t3") == 3  # without texts they are never replaced


def test_an_example_follows_from_its_name_and_its_successors_table(builder):
    corpus = make_corpus()
    members = [pretraining.Member(order, order % 2, item) for order, item in enumerate(corpus)]
    drawn = list(pretraining.draw_examples(builder, CONFIG, members))
    for place, ((_, copy, item), found) in enumerate(zip(members, drawn, strict=True)):
        negative = corpus[(place + 1) % len(corpus)].table if item.texts else None
        rng = example_rng(f"{item.name}_{copy}", CONFIG.seed, 20)
        assert_same_features(found, builder.build(*item[1:], rng, negative))


@given(st.lists(st.sampled_from("xyz"), max_size=8))
def test_a_negative_is_always_another_table(builder, ids):
    table = {name: Table.from_rows([["a"], [name]], table_id=name) for name in "xyz"}
    text = ("a b c d e f",)
    described = (DescribedTable(f"{n}", table[id_], text) for n, id_ in enumerate(ids))
    members = [pretraining.Member(n, 0, item) for n, item in enumerate(described)]
    for id_, example in zip(ids, pretraining.draw_examples(builder, CONFIG, members), strict=True):
        is_random = bool(example["is_random_table"][0])
        assert (example["table_id"][0].decode() != id_) == is_random
        assert not (is_random and len(set(ids)) == 1)


def test_two_tables_of_one_name_are_refused_and_what_does_not_fit_is_counted(
    tmp_path, vocab_file, builder
):
    with pytest.raises(ValueError, match=r"expected a different name .* 'train', got 'd0' twice"):
        write(tmp_path, make_corpus()[:1] * 2, builder)
    assert not list(tmp_path.iterdir())
    config = PretrainingConfig(
        MaskedLmConfig(max_seq_length=12, min_text_length=2, max_text_length=8), dupe_factor=2
    )
    wide = Table.from_rows([["abcdefghijkl"], ["abcdefghijkl"]], table_id="wide")
    corpus = [DescribedTable("a", wide, ("a b c",)), DescribedTable("b", wide)]
    counts = write(tmp_path, corpus, pretraining.make_builder(config, str(vocab_file)), config)
    assert counts["read"] == 4 and not counts["kept"]
    assert counts["left out: too long"] == counts["left out: no fitting text"] == 2
