"""A model for table questions as an ONNX graph beside its weights: model.onnx, of some 50 kB.

The graph holds no weights: they are external data, in the model.safetensors of the same folder. It
takes one sequence without padding, and for each view what answers/onnx_runtime.py makes of the
features; it is made from the config and the weights' names alone, without TensorFlow.

Shapes: S sequence, D hidden, H heads, h heads of a view, E head size, G global tokens, M rounds, m
tiles of a round, T queries of a tile, K keys of a tile, A aggregations.
"""

import functools
import itertools
import json
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mate_tf.answers.onnx_runtime import (
    FORMAT,
    GRAPH_FILE,
    WEIGHTS_FILE,
    View,
    has_neighbours,
    layout,
    views_of,
)
from mate_tf.config import TYPE_FEATURES, EncoderConfig, MateConfig
from mate_tf.paths import as_path, complete_file
from mate_tf.serving.stored import run_model
from mate_tf.task_configs import TableQAConfig, TaskConfig

OPSET, IR_VERSION = 20, 9
ARCHITECTURES = ("mate", "mate_neighbours", "sat", "tapas")
_MASKED = -1e9  # the score of a pair that the pattern forbids
_BYTES_OF_LENGTH = 8  # at the begin of a safetensors file
_MOST_BYTES = 2**31 - 2**20  # of a protocol buffer, which the graph is


def why_no_graph(encoder: EncoderConfig, task: TaskConfig) -> str | None:
    """Why there is no graph of a model; None where there is one."""
    attention = encoder.attention
    if not isinstance(task, TableQAConfig):
        return "only a model for table questions has one"
    if attention.architecture not in ARCHITECTURES:
        return f"attention is {attention.architecture}, not one of {', '.join(ARCHITECTURES)}"
    if isinstance(attention, MateConfig) and attention.original_bucketing:
        return "original_bucketing joins buckets that are no neighbours"
    if task.count_padding:
        return "count_padding makes answers depend on padding, and the graph takes none"
    return None


def write_graph(folder: str | pathlib.Path) -> pathlib.Path:
    """Writes model.onnx beside the weights of a run, or of weights alone, and returns its path.

    Raises:
        FileNotFoundError: if there are no weights.
        ValueError: if there is no graph of the model (`why_no_graph`).
    """
    stored = run_model(folder)
    if reason := why_no_graph(stored.encoder_config, stored.task_config):
        raise ValueError(f"expected a model with a graph for ONNX Runtime in {folder}: {reason}")
    if stored.folder is None:
        raise FileNotFoundError(f"expected {WEIGHTS_FILE} in {folder}, got a checkpoint alone")
    assert isinstance(stored.task_config, TableQAConfig)
    model = make_graph(stored.encoder_config, stored.task_config, stored.folder / WEIGHTS_FILE)
    path = stored.folder / GRAPH_FILE
    with complete_file(path) as unfinished:
        as_path(unfinished).write_bytes(model.SerializeToString())
    return path


def add_graph(folder: str | pathlib.Path) -> str | None:
    """Writes model.onnx as `write_graph`; returns why there is none, or None."""
    try:
        write_graph(folder)
    except (FileNotFoundError, ValueError) as error:
        return str(error)
    return None


def include_weights(folder: pathlib.Path) -> None:
    """Moves the weights of a folder into its graph; ValueError where they are too many."""
    import onnx

    size = (folder / WEIGHTS_FILE).stat().st_size
    if size >= _MOST_BYTES:
        raise ValueError(
            f"expected weights of less than {_MOST_BYTES / 1e9:.1f} GB for a single file of ONNX, "
            f"got {size / 1e9:.1f} GB in {folder / WEIGHTS_FILE}"
        )
    model = onnx.load(folder / GRAPH_FILE)
    with complete_file(folder / GRAPH_FILE) as unfinished:
        onnx.save(model, unfinished)
    (folder / WEIGHTS_FILE).unlink()


