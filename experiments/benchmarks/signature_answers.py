"""The answers of an exported model in each way that it can be asked: library, signatures, server.

Shapes: B batch, S sequence.

Questions and tables as the signature `tables` takes them.

Shapes: B batch, R rows and C columns of the largest table of the batch.
"""

import itertools
import pathlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

from mate_tf.tables.table import Table


def raw_input(questions: Sequence[str], tables: Sequence[Table]) -> dict[str, np.ndarray]:
    """The inputs of a batch by name; characters that UTF-8 does not have are left out.

    Args:
        questions: the texts of B questions.
        tables: the table of each.

    Returns:
        questions, headers and cells as bytes, object [B], [B, C] and [B, R, C], padded with empty
        texts; num_rows and num_columns, int32 [B].

    Raises:
        ValueError: if there are no questions, or not a table for each.
    """
    if not questions or len(questions) != len(tables):
        raise ValueError(
            f"expected questions and a table for each, got {len(questions)} questions and "
            f"{len(tables)} tables"
        )
    num_rows = np.array([table.num_rows for table in tables], np.int32)
    num_columns = np.array([table.num_columns for table in tables], np.int32)
    headers = np.full((len(tables), num_columns.max()), b"", object)
    cells = np.full((len(tables), num_rows.max(), num_columns.max()), b"", object)
    for index, table in enumerate(tables):
        headers[index, : table.num_columns] = _encoded(table.header)
        for row, texts in enumerate(table.rows):
            cells[index, row, : table.num_columns] = _encoded(texts)
    return {
        "questions": np.array(_encoded(questions), object),
        "headers": headers,
        "cells": cells,
        "num_rows": num_rows,
        "num_columns": num_columns,
    }


def _encoded(texts: Sequence[str]) -> list[bytes]:
    return [text.encode("utf-8", "ignore") for text in texts]


_STEP = 128  # tokens by which batches differ in length, as in the library
_AT_ONCE = 16  # requests to a server


class Given(NamedTuple):
    """What is compared of an answer; of a question that is refused the text alone, why."""

    text: str
    aggregation: str = ""
    cells: tuple[tuple[int, int], ...] = ()
    is_refused: bool = False


class Folder:
    """An exported model: its signatures, and how its features are made and its outputs read."""

    def __init__(self, directory: pathlib.Path):
        import tensorflow as tf

        from mate_tf.config import EncoderConfig, read_json_object
        from mate_tf.dataclass_json import from_dict
        from mate_tf.features.builder import FeatureBuilder
        from mate_tf.features.config import FeatureConfig
        from mate_tf.features.wordpiece import Wordpiece
        from mate_tf.serving.folder import CONFIG_FILE, VOCAB_FILE, check_exported
        from mate_tf.tasks import TASKS

        check_exported(directory)
        config = read_json_object(directory / CONFIG_FILE)
        self.encoder = EncoderConfig.from_dict(config["encoder"])
        self.task = from_dict(TASKS[config["kind"]].config_class, config["task"], "task")
        self.features = from_dict(FeatureConfig, config["features"], "features")
        self.wordpiece = Wordpiece(directory / VOCAB_FILE)
        self.builder = FeatureBuilder(self.wordpiece, self.features)
        self._loaded = tf.saved_model.load(str(directory))
        self.signatures = self._loaded.signatures


def library_answers(directory: pathlib.Path, pairs: Sequence[tuple]) -> Iterator[Given]:
    """The library's answers."""
    from mate_tf.serving.loading import from_pretrained

    answered: Iterator = from_pretrained(directory, calibrated=False).answer_all(pairs)
    for _, _, answer in tqdm(answered, "library", len(pairs), unit="question"):
        yield refused(answer) if isinstance(answer, ValueError) else given(answer)


def given(answer) -> Given:
    """What is compared of an `Answer`."""
    cells = tuple((cell.row, cell.column) for cell in answer.cells)
    return Given(answer.text, answer.aggregation, cells)


def refused(error: Exception) -> Given:
    """What stands for the answer to a question that is beyond a limit."""
    return Given(str(error).strip().split("\n")[0], is_refused=True)


def server_answers(url: str, pairs: Sequence[tuple]) -> list[Given]:
    """What a server of experiments/serve.py answers.

    Args:
        url: that of its predictions, "http://127.0.0.1:8080/v1/models/NAME:predict".
        pairs: tables and questions.

    Raises:
        OSError: if it is not there, or fails.
    """
    import httpx

    def ask(pair: tuple) -> Given:
        table, question = pair
        asked = {
            "question": question.text,
            "table": {"header": table.header, "rows": table.expanded_rows},
        }
        reply = client.post(url, json={"instances": [asked]}, timeout=600)
        if reply.status_code == httpx.codes.REQUEST_ENTITY_TOO_LARGE:
            return Given(reply.json()["error"], is_refused=True)
        reply.raise_for_status()
        (found,) = reply.json()["predictions"]
        cells = tuple((cell["row"], cell["column"]) for cell in found["cells"])
        return Given(found["answer"], found["aggregation"], cells)

    try:
        with httpx.Client() as client, ThreadPoolExecutor(_AT_ONCE) as pool:
            return list(tqdm(pool.map(ask, pairs), "server", len(pairs), unit="question"))
    except httpx.HTTPError as error:
        raise OSError(f"expected answers of a server at {url}: {error}") from None


