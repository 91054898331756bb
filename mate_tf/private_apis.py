"""Parts of other libraries that this project uses and cannot count on.

Packages of extras may be missing. Names without a promise may change: setup.py bounds the versions,
and tests/test_private_apis.py fails where a newer one has changed what stands here.
"""

import contextlib
import importlib
import os
import pathlib
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import tensorflow as tf

# Informative lines of TensorFlow's C++ side, and what it writes before the first of them.
_CHATTER = re.compile(rb"I\d{4} |WARNING: All log messages before absl::InitializeLog\(\) ")
_CPUS = pathlib.Path("/proc/cpuinfo")  # of Linux
_BFLOAT16 = re.compile(r"^flags\s.*\b(?:avx512_bf16|amx_bf16)\b", re.MULTILINE)
# An operation in a profile, its name and its kind, but for calls, which consist of others.
_PROFILED = re.compile(r"[^:]+:(\w+(?<!Call)(?<!While)(?<!If)(?<!Case))")


def import_extra(module: str, extra: str, purpose: str) -> Any:
    """A module of a package that an extra of setup.py brings, for a purpose: "to read 'a.xlsx'".

    ModuleNotFoundError if it is not installed; the message says how to install it.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        name = (error.name or module).split(".")[0]
        raise ModuleNotFoundError(
            f"expected the package {name} {purpose}; pip install 'mate_tf[{extra}]'",
            name=error.name,
        ) from None


def import_tensorflow() -> None:
    """Imports TensorFlow without its informative lines; ModuleNotFoundError where there is none."""
    # Its C++ side logs harmless errors on machines without a GPU; what matters is raised.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    if sys.modules.get("tensorflow"):
        return
    try:
        with without_chatter():
            importlib.import_module("tensorflow")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "expected TensorFlow, without which models answer by a model.onnx alone; pip install "
            "tensorflow, which has no packages for Python 3.14 and Intel Macs",
            name=error.name,
        ) from None


def cpu_has_bfloat16() -> bool:
    """Whether the CPU computes in bfloat16, as Linux says; elsewhere it is not known."""
    return _CPUS.is_file() and _BFLOAT16.search(_CPUS.read_text(encoding="utf-8")) is not None


# --- pandas, 2 and 3 ---


def shown_frame(styler: Any) -> Any:
    """The data frame of a Styler without the rows, columns and index that it hides.

    `Styler.export` says of the index alone whether it is hidden.
    """
    frame = styler.data
    rows = [row for row in range(len(frame)) if row not in set(styler.hidden_rows)]
    columns = [it for it in range(frame.shape[1]) if it not in set(styler.hidden_columns)]
    levels = [level for level, is_hidden in enumerate(styler.hide_index_) if is_hidden]
    return frame.iloc[rows, columns].reset_index(level=levels, drop=True)


# --- TensorFlow, 2.20 and 2.21 ---


@contextlib.contextmanager
def without_chatter() -> Iterator[None]:
    """Within it, TensorFlow's C++ side writes no informative lines; no log level turns off all.

    What else is written to standard error meanwhile is passed on at the end.
    """
    try:
        stderr = os.dup(2)
    except OSError:  # it is closed
        yield
        return
    with tempfile.TemporaryFile() as written:
        os.dup2(written.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
            written.seek(0)
            for line in written:
                if not _CHATTER.match(line):
                    os.write(2, line)


def compiles_with_xla() -> bool:
    """Whether the function that is being traced is one for XLA.

    XLA lacks some operations and is faster without others. No public name tells which kind of
    graph is being made.
    """
    import tensorflow as tf
    from tensorflow.python.ops import control_flow_util

    return control_flow_util.GraphOrParentsInXlaContext(tf.compat.v1.get_default_graph())


def xla_barrier(tensor: "tf.Tensor") -> "tf.Tensor":
    """The same tensor, which XLA keeps as it is; it does not compute it again from what it is of.

    TensorFlow has no public name for it. Outside of XLA nothing happens.
    """
    if not compiles_with_xla():
        return tensor
    from tensorflow.compiler.tf2xla.ops import gen_xla_ops

    (kept,) = gen_xla_ops.xla_optimization_barrier([tensor])
    return kept


def gradient_registry() -> dict[str, dict[str, Any]]:
    """All registered gradients by name: each entry holds the function as "type".

    tf.custom_gradient registers one for each call within a graph, which keeps the graph alive. No
    public name takes one out.
    """
    from tensorflow.python.framework import ops

    return ops.gradient_registry._registry


def functions_of(graph: "tf.Graph") -> Iterable[tuple[str, Any]]:
    """The functions that a graph calls, by name, each with its own `graph`, at any depth.

    A graph's GraphDef names them too, but without the shapes of their tensors.
    """
    for name, function in graph._functions.items():
        if hasattr(function, "graph"):
            yield name, function
            yield from functions_of(function.graph)


def profiled_seconds(folder: pathlib.Path) -> dict[str, float]:
    """The seconds of each kind of operation in the profiles of a folder, such as "MatMul".

    They are those of GPUs if the profile has any, by the names of kernels where no operation is
    known, or else those of CPUs. tf.profiler writes profiles, and no public name reads them.
    """
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    seconds: dict[bool, dict[str, float]] = {True: {}, False: {}}
    for file in folder.rglob("*.xplane.pb"):
        for plane in xplane_pb2.XSpace.FromString(file.read_bytes()).planes:
            on_gpu, stats = plane.name.startswith("/device:GPU"), plane.stat_metadata
            for event in (event for line in plane.lines for event in line.events):
                kind = plane.event_metadata[event.metadata_id]
                name = kind.name
                for stat in (*kind.stats, *event.stats):
                    if stats[stat.metadata_id].name == "tf_op":
                        name = stat.str_value or stats[stat.ref_value].name
                is_operation = _PROFILED.fullmatch(name)  # others are the runtime's own on a CPU
                if on_gpu or is_operation:
                    operation = is_operation[1] if is_operation else name
                    before = seconds[on_gpu].get(operation, 0.0)
                    seconds[on_gpu][operation] = before + event.duration_ps / 1e12
    return seconds[True] or seconds[False]


# --- Keras, 3.10 to 3.15 ---


class ChangesSummedGradients:
    """A Keras optimizer, by inheritance, that changes gradients once they are summed up.

    Keras itself clips each replica's gradients before their sum, so that the result depends on the
    number of replicas.
    """

    def change_summed(self, gradients: Sequence[Any]) -> Sequence[Any]:
        """From the sums over all replicas to what the update is made of."""
        raise NotImplementedError

    def _all_reduce_sum_gradients(self, grads_and_vars: Any) -> list[tuple[Any, Any]]:
        summed = super()._all_reduce_sum_gradients(grads_and_vars)  # type: ignore[misc]
        gradients, variables = zip(*summed, strict=True)
        return list(zip(self.change_summed(gradients), variables, strict=True))


def moving_averages(optimizer: Any) -> Sequence[Any]:
    """The averages that an optimizer with `use_ema` keeps, in the order of the variables."""
    # The public `finalize_variable_values` overwrites the variables, which are needed again.
    return optimizer._model_variables_moving_average


def variable_index(optimizer: Any, variable: Any) -> int:
    """The place of the variable that `update_step` is given among those of `build`."""
    # On several replicas it is a replica's part of the variable, which has no path.
    return optimizer._get_variable_index(variable)


# --- Orbit, in tf-models-official 2.20 ---


@contextlib.contextmanager
def orbit_logs_to(log: Callable[..., None]) -> Iterator[None]:
    """Within it Orbit's controller writes its lines with `log`; no option turns them off."""
    import orbit

    original = orbit.controller._log
    orbit.controller._log = log
    try:
        yield
    finally:
        orbit.controller._log = original


def guard_visitors_files(blocks: Any) -> None:
    """Lets mounted Gradio blocks take no path for a visitor's file but one that was uploaded."""
    blocks.has_launched = True


def sheet_parser(sheet: Any) -> Any:
    """The parser of a read-only sheet of openpyxl, for what the sheet has beside its cells."""
    from openpyxl.worksheet._reader import WorkSheetParser

    book = sheet.parent
    return WorkSheetParser(
        sheet._get_source(),
        sheet._shared_strings,
        data_only=True,
        epoch=book.epoch,
        date_formats=book._date_formats,
        timedelta_formats=book._timedelta_formats,
    )
