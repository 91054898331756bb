"""What is used of other libraries without their promise is there, and does what it is used for."""

import inspect
import io
import os
import subprocess
import sys
import types

import keras
import numpy as np
import pytest
import tensorflow as tf

from mate_tf import from_pretrained, private_apis
from tests.reading.workbooks import workbook
from tests.small import ROOT, cases

IMPORTING = """
from mate_tf.private_apis import import_tensorflow
import_tensorflow()
import tensorflow as tf
from mate_tf.layers.compilation import OnePass
tf.function(OnePass(tf.negative))(tf.constant(1.0))
"""


def test_importing_and_compiling_write_nothing():
    command = [sys.executable, "-c", IMPORTING]
    environment = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stderr == ""


def test_what_is_serious_is_passed_on(capfd):
    with private_apis.without_chatter():
        os.write(2, b"I0000 00:00:1 file.cc:1] informative\nE0000 00:00:1 file.cc:2] serious\n")
    assert capfd.readouterr().err == "E0000 00:00:1 file.cc:2] serious\n"


@pytest.mark.parametrize("module", ["no_such_package", "no_such_package.part"])
def test_a_package_of_an_extra_that_is_missing_is_named_with_the_extra(module):
    message = r"package no_such_package to read 'a'; pip install 'mate_tf\[formats\]'"
    with pytest.raises(ModuleNotFoundError, match=message):
        private_apis.import_extra(module, "formats", "to read 'a'")
    assert private_apis.import_extra("os.path", "formats", "to read 'a'") is os.path


@cases(
    "flags, expected",
    ("fpu avx512f avx512_bf16 fma", True),
    ("fpu amx_bf16", True),
    ("fpu avx512f avx512_bf16x", False),
    ("", False),
)
def test_a_processor_says_whether_it_has_bfloat16(flags, expected, tmp_path, monkeypatch):
    (tmp_path / "cpuinfo").write_text(f"processor\t: 0\nflags\t\t: {flags}\nbugs\t: amx_bf16\n")
    monkeypatch.setattr(private_apis, "_CPUS", tmp_path / "cpuinfo")
    assert private_apis.cpu_has_bfloat16() is expected


@cases("has_bfloat16, dtype", (True, "bfloat16"), (False, "float32"))
def test_answers_are_in_bfloat16_by_tensorflow_where_the_processor_has_it(
    has_bfloat16, dtype, monkeypatch
):
    monkeypatch.setattr("mate_tf.answers.inference.cpu_has_bfloat16", lambda: has_bfloat16)
    model = from_pretrained(runtime="tensorflow")
    assert model.model.compute_dtype == dtype
    assert model.computes_by.endswith(dtype) and model.computes_by in repr(model)
    missions = ROOT / "experiments" / "demo_data" / "moon_landings.csv"
    answer = model.answer(missions, "which missions flew in 1969?")
    assert answer.items == ("Apollo 11", "Apollo 12")
    exact = from_pretrained(runtime="tensorflow", dtype="float32")
    assert exact.model.compute_dtype == "float32"


def test_a_graph_for_xla_is_told_from_another():
    found = []

    def function(number: tf.Tensor) -> tf.Tensor:
        found.append(private_apis.compiles_with_xla())
        return number + 1

    for jit_compile in (False, True):
        tf.function(function, jit_compile=jit_compile, autograph=False)(tf.constant(1))
    assert found == [False, True]
    assert not private_apis.compiles_with_xla()


def test_xla_keeps_what_is_behind_a_barrier():
    number = tf.constant(3.0)

    def function(number: tf.Tensor) -> tf.Tensor:
        return private_apis.xla_barrier(number + 1.0) + 1.0

    compiled = tf.function(function, jit_compile=True, autograph=False)
    assert "opt-barrier" in compiled.experimental_get_compiler_ir(number)(stage="hlo")
    assert function(number) == compiled(number) == 5.0


def test_a_gradient_of_a_graph_is_in_the_registry_and_functions_within_it_are_listed():
    def gradient(upstream: tf.Tensor) -> tf.Tensor:
        return 3.0 * upstream

    before = set(private_apis.gradient_registry())
    with tf.Graph().as_default():
        tf.custom_gradient(lambda number: (number, gradient))(tf.constant(1.0))
    (name,) = set(private_apis.gradient_registry()) - before
    assert callable(private_apis.gradient_registry().pop(name)["type"])
    inner = tf.function(lambda number: number + 1, autograph=False)
    outer = tf.function(lambda number: inner(number) * 2, autograph=False)
    graph = tf.function(outer, autograph=False).get_concrete_function(tf.constant(1)).graph
    functions = dict(private_apis.functions_of(graph))
    operations = [{op.type for op in one.graph.get_operations()} for one in functions.values()]
    assert len(operations) == 2
    assert {"AddV2", "Mul"} <= set.union(*operations)


class Halved(private_apis.ChangesSummedGradients, keras.optimizers.SGD):
    def change_summed(self, gradients):
        return [gradient / 2 for gradient in gradients]


def test_summed_gradients_are_changed_before_the_update_and_variables_found():
    variable = keras.Variable([1.0, 2.0])
    optimizer = Halved(learning_rate=1.0, use_ema=True, ema_momentum=0.5)
    optimizer.build([variable])
    optimizer.apply([tf.constant([2.0, 4.0])])
    np.testing.assert_array_equal(variable.numpy(), [0.0, 0.0])
    (average,) = private_apis.moving_averages(optimizer)
    assert average.shape == (2,)
    variables = [keras.Variable([1.0]), keras.Variable([2.0])]
    optimizer = keras.optimizers.SGD()
    optimizer.build(variables)
    found = [private_apis.variable_index(optimizer, variable.value) for variable in variables]
    assert found == [0, 1]


def test_orbit_writes_where_it_is_told(tmp_path):
    orbit = pytest.importorskip("orbit", reason="the extra train is not installed")
    lines: list[str] = []
    before = orbit.controller._log
    with private_apis.orbit_logs_to(lines.append):
        orbit.Controller(
            global_step=tf.Variable(0, dtype=tf.int64),
            checkpoint_manager=None,
            evaluator=type("Silent", (orbit.AbstractEvaluator,), {"evaluate": lambda *_: {}})(),
        ).evaluate(steps=1)
    assert lines
    assert orbit.controller._log is before


def test_a_read_only_sheet_has_a_parser_that_knows_more_than_its_cells():
    openpyxl = pytest.importorskip("openpyxl", reason='not installed (the extra "formats")')
    content = workbook([["a", "b"], [1, 2]], hidden=[2], merged=["A1:B1"], hidden_columns=["B"])
    book = openpyxl.load_workbook(io.BytesIO(content), read_only=True)
    parser = private_apis.sheet_parser(book.worksheets[0])
    rows = [[cell["value"] for cell in cells] for _, cells in parser.parse()]
    assert rows == [["a"], [1, 2]]
    assert parser.row_dimensions["2"]["hidden"] == parser.column_dimensions["B"]["hidden"] == "1"
    assert parser.merged_cells.mergeCell[0].bounds == (1, 1, 2, 1)
    assert private_apis.sheet_parser(book.worksheets[0]).source.read(5) == b"<work"


def test_gradio_asks_blocks_whether_they_have_launched():
    utils = pytest.importorskip("gradio.processing_utils", reason='not installed (extra "page")')
    assert "not blocks.has_launched" in inspect.getsource(utils)
    blocks = types.SimpleNamespace()
    private_apis.guard_visitors_files(blocks)
    assert blocks.has_launched is True
