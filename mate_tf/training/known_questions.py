"""The questions that training from the package's model mixes in, so that it forgets nothing."""

import contextlib
import gzip
import pathlib
import tempfile
from collections.abc import Iterator

from mate_tf.datasets.json_lines import read_json_lines
from mate_tf.datasets.tasks import TASKS
from mate_tf.features.builder import FeatureBuilder
from mate_tf.features.wordpiece import Wordpiece
from mate_tf.records.conversion import convert_all
from mate_tf.records.conversion_file import Conversion
from mate_tf.records.splits import split_file, split_writer
from mate_tf.tables.part_of_speech import load_tagger
from mate_tf.weights.folder import KNOWN_QUESTIONS


@contextlib.contextmanager
def known_records(conversion: Conversion, vocab_file: pathlib.Path) -> Iterator[str]:
    """Yields a temporary file of their records, made like those of a folder.

    They were written for this project (experiments/demo_data/known_questions.py); each is of a kind
    that the package's model was trained on. Those that do not fit into a sequence are left out.
    """
    tagger = load_tagger(conversion.tagger) if conversion.tagger else None
    builder = FeatureBuilder(Wordpiece(vocab_file), conversion.features, tagger)
    with tempfile.TemporaryDirectory() as folder:
        questions = pathlib.Path(folder, "known.jsonl")
        questions.write_bytes(gzip.decompress(KNOWN_QUESTIONS.read_bytes()))
        pairs = read_json_lines(questions)
        with split_writer(folder, "known") as write:
            for outcome in convert_all(TASKS["JSONL"], builder, pairs, is_training=True):
                write(outcome)
        yield split_file(folder, "known", ".tfrecord")