def make_graph(encoder: EncoderConfig, task: TableQAConfig, weights: pathlib.Path) -> Any:
    """The onnx.ModelProto of a model, whose weights are at a path."""
    from onnx import TensorProto, helper

    graph = _Graph(weights)
    hidden = _encoder(graph, encoder)
    heads = {"token_scores": "output"}
    if task.select_one_column:
        heads["column_scores"] = "column_output"
    if task.selects_rows:
        heads["row_scores"] = "row_output"
    for name, head in heads.items():
        kernel, bias = (graph.single(f"cell_selection/{head}_{it}") for it in ("weights", "bias"))
        graph.op("Add", graph.op("MatMul", hidden, kernel), bias, out=name)  # [S]
    outputs: dict[str, list[Any]] = {name: ["S"] for name in heads}
    if task.operators:
        first = graph.op("Gather", hidden, graph.const([0], np.int64), axis=0)  # [1, D]
        pooled = graph.op("Tanh", graph.linear("encoder/pooler", first))
        kernel = graph.transposed(graph.single("aggregation/output_weights_agg"), [1, 0])
        logits = graph.op("Squeeze", graph.op("MatMul", pooled, kernel), graph.const([0], np.int64))
        bias = graph.single("aggregation/output_bias_agg")
        graph.op("Add", logits, bias, out="aggregation_logits")  # [A]
        outputs["aggregation_logits"] = [len(task.operators)]

    features = ["input_ids", *(it for it in TYPE_FEATURES if it not in encoder.disabled_features)]
    if encoder.position != "none":
        features.append("position_ids")
    inputs: list[tuple[str, int, list[str]]] = [(it, TensorProto.INT32, ["S"]) for it in features]
    inputs.append(("global_tokens", TensorProto.INT64, ["G"]))
    for view in views_of(encoder):
        inputs += [
            (f"{view.name}_{name}", kind, [f"{view.name}_{it}" for it in shape])
            for name, kind, shape in _inputs_of_tiles(encoder, view)
        ]
        shape = [f"{view.name}_G", f"{view.name}_S"]  # 1 and 1 where all is allowed
        inputs.append((f"{view.name}_global_mask", TensorProto.BOOL, shape))
        inputs.append((f"{view.name}_places", TensorProto.INT64, ["S"]))
    value = helper.make_tensor_value_info
    proto = helper.make_graph(
        graph.nodes,
        "mate_tf",
        [value(*given) for given in inputs],
        [value(name, TensorProto.FLOAT, shape) for name, shape in outputs.items()],
        list(graph.constants.values()),
    )
    opset = [helper.make_opsetid("", OPSET)]
    model = helper.make_model(proto, opset_imports=opset, ir_version=IR_VERSION)
    helper.set_model_props(model, {"format": FORMAT, "layout": layout(weights)})
    return model


def _inputs_of_tiles(encoder: EncoderConfig, view: View) -> list[tuple[str, int, str]]:
    """The inputs of a view by round: the end of the name, the type, and the dimensions."""
    from onnx import TensorProto

    inputs: list[tuple[str, int, str]] = [
        ("queries", TensorProto.INT64, "MmT"),
        ("keys", TensorProto.INT64, "MmK"),
        ("mask", TensorProto.BOOL, "MmTK"),
    ]
    if has_neighbours(encoder.attention, view):
        inputs.append(("relations", TensorProto.INT32, "MmTK"))
    return inputs


def _encoder(graph: "_Graph", config: EncoderConfig) -> str:
    """The hidden states of the last layer, [S, D]."""
    rows = functools.partial(graph.rows, zero_beyond=config.original_ids)
    total = rows("encoder/embedding/word_embeddings", "input_ids")
    for number, feature in enumerate(TYPE_FEATURES):
        if feature not in config.disabled_features:
            name = f"encoder/embedding/token_type_embeddings_{number}"
            total = graph.op("Add", total, rows(name, feature))
    if config.position != "none":
        name = "encoder/embedding/position_embeddings"
        total = graph.op("Add", total, rows(name, "position_ids"))
    norm = functools.partial(graph.norm, epsilon=config.layer_norm_epsilon)
    hidden = norm("encoder/embedding/layer_norm", total)
    approximate = "tanh" if config.activation == "gelu_tanh" else "none"
    for number in range(config.num_layers):
        layer = f"encoder/layer_{number}"
        attended = graph.linear(
            f"{layer}/attention/output", _attention(graph, config, layer, hidden)
        )
        hidden = norm(f"{layer}/attention_layer_norm", graph.op("Add", attended, hidden))
        wide = graph.op(
            "Gelu", graph.linear(f"{layer}/intermediate", hidden), approximate=approximate
        )
        narrow = graph.linear(f"{layer}/output", wide)
        hidden = norm(f"{layer}/output_layer_norm", graph.op("Add", narrow, hidden))
    return hidden


