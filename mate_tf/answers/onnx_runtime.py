"""A model as a function of token features by ONNX Runtime, without TensorFlow.

The graph beside a model's weights (serving/onnx_graph.py) takes one sequence without padding. It
embeds the tokens, attends, and scores each token. What depends on the features alone stands here in
NumPy: before the graph which tokens attend to which, after it the cells that tokens belong to.

In each view, the pattern of a group of heads, the global tokens attend to all others; these are
outside of the table, or all tokens where the pattern lets them. The others are cut into tiles, in
an order in which tokens that attend to each other are neighbours; each tile has a list of keys and
a mask. The graph computes a round of tiles after the other, so that its memory is linear.

Shapes: B batch, S sequence, L tokens in tiles, G global tokens, N tiles, M rounds, m tiles of a
round, T queries of a tile, K keys of a tile, C columns, c cells, A aggregations.
"""

import hashlib
import os
import pathlib
from typing import Any, NamedTuple

import numpy as np

from mate_tf.config import AttentionConfig, EncoderConfig, MateConfig
from mate_tf.features.token_features import TokenFeatures
from mate_tf.task_configs import LOG_ZERO, TableQAConfig

GRAPH_FILE, WEIGHTS_FILE = "model.onnx", "model.safetensors"
FORMAT = "1"  # of the graph's inputs and outputs
TILE = 64  # T; 32 and 128 take within 15 % of its time
NO_NEIGHBOUR = 2  # after 0, the cell above, and 1, the cell below
_NUMBERS = 2**22  # in the scores of a round: 16 MB
_ORIGINAL_ROWS = 256  # the release numbers cells by column * 256 + row


class View(NamedTuple):
    """A group of consecutive heads with one pattern."""

    name: str  # "row" or "column", by what its tokens are sorted; or "all"
    num_heads: int


def views_of(config: EncoderConfig) -> tuple[View, ...]:
    """The views of an encoder, in the order of its heads."""
    attention, num_heads = config.attention, config.num_heads
    if not isinstance(attention, MateConfig):
        return (View("all", num_heads),)
    row_heads = int(num_heads * attention.row_heads_ratio)
    views = View("row", row_heads), View("column", num_heads - row_heads)
    return tuple(view for view in views if view.num_heads)


def has_neighbours(attention: AttentionConfig, view: View) -> bool:
    """Whether the heads of a view have biases for the cells above and below."""
    return attention.architecture == "mate_neighbours" and view.name == "column"


def layout(weights: pathlib.Path) -> str:
    """Where the weights stand in their file, as a checksum of its header, and the file's size."""
    with weights.open("rb") as file:
        header = file.read(int.from_bytes(file.read(8), "little"))
        size = file.seek(0, os.SEEK_END)
    return f"{hashlib.sha256(header).hexdigest()} {size}"


