"""Numbers and dates that the graph reads, against those that the library reads."""

import itertools

import numpy as np
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from mate_tf.features import numeric
from mate_tf.features.normalization import normalize_for_match
from mate_tf.features.numeric import Date
from mate_tf.serving.raw_text.numbers import text_values
from tests.small import cases

in_graph = tf.function(text_values, input_signature=[tf.TensorSpec([None], tf.string)])


def graph_values(texts):
    """The values of each text, as `numeric.text_values` returns them."""
    encoded = [text.encode("utf-8", "ignore") for text in texts]
    values = in_graph(tf.constant(encoded, tf.string, [len(encoded)]))
    found = [[] for _ in texts]
    for text, number, is_number, date, is_date in zip(*(v.numpy() for v in values), strict=True):
        if is_number:
            found[text].append(float(np.float32(number)))
        if is_date:
            found[text].append(Date(*(int(field) or None for field in date)))
    return [tuple(of_text) for of_text in found]


TEXTS = [
    *(
        "| |n/a|rome|-|.|,|0|7|007|+5|-5|5-3|a-5|1,234|1,234.5|-1,234,567.25|12.|.5|-.5|"
        "$ 12.50|7%|3 km|1:2|x5|1e5|12abc|abc12|5th|2nd place|twelfth|Zero|one two|oneself|"
        "2004|1499|1500|2100|2101|1990s|1490s|in 2004.|2004, 2005|2004th|May|may 2004|May 5|"
        "5 may|5th of may|Sept. 5, 2004|sept 5th 2004|mayor|12 august 1999|monday, may 5|"
        "2004-05|2004-13|2004-05-06|5.6.2004|31.6.2004|12-25-2004|25-12-2004|february 30|"
        "april 31, 2004|0 may|may 0000|1999-2000|feb 29|feb 29, 2004|feb 29, 2000|1_000|"
        "2004_may"
    ).split("|"),
    *("\u22125", "x\x01y 5", "\x022004\x01", "5\u00a06", "Été 2004", "9" * 38, "1" * 300 + " 5"),
    *("1\u20442", "may\u030a 5", "\ud8005", "\x00 3"),
]


def test_texts_have_the_values_that_the_library_reads():
    assert graph_values(TEXTS) == [numeric.text_values(text) for text in TEXTS]


PLAIN = st.one_of(
    st.integers(-(10**6), 10**7).map(str),
    st.integers(-(10**6), 10**7).map("{:,}".format),
    st.decimals(-1000, 1000, places=2).map(str),
    st.integers(1400, 2200).map(str),
    st.dates().map("{:%Y-%m-%d}".format).filter(lambda text: len(text) == 10),
    st.dates().map("{0:%B} {0.day}, {0.year:04}".format),
    st.dates().map("{0.day} {0:%b} {0.year:04}".format),
    st.dates().map("{:%B}".format),
    st.sampled_from(["twelve", "First", "$5", "3 km", "20%", "n/a", "5th"]),
)


@given(st.lists(st.lists(PLAIN, max_size=3).map(" or ".join), max_size=6))
def test_plain_numbers_and_dates_are_read_as_in_the_library(texts):
    assert graph_values(texts) == [numeric.text_values(text) for text in texts]


def is_read_otherwise(text):
    """Whether a text is one of those that the module says are read in another way."""
    text = normalize_for_match(text.encode("utf-8", "ignore").decode())
    spans = [(span.begin, span.end) for span in numeric.parse_text(text)]
    return (
        any(character.isdecimal() and not character.isascii() for character in text)
        or any(begin < end for (_, end), (begin, _) in itertools.pairwise(spans))
        or "29" in text
        or any(sum(map(str.isdigit, word)) > 30 or "e" in word for word in text.split())
    )


NEAR_MISSES = st.text("0123456789.,-+ ") | st.lists(
    st.sampled_from(
        ["may", "sept", "june", " ", " ", ".", ",", "-", "5", "31", "2004", "th", "monday"]
    )
).map("".join)


@given(st.lists(NEAR_MISSES | st.text(), min_size=1, max_size=6))
def test_all_texts_but_those_that_are_named_are_read_as_in_the_library(texts):
    texts = [text for text in texts if not is_read_otherwise(text)]
    assert graph_values(texts) == [numeric.text_values(text) for text in texts]


@cases(
    "text, in_library, in_graph",
    ("\u0663", (3.0,), ()),
    ("1 may 5", (Date(None, 5, 1), Date(None, 5, 5)), (Date(None, 5, 1), 5.0)),
    ("4 may 2004.", (Date(2004, 5, 4), 2004.0), (Date(2004, 5, 4),)),
    ("1,1024", (1102.0, 1024.0), (1102.0, 4.0)),
    ("feb 29, 2003", (Date(None, 2, 29), 2003.0, Date(2003, None, None)), ()),
    ("1e99", (1.0, 99.0), ()),
)
def test_what_is_read_otherwise_is_known(text, in_library, in_graph):
    assert numeric.text_values(text) == in_library
    assert graph_values([text]) == [in_graph]