def _attention(graph: "_Graph", config: EncoderConfig, layer: str, hidden: str) -> str:
    """The context of all heads of a layer, [S, D]."""
    views = views_of(config)
    heads = graph.const([0, config.num_heads, config.head_size], np.int64)
    sizes = [view.num_heads for view in views]

    def projected(name: str) -> list[str]:
        """The projection to the heads of each view, [h, S, E]."""
        tensor = graph.op("Reshape", graph.linear(f"{layer}/attention/{name}", hidden), heads)
        return graph.split(graph.transposed(tensor, [1, 0, 2]), sizes)

    scale = graph.const(1.0 / (config.softmax_temperature * config.head_size**0.5))
    first_heads = itertools.accumulate([0, *sizes[:-1]])
    contexts = []
    for view, first, query, key, value in zip(
        views, first_heads, *map(projected, ("query", "key", "value")), strict=True
    ):
        projections = graph.op("Mul", query, scale), key, value
        global_ = graph.attended(*projections, "global_tokens", None, f"{view.name}_global_mask")
        table = None  # of biases
        if has_neighbours(config.attention, view):
            name = f"{layer}/attention/relations/relative_bias_table"
            table = graph.biases_of_neighbours(name, view, first)
        attend = functools.partial(graph.attended, *projections, table=table)
        tiled = graph.scanned(view, _inputs_of_tiles(config, view), attend)  # [M, h, m, T, E]
        tiled = graph.transposed(tiled, [1, 0, 2, 3, 4])
        flat = graph.const([0, -1, config.head_size], np.int64)
        joined = graph.op("Concat", global_, graph.op("Reshape", tiled, flat), axis=1)
        contexts.append(graph.op("Gather", joined, f"{view.name}_places", axis=1))  # [h, S, E]
    context = graph.op("Concat", *contexts, axis=0)  # [H, S, E]
    return graph.op(
        "Reshape",
        graph.transposed(context, [1, 0, 2]),
        graph.const([0, config.hidden_size], np.int64),
    )