def signature_answers(
    folder: Folder, name: str, pairs: Sequence[tuple], batch_tokens: int = 4096
) -> list[Given]:
    """The answers from what a signature returns.

    Args:
        folder: the exported model.
        name: of the signature.
        pairs: tables and questions.
        batch_tokens: tokens, padding included, in a batch.
    """
    from mate_tf.features.config import ConversionError

    examples = list(folder.builder.build_all(pairs, require_answers=False))
    answers: list[Given | None] = [None] * len(pairs)
    lengths = {}
    for index, example in enumerate(examples):
        if not isinstance(example, ConversionError):
            lengths[index] = example.report.num_tokens
        elif name == "tables":
            (answers[index],) = _ask_tables(folder, [pairs[index]])
        else:
            answers[index] = refused(example)  # there is nothing to ask with
    for length, batch in tqdm(list(_batches(lengths, batch_tokens)), name, unit="batch"):
        asked = [pairs[index] for index in batch]
        if name == "tables":
            results = _ask_tables(folder, asked)
        else:
            features = [examples[index].features for index in batch]
            results = _ask_tokens(folder, name, asked, features, length)
        for index, result in zip(batch, results, strict=True):
            answers[index] = result
    return [answer for answer in answers if answer is not None]


def _batches(lengths: dict[int, int], batch_tokens: int) -> Iterator[tuple[int, list[int]]]:
    """A padded length, and the questions that are asked together with it."""

    def padded(index: int) -> int:
        return -(-lengths[index] // _STEP) * _STEP

    for length, group in itertools.groupby(sorted(lengths, key=padded), key=padded):
        members = list(group)
        size = max(1, batch_tokens // length)
        for start in range(0, len(members), size):
            yield length, members[start : start + size]


def _ask_tokens(
    folder: Folder, name: str, pairs: Sequence[tuple], examples: list[dict], length: int
) -> list[Given]:
    import numpy as np
    import tensorflow as tf

    from mate_tf.answers.decoding import Asked
    from mate_tf.answers.predictor import Decoder
    from mate_tf.features.token_features import TAPAS_FEATURES, TokenFeatures
    from mate_tf.records.records import serialize_example

    length = folder.encoder.fixed_length or min(length, folder.features.max_seq_length or length)

    def padded(values):
        return np.pad(values[:length], (0, max(0, length - len(values)))).astype(np.int32)

    features = TokenFeatures(
        *(np.stack([padded(example[key]) for example in examples]) for key in TAPAS_FEATURES)
    )
    if name == "features":
        tensors = {key: tf.constant(getattr(features, key)) for key in TAPAS_FEATURES}
        outputs = folder.signatures[name](**tensors)
    else:
        records = [
            serialize_example({key: getattr(features, key)[index] for key in TAPAS_FEATURES})
            for index in range(len(examples))
        ]
        outputs = folder.signatures[name](examples=tf.constant(records))
    asked = Asked(
        [table for table, _ in pairs], features, folder.wordpiece, folder.features.histogram_row
    )
    return [given(answer) for answer in Decoder(folder.task)(outputs, asked)]


def _ask_tables(folder: Folder, pairs: Sequence[tuple]) -> list[Given]:
    import tensorflow as tf

    raw = raw_input([question.text for _, question in pairs], [table for table, _ in pairs])
    signature = folder.signatures["tables"]
    try:
        outputs = signature(**{key: tf.constant(values.tolist()) for key, values in raw.items()})
    except tf.errors.InvalidArgumentError as error:
        if len(pairs) > 1:
            raise
        return [refused(error)]
    return list(_read_tables({key: values.numpy() for key, values in outputs.items()}))


def _read_tables(outputs: dict[str, Any]) -> Iterator[Given]:
    texts = [text.decode("utf-8") for text in outputs["answers"]]
    if "selected" not in outputs:
        yield from (Given(text, "NONE") for text in texts)
        return
    for text, aggregation, cells in zip(
        texts, outputs["aggregations"], outputs["selected"], strict=True
    ):
        rows, columns = cells.nonzero()
        places = tuple(zip(rows.tolist(), columns.tolist(), strict=True))
        yield Given(text, aggregation.decode(), places)


def different_features(folder: Folder, table, question) -> list[str]:
    """The names of the features that the graph makes in another way than the library."""
    import numpy as np
    import tensorflow as tf

    from mate_tf.features.token_features import TAPAS_FEATURES
    from mate_tf.serving.raw_text.features import RawInput, build_features

    raw = {
        key: tf.constant(values.tolist())
        for key, values in raw_input([question.text], [table]).items()
    }
    in_graph = build_features(
        folder.wordpiece, folder.features, folder.encoder.fixed_length, RawInput(**raw)
    ).tokens
    expected = folder.builder.build(table, question, require_answers=False).features
    names = []
    for name in TAPAS_FEATURES:
        actual, of_library = getattr(in_graph, name)[0].numpy(), expected[name]
        length = min(len(actual), len(of_library))
        is_same = np.array_equal(actual[:length], of_library[:length])
        if not is_same or actual[length:].any() or of_library[length:].any():
            names.append(name)
    return names
