import collections
import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mate_tf.datasets.described_tables import DescribedTable
from mate_tf.features.config import MaskedLmConfig, PretrainingConfig
from mate_tf.features.masked_lm import MaskedLmBuilder, example_rng
from mate_tf.records import pretraining
from mate_tf.records.batches import read_records
from mate_tf.records.splits import split_files
from mate_tf.tables.table import Table
from tests.small import cases

CONFIG = PretrainingConfig(
    MaskedLmConfig(max_seq_length=20, max_predictions=4, min_text_length=2, require_text=False),
    longer_lengths=(40,),
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
def expected(tmp_path_factory, vocab_file):
    """The shards that one process writes, and what it says of them."""
    directory = tmp_path_factory.mktemp("expected")
    builders = pretraining.make_builders(CONFIG, str(vocab_file))
    written = pretraining.write_split(make_corpus(), builders, CONFIG, str(directory), "train", 3)
    return directory, sum(written, collections.Counter())


def test_every_table_gives_examples_of_each_length_in_the_file_of_the_shortest(expected):
    directory, counts = expected
    num_tokens, examples = {}, []
    for length in CONFIG.lengths:
        found = list(read_records(split_files(directory, f"train_{length}")).as_numpy_iterator())
        assert {example["input_mask"].shape for example in found} == {(length,)}
        assert len(found) == counts[f"kept with {length} tokens at most"]
        num_tokens[length] = [int(example["input_mask"].sum()) for example in found]
        examples += found
    assert max(num_tokens[20]) <= 20 < min(num_tokens[40])
    assert [CONFIG.of_length(length).max_predictions for length in CONFIG.lengths] == [4, 8]
    assert len(num_tokens[20]) > len(make_corpus()) * 3  # also of those drawn for 40 tokens
    assert len(examples) == counts["kept"] == counts["read"] == 7 * 3 * 2
    kept = [example["table_id"][0] for example in examples if not example["is_random_table"][0]]
    assert len(examples) - len(kept) == counts["kept with another table in its table's place"] > 0
    assert kept.count(b"t0") == kept.count(b"t3") == 6  # without texts they are never replaced


def test_an_example_follows_from_its_name_and_its_successors_table(vocab_file, wordpiece):
    builders = pretraining.make_builders(CONFIG, str(vocab_file))
    corpus = make_corpus()
    members = [pretraining.Member(order, order % 2, item) for order, item in enumerate(corpus)]
    drawn = list(pretraining.draw_examples(builders, CONFIG, members))
    assert len(drawn) == 2 * len(members)
    for place, (_, copy, item) in enumerate(members):
        negative = corpus[(place + 1) % len(corpus)].table if item.texts else None
        rng = example_rng(f"{item.name}_{copy}", CONFIG.seed, 40)
        alone = MaskedLmBuilder(wordpiece, CONFIG.of_length(40)).build(*item[1:], rng, negative)
        found = drawn[2 * place + 1]
        length = len(found["input_ids"])
        np.testing.assert_array_equal(found["input_ids"], alone["input_ids"][:length])
        assert found["masked_lm_weights"].sum() == alone["masked_lm_weights"].sum()
        assert found["table_id"] == alone["table_id"]


@given(st.lists(st.sampled_from("xyz"), max_size=8))
def test_a_negative_is_always_another_table(wordpiece, ids):
    table = {name: Table.from_rows([["a"], [name]], table_id=name) for name in "xyz"}
    text = ("a b c d e f",)
    described = (DescribedTable(f"{n}", table[id_], text) for n, id_ in enumerate(ids))
    members = [pretraining.Member(n, 0, item) for n, item in enumerate(described)]
    config = dataclasses.replace(CONFIG, longer_lengths=())
    builders = [MaskedLmBuilder(wordpiece, config.masked_lm)]
    for id_, example in zip(ids, pretraining.draw_examples(builders, config, members), strict=True):
        is_random = bool(example["is_random_table"][0])
        assert (example["table_id"][0].decode() != id_) == is_random
        assert not (is_random and len(set(ids)) == 1)


def test_two_tables_of_one_name_are_refused_and_what_does_not_fit_is_counted(tmp_path, vocab_file):
    item = make_corpus()[0]
    builders = pretraining.make_builders(CONFIG, str(vocab_file))
    with pytest.raises(ValueError, match=r"expected a different name .* 'train', got 'd0' twice"):
        list(pretraining.write_split([item, item], builders, CONFIG, str(tmp_path), "train"))
    assert not list(tmp_path.iterdir())
    config = PretrainingConfig(
        MaskedLmConfig(max_seq_length=12, min_text_length=2, max_text_length=8), dupe_factor=2
    )
    wide = Table.from_rows([["abcdefghijkl"], ["abcdefghijkl"]], table_id="wide")
    corpus = [DescribedTable("a", wide, ("a b c",)), DescribedTable("b", wide)]
    builders = pretraining.make_builders(config, str(vocab_file))
    written = pretraining.write_split(corpus, builders, config, str(tmp_path), "train")
    counts = sum(written, collections.Counter())
    assert counts["read"] == 4 and not counts["kept"]
    assert counts["left out: too long"] == counts["left out: no fitting text"] == 2


@cases(
    "changes, message",
    ({"longer_lengths": (40, 40)}, r"ascending lengths, got \[20, 40, 40\]"),
    ({"longer_lengths": (10,)}, r"ascending lengths, got \[20, 10\]"),
    ({"dupe_factor": 0}, "a dupe_factor of at least 1, got 0"),
)
def test_what_cannot_be_drawn_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(CONFIG, **changes)


def test_places_do_not_depend_on_the_order_of_the_tables():
    corpus = make_corpus()
    forwards, backwards = (
        sorted(place for item in items for place in pretraining.placed_members(item, CONFIG, 3))
        for items in (corpus, corpus[::-1])
    )
    assert forwards == backwards
    assert {shard for shard, _ in forwards} == {0, 1, 2}