class OnnxModel:
    """The outputs of a model for table questions, from its folder's graph and weights.

    Called on token features int32 [B, S]; returns what decoding reads: token_probabilities and
    token_logits float32 [B, S]; perhaps column_logits [B, C], row_scores [B, S] and
    aggregation_logits [B, A].

    Raises:
        FileNotFoundError: if the folder lacks the graph or its weights.
        ValueError: if the graph is not that of the weights, or of another version of mate_tf.
    """

    def __init__(self, folder: pathlib.Path, encoder: EncoderConfig, task: TableQAConfig) -> None:
        # From 1.32 on it would send events to Microsoft, and keep them below the user's cache.
        os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
        import onnxruntime

        self._encoder, self._task = encoder, task
        graph, weights = folder / GRAPH_FILE, folder / WEIGHTS_FILE
        for file in (graph, weights):
            if not file.is_file():
                raise FileNotFoundError(f"expected {file}, which ONNX Runtime reads, found none")
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4  # what fails is raised
        options.enable_mem_pattern = False  # sequences differ in length
        # Threads that wait for work sleep.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        remedy = "; `mate-tf export --weights-alone` writes both anew"
        try:
            self._session = onnxruntime.InferenceSession(
                graph, options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # ONNX Runtime's errors have no base of their own
            reason = str(error).strip().split("\n")[0].rpartition(" : ")[2]
            raise ValueError(
                f"expected {graph} to be a graph with the weights in {weights}, got an error: "
                f"{reason}{remedy}"
            ) from None
        metadata = self._session.get_modelmeta().custom_metadata_map
        if metadata.get("format") != FORMAT:
            raise ValueError(
                f"expected {graph} of format {FORMAT}, got {metadata.get('format')}{remedy}"
            )
        if metadata.get("layout") != layout(weights):
            raise ValueError(
                f"expected {weights} to be the weights that {graph} was made for, got a file of "
                f"other weights or another size{remedy}"
            )
        # What a long sequence took goes back to the system.
        self._run_options = onnxruntime.RunOptions()
        self._run_options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
        self._names = [given.name for given in self._session.get_inputs()]
        self._outputs = [output.name for output in self._session.get_outputs()]

    def __call__(self, features: TokenFeatures) -> dict[str, np.ndarray]:
        """The outputs of a batch, example by example: padding costs more than a batch gains."""
        given = features.map(np.asarray)
        lengths = given.input_mask.sum(axis=1).tolist()  # padding is at the end
        examples = [self._outputs_of(given, b, length) for b, length in enumerate(lengths)]
        size = given.input_mask.shape[1]
        return {
            name: np.stack([_padded(outputs[name], name, size) for outputs in examples])
            for name in examples[0]
        }

    def _outputs_of(self, batch: TokenFeatures, index: int, length: int) -> dict[str, np.ndarray]:
        """The outputs of one sequence of a batch, without its padding."""
        features = batch.map(lambda values: values[index, :length])  # [S]
        inputs = graph_inputs(features, self._encoder)
        given = {name: inputs[name] for name in self._names}
        values = self._session.run(self._outputs, given, self._run_options)
        return head_outputs(dict(zip(self._outputs, values, strict=True)), features, self._task)


def _padded(values: np.ndarray, name: str, size: int) -> np.ndarray:
    is_by_token = name.startswith("token_") or name == "row_scores"
    return np.pad(values, (0, size - len(values))) if is_by_token else values


def graph_inputs(features: TokenFeatures, config: EncoderConfig) -> dict[str, np.ndarray]:
    """The inputs of the graph, from the features of one sequence without padding, int32 [S]."""
    attention = config.attention
    outside = features.segment_ids == 0  # [S]
    if attention.architecture == "tapas":
        outside = np.ones_like(outside)
    globals_ = np.flatnonzero(outside)  # [G]
    inputs: dict[str, Any] = features._asdict()
    inputs |= {"position_ids": position_ids(features, config), "global_tokens": globals_}
    rows, columns = features.row_ids, features.column_ids
    for view in views_of(config):
        ids = {"row": rows, "column": columns}.get(view.name, np.zeros_like(rows))
        tiles = sorted_tiles(ids, outside)
        query, key = tiles.queries[:, :, np.newaxis], tiles.keys[:, np.newaxis]  # [N, T, 1 or K]
        same = ids[query] == ids[key]
        if view.name == "all":
            same = (rows[query] == rows[key]) | (columns[query] == columns[key])
        allowed = tiles.is_key[:, np.newaxis] & (same | outside[key])  # [N, T, K]
        global_mask = np.ones((1, 1), bool)  # broadcasts to [G, S]
        if isinstance(attention, MateConfig) and attention.bucket_size and not attention.coverage:
            # From 1 in the order of the ids; 0 for the global part.
            ranks = np.argsort(np.argsort(ids, kind="stable")) - attention.global_size
            buckets = np.maximum(ranks // attention.bucket_size + 1, 0)  # [S]
            allowed &= in_window(buckets[query], buckets[key])
            global_mask = in_window(buckets[globals_, np.newaxis], buckets)  # [G, S]
        tile_inputs = {"queries": tiles.queries, "keys": tiles.keys, "mask": allowed}
        if has_neighbours(attention, view):
            is_cell = ~outside & (rows > 0)
            step = rows[key] - rows[query]  # [N, T, K]
            beside = is_cell[query] & is_cell[key] & same & (np.abs(step) == 1)
            relations = np.where(beside, (step + 1) // 2, NO_NEIGHBOUR)
            tile_inputs["relations"] = relations.astype(np.int32)
        number = max(1, _NUMBERS // (view.num_heads * allowed[0].size))  # of tiles in a round
        inputs |= {f"{view.name}_{name}": in_rounds(it, number) for name, it in tile_inputs.items()}
        inputs[f"{view.name}_global_mask"] = global_mask
        inputs[f"{view.name}_places"] = tiles.indices
    return inputs


def in_rounds(tiles: np.ndarray, number: int) -> np.ndarray:
    """Tiles [N, ...] in equal rounds of at most a number of them, [M, m, ...].

    The last tile fills up the last round.
    """
    rounds = -(-len(tiles) // number)
    number = -(-len(tiles) // rounds)
    if rounds * number > len(tiles):
        tiles = tiles[np.minimum(np.arange(rounds * number), len(tiles) - 1)]
    return tiles.reshape(rounds, number, *tiles.shape[1:])


def position_ids(features: TokenFeatures, config: EncoderConfig) -> np.ndarray:
    """The index of each token in the position table, int32 [S]."""
    rows, columns = features.row_ids, features.column_ids
    index = np.arange(len(rows))
    limit = config.max_position_embeddings
    if config.position == "absolute":
        if len(index) > limit:
            raise ValueError(
                f"expected at most {limit} tokens with absolute positions, got {len(index)}; use "
                "position='per_cell'"
            )
        return index.astype(np.int32)
    if config.original_ids:
        cells = columns.astype(np.int64) * _ORIGINAL_ROWS + rows
        cells = np.minimum(cells, _ORIGINAL_ROWS**2 - 1)
        _, first, cell = np.unique(cells, return_index=True, return_inverse=True)
        first = first[cell]
    else:
        begins = np.ones(len(rows), bool)
        begins[1:] = (rows[1:] != rows[:-1]) | (columns[1:] != columns[:-1])
        first = np.maximum.accumulate(np.where(begins, index, 0))
        first = np.where((rows == 0) & (columns == 0), 0, first)
    return np.minimum(index - first, limit - 1).astype(np.int32)


class Tiles(NamedTuple):
    """The queries of a view that are not global, in tiles, and their keys: tokens of the sequence.

    A tile that is not full repeats its last query; a list of keys that is not has is_key False.
    """

    queries: np.ndarray  # int64 [N, T]
    keys: np.ndarray  # int64 [N, K]
    is_key: np.ndarray  # bool [N, K]
    indices: np.ndarray  # int64 [S], each token among the global tokens and then the queries


def sorted_tiles(ids: np.ndarray, outside: np.ndarray) -> Tiles:
    """Tiles of tokens in the order of their ids, int32 [S], but for the global ones, bool [S].

    The keys of a tile are the global tokens and those that have the id of one of its queries.
    """
    globals_, table = np.flatnonzero(outside), np.flatnonzero(~outside)
    order = table[np.argsort(ids[table], kind="stable")]  # [L]
    length, by_order = len(order), ids[order]
    if not length:  # all are global: a tile that no token reads
        first = globals_[:1, np.newaxis]
        return Tiles(first, first, np.ones((1, 1), bool), globals_)
    size = min(TILE, length)
    # A tile ends early before a group that is longer than a tile: otherwise its keys are of both.
    begins = np.append(0, np.flatnonzero(np.diff(by_order)) + 1)
    long = begins[np.diff(np.append(begins, length)) > size]
    cuts = np.unique(np.append(0, long))
    starts = np.concatenate(
        [np.arange(a, b, size) for a, b in zip(cuts, np.append(cuts[1:], length), strict=True)]
    )  # [N]
    stops = np.append(starts[1:], length)
    inside = np.minimum(starts[:, np.newaxis] + np.arange(size), stops[:, np.newaxis] - 1)  # [N, T]
    first = np.searchsorted(by_order, by_order[inside[:, 0]])  # [N]
    last = np.searchsorted(by_order, by_order[inside[:, -1]], side="right")
    keys = first[:, np.newaxis] + np.arange((last - first).max())
    is_key = keys < last[:, np.newaxis]
    keys = order[np.minimum(keys, length - 1)]
    everywhere = np.broadcast_to(globals_, (len(starts), len(globals_)))
    indices = np.empty(len(ids), np.int64)
    indices[globals_] = np.arange(len(globals_))
    tile = np.searchsorted(starts, np.arange(length), side="right") - 1  # [L]
    indices[order] = len(globals_) + tile * size + np.arange(length) - starts[tile]
    return Tiles(
        order[inside],
        np.concatenate([everywhere, keys], axis=1),
        np.concatenate([np.ones(everywhere.shape, bool), is_key], axis=1),
        indices,
    )


def in_window(query: np.ndarray, key: np.ndarray) -> np.ndarray:
    """Whether buckets are the same, adjacent or one of them the global part; they broadcast."""
    return (np.abs(query - key) <= 1) | (query == 0) | (key == 0)


def head_outputs(
    scores: dict[str, np.ndarray], features: TokenFeatures, config: TableQAConfig
) -> dict[str, np.ndarray]:
    """The outputs of a model for table questions, as models/table_qa.py computes them.

    From token_scores, column_scores and row_scores float32 [S], and aggregation_logits [A], of one
    sequence without padding, to the last two and column_logits [C], token_logits [S] and
    token_probabilities [S].
    """
    width = config.max_num_columns
    columns = np.minimum(features.column_ids, width - 1)  # [S]
    rows = features.row_ids.astype(np.int64)
    if config.max_num_rows is not None:
        rows = np.minimum(rows, config.max_num_rows - 1)
    keys, cells = np.unique(rows * width + columns, return_inverse=True)  # [c], [S]
    cell_rows, cell_columns = np.divmod(keys, width)
    counts = np.bincount(cells)

    def mean_by_cell(values: np.ndarray) -> np.ndarray:
        return np.bincount(cells, values) / counts

    token_logits = scores["token_scores"] / np.float32(config.temperature)
    outputs, logits = {"token_logits": token_logits}, token_logits.astype(np.float64)
    if "row_scores" in scores:
        outputs["row_scores"] = scores["row_scores"]
    if config.select_one_column:
        sums, numbers = (
            np.bincount(cell_columns, values, width)
            for values in (mean_by_cell(scores["column_scores"]), None)
        )  # [C] each
        forbidden = numbers < 1
        forbidden[0] = not config.allow_empty_column_selection
        column_logits = sums / np.maximum(numbers, 1) + LOG_ZERO * forbidden
        best = column_logits.argmax()
        lowered = LOG_ZERO * ((cell_columns != best) | (best == 0))
        outputs["column_logits"] = column_logits.astype(np.float32)
        logits = (mean_by_cell(token_logits) + lowered)[cells]
    if config.cell_cross_entropy:
        in_body = (cell_rows > 0) & (cell_columns > 0)
        by_cell = np.where(in_body, mean_by_cell(token_logits), -np.inf)
        exponents = np.exp(by_cell - by_cell.max()) if in_body.any() else np.zeros(len(keys))
        probabilities = (exponents / max(exponents.sum(), 1.0))[cells]
    else:
        # In single precision it is 0 outside of the chosen column, as decoding expects.
        with np.errstate(over="ignore"):
            probabilities = 1.0 / (1.0 + np.exp(-logits.astype(np.float32)))
    outputs["token_probabilities"] = probabilities.astype(np.float32)
    if config.operators:
        outputs["aggregation_logits"] = scores["aggregation_logits"]
    return outputs
