"""Part-of-speech taggers of other libraries, as functions from a text to its tagged words.

Each library is imported when its tagger is made.
"""

import importlib
import warnings

from mate_tf.tables.part_of_speech import TaggedWord, Tagger

SPACY_MODEL = "en_core_web_sm"


def pattern_tagger() -> Tagger:
    """TextBlob's PatternTagger, whose model comes with the package (the extra "textblob").

    Words are split as in the Penn Treebank, whose tags it gives.

    Raises:
        ModuleNotFoundError: without TextBlob.
    """
    from nltk.tokenize import TreebankWordTokenizer
    from textblob.en.taggers import PatternTagger

    tokenizer, tagger = TreebankWordTokenizer(), PatternTagger()
    with warnings.catch_warnings():  # its lexicon is read at the first word, and not closed
        warnings.simplefilter("ignore", ResourceWarning)
        tagger.tag("word")

    def tag(text: str) -> list[TaggedWord]:
        spans = list(tokenizer.span_tokenize(text))
        if not spans:
            return []
        pairs = tagger.tag(" ".join(text[start:end] for start, end in spans), tokenize=False)
        # A word may be tagged with more than its part of speech: "NNP-PERS".
        return [
            TaggedWord(start, end, tag.split("-")[0] or tag)
            for (start, end), (_, tag) in zip(spans, pairs, strict=True)
        ]

    return tag


def spacy_tagger(model: str = SPACY_MODEL) -> Tagger:
    """A spaCy pipeline's universal tags, as in the paper (the extra "spacy").

    Args:
        model: an installed pipeline, by name or folder.

    Raises:
        ModuleNotFoundError: without spaCy.
        OSError: without the model, which spaCy's own download command installs.
    """
    import spacy

    pipeline = spacy.load(model, disable=["parser", "ner", "lemmatizer"])

    def tag(text: str) -> list[TaggedWord]:
        return [
            TaggedWord(token.idx, token.idx + len(token), token.pos_)
            for token in pipeline(text)
            if not token.is_space
        ]

    return tag


def load_tagger(name: str) -> Tagger:
    """A tagger by its name on the command line.

    Args:
        name: "textblob", "spacy", "spacy:MODEL", or "MODULE:FUNCTION" for one's own.

    Raises:
        ValueError: for another name.
    """
    library, _, rest = name.partition(":")
    if name == "textblob":
        return pattern_tagger()
    if library == "spacy":
        return spacy_tagger(rest or SPACY_MODEL)
    if rest:
        return getattr(importlib.import_module(library), rest)
    raise ValueError(
        f"expected a tagger 'textblob', 'spacy', 'spacy:MODEL' or 'MODULE:FUNCTION', got {name!r}"
    )
