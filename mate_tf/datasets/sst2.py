"""SST-2: sentences of film reviews, negative (0) or positive (1).

The Stanford Sentiment Treebank's two classes (Socher et al., 2013), as lines of a sentence, a tab
and its label, in train.tsv and dev.tsv.
"""

from collections.abc import Iterator
from pathlib import Path

from mate_tf.tables.table import Question
from mate_tf.tables.text_files import read_lines

SPLITS = ("train", "dev")


def read_sst2(directory: str | Path, split: str) -> Iterator[Question]:
    """Yields each sentence of a split as a question without a table.

    Args:
        directory: the folder with {split}.tsv.
        split: one of SPLITS.

    Raises:
        FileNotFoundError: if the file is missing.
        ValueError: if a line is not a sentence and a label; it names file and line.
    """
    path = Path(directory) / f"{split}.tsv"
    for number, line in read_lines(path):
        sentence, tab, label = line.rpartition("\t")
        if not (tab and sentence.strip() and label.strip() in ("0", "1")):
            # The release of GLUE begins with the names of the columns.
            if number == 1 and (sentence, label) == ("sentence", "label"):
                continue
            raise ValueError(
                f"expected a sentence, a tab and 0 or 1, got {line!r} (file '{path}', line "
                f"{number})"
            )
        yield Question(sentence, f"{split}-{number}", class_index=int(label))