class _Graph:
    """A graph that grows node by node; each method returns the name of a tensor."""

    def __init__(self, weights: pathlib.Path) -> None:
        from onnx import TensorProto, helper

        self._helper, self._tensor = helper, TensorProto
        self._kinds = {"F16": TensorProto.FLOAT16, "F32": TensorProto.FLOAT}
        self._numbers = itertools.count()
        self.nodes: list[Any] = []
        self.constants: dict[str, Any] = {}
        with weights.open("rb") as file:
            self._begin = int.from_bytes(file.read(_BYTES_OF_LENGTH), "little")
            self._stored: Mapping[str, Any] = json.loads(file.read(self._begin))
        self._begin += _BYTES_OF_LENGTH

    def op(self, kind: str, *inputs: str, out: str | None = None, **attributes: Any) -> str:
        out = out or f"{kind}_{next(self._numbers)}"
        self.nodes.append(self._helper.make_node(kind, inputs, [out], name=out, **attributes))
        return out

    def const(self, values: Any, dtype: Any = np.float32) -> str:
        array = np.asarray(values, dtype)
        name = f"{array.dtype} {array.tolist()}"
        if name not in self.constants:
            kind = self._helper.np_dtype_to_tensor_dtype(array.dtype)
            self.constants[name] = self._helper.make_tensor(name, kind, array.shape, array.ravel())
        return name

    def weight(self, name: str) -> str:
        """A weight where it stands in the file, in its own precision."""
        if name not in self.constants:
            begin, end = self._stored[name]["data_offsets"]
            tensor = self._tensor(name=name, dims=self._stored[name]["shape"])
            tensor.data_type = self._kinds[self._stored[name]["dtype"]]
            tensor.data_location = self._tensor.EXTERNAL
            place = {"location": WEIGHTS_FILE, "offset": self._begin + begin, "length": end - begin}
            for key, value in place.items():
                tensor.external_data.add(key=key, value=str(value))
            self.constants[name] = tensor
        return name

    def single(self, name: str) -> str:
        """A weight in single precision."""
        return self.op("Cast", self.weight(name), to=self._tensor.FLOAT)

    def rows(self, name: str, ids: str, zero_beyond: bool) -> str:
        """Rows [S, D] of an embedding by ids [S]; beyond it the last one, or zeros."""
        size = self._stored[name]["shape"][0]
        last = self.const(size - 1, np.int32)
        inside = self.op("Clip", ids, self.const(0, np.int32), last)
        rows = self.op("Gather", self.weight(name), inside)
        rows = self.op("Cast", rows, to=self._tensor.FLOAT)
        if not zero_beyond:
            return rows
        exists = self.op("Unsqueeze", self.op("LessOrEqual", ids, last), self.const([1], np.int64))
        return self.op("Where", exists, rows, self.const(0.0))

    def linear(self, name: str, hidden: str) -> str:
        product = self.op("MatMul", hidden, self.single(f"{name}/kernel"))
        return self.op("Add", product, self.single(f"{name}/bias"))

    def norm(self, name: str, hidden: str, epsilon: float) -> str:
        scale, bias = self.single(f"{name}/gamma"), self.single(f"{name}/beta")
        return self.op("LayerNormalization", hidden, scale, bias, axis=-1, epsilon=epsilon)

    def transposed(self, tensor: str, axes: list[int]) -> str:
        return self.op("Transpose", tensor, perm=axes)

    def split(self, tensor: str, sizes: list[int]) -> list[str]:
        """The parts of a tensor along its first axis."""
        ends = np.cumsum([0, *sizes]).tolist()
        axis = self.const([0], np.int64)
        if len(sizes) == 1:
            return [tensor]
        return [
            self.op("Slice", tensor, self.const([a], np.int64), self.const([b], np.int64), axis)
            for a, b in itertools.pairwise(ends)
        ]

    def attended(
        self,
        query: str,
        key: str,
        value: str,
        queries: str,
        keys: str | None,
        mask: str,
        relations: str | None = None,
        table: str | None = None,
    ) -> str:
        """The context of some queries from some keys, by default all, of tensors [h, S, E]."""
        query = self.op("Gather", query, queries, axis=1)
        rank = 3
        if keys is not None:
            key, value = (self.op("Gather", tensor, keys, axis=1) for tensor in (key, value))
            rank = 4
        swapped = self.transposed(key, [*range(rank - 2), rank - 1, rank - 2])
        scores = self.op("MatMul", query, swapped)
        if table is None or relations is None:
            scores = self.op("Where", mask, scores, self.const(_MASKED))
        else:
            scores = self.op("Add", scores, self.biases(table, relations, mask, scores))
        return self.op("MatMul", self.op("Softmax", scores, axis=-1), value)

    def scanned(
        self, view: View, inputs: list[tuple[str, int, str]], compute: Callable[..., str]
    ) -> str:
        """The results of a computation with each round of a view's inputs, [M, ...], in a row."""
        value = self._helper.make_tensor_value_info
        number = next(self._numbers)
        given = [
            value(f"{name}_{number}", kind, [f"{view.name}_{it}" for it in shape[1:]])
            for name, kind, shape in inputs
        ]
        before, self.nodes = self.nodes, []
        result = value(compute(*(it.name for it in given)), self._tensor.FLOAT, [None] * 4)
        body = self._helper.make_graph(self.nodes, f"round_{number}", given, [result])
        self.nodes = before
        names = (f"{view.name}_{name}" for name, *_ in inputs)
        return self.op("Scan", *names, body=body, num_scan_inputs=len(inputs))

    def biases_of_neighbours(self, name: str, view: View, first_head: int) -> str:
        """The sums for the scores of cells above, of those below and of masked ones: [h, 3].

        From the biases [2, H] of all heads.
        """
        by_head = self.transposed(self.single(name), [1, 0])  # [H, 2]
        ends = [self.const([end], np.int64) for end in (first_head, first_head + view.num_heads)]
        biases = self.op("Slice", by_head, *ends, self.const([0], np.int64))  # [h, 2]
        masked = self.const(np.full((view.num_heads, 1), _MASKED))
        return self.op("Concat", biases, masked, axis=1)

    def biases(self, table: str, relations: str, mask: str, scores: str) -> str:
        """The summand of scores [h, m, T, K] by relations and a mask [m, T, K], and a table.

        It is a product of the table [h, 3] with what pairs are: a gather takes three times as long.
        """
        one_hot = [self.op("Equal", relations, self.const(it, np.int32)) for it in (0, 1)]
        one_hot.append(self.op("Not", mask))
        row = self.const([1, -1], np.int64)
        numbers = [self.op("Cast", it, to=self._tensor.FLOAT) for it in one_hot]
        flat = [self.op("Reshape", it, row) for it in numbers]
        product = self.op("MatMul", table, self.op("Concat", *flat, axis=0))  # [h, m * T * K]
        return self.op("Reshape", product, self.op("Shape", scores))
