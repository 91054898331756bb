"""The floating-point operations of a graph's matrix products."""

import math
from typing import Any

from mate_tf.private_apis import functions_of


def matrix_flops(graph: Any) -> int | None:
    """Those of all matrix products, two for each pair of numbers that are multiplied and added.

    What else there is to compute is of lower order. Of several branches the costliest counts.

    Args:
        graph: a tf.Graph, as of a concrete function.

    Returns:
        Their number; None where a shape hangs on the data.
    """
    functions = dict(functions_of(graph))

    def of_graph(graph) -> int:
        return sum(of_operation(operation) for operation in graph.get_operations())

    def of_operation(operation) -> int:
        if operation.type in ("MatMul", "BatchMatMulV2"):
            inner = operation.inputs[0].shape[-2 if _is_transposed(operation) else -1]
            return 2 * math.prod(operation.outputs[0].shape) * inner
        if operation.type == "Einsum":
            return 2 * math.prod(_label_sizes(operation).values())
        names = [
            attribute.func.name
            for attribute in operation.node_def.attr.values()
            if attribute.HasField("func")
        ]
        return max(
            (of_graph(functions[name].graph) for name in names if name in functions), default=0
        )

    try:
        return of_graph(graph)
    except (TypeError, ValueError):  # a product with None, or a shape of unknown rank
        return None


def _is_transposed(operation) -> bool:
    name = "transpose_a" if operation.type == "MatMul" else "adj_x"
    return bool(operation.get_attr(name))


def _label_sizes(einsum) -> dict[str, int]:
    inputs = einsum.get_attr("equation").decode().split("->")[0].split(",")
    sizes: dict[str, int] = {}
    for labels, tensor in zip(inputs, einsum.inputs, strict=True):
        more = tensor.shape.rank - len(labels.replace("...", ""))
        each = labels.replace("...", "".join(map(str, range(more))))  # digits: no labels
        sizes |= zip(each, tensor.shape, strict=True)
    return sizes
