"""Steps compiled for a TPU: what is exported, what is read of the compiler, and what is kept."""

import dataclasses

import pytest

from experiments.benchmarks import check_tpu
from experiments.benchmarks.check_tpu import STEPS, Step, check, compiled, export
from experiments.benchmarks.tpu_compiler import Needs, needs_too_much
from tests.small import ROOT, cases

SMALL = tuple(
    f"--config.encoder.{name}"
    for name in ("vocab_size=64", "hidden_size=16", "num_heads=2", "intermediate_size=32")
)
LIBTPU = ROOT / ".venv-tpu/bin/python"

# In the place of libtpu's Python: memory grows with the layers.
COMPILER = """#!/usr/bin/env python3
import json, pathlib, sys
needs, layers = {needs}, int(pathlib.Path(sys.argv[-1]).read_text())
print(json.dumps(needs | {{"temporaries": layers * needs["temporaries"]}}))
"""


def test_every_step_has_a_name_of_its_own_and_a_config():
    assert len({step.name for step in STEPS}) == len(STEPS)
    for step in STEPS:
        config = step.config(num_layers=2)
        assert config.encoder.num_layers == 2
        assert config.batch_size % check_tpu.CORES == 0
        assert config.dtype == "mixed_bfloat16"


@pytest.mark.parametrize("preset", ["mlm_mate_large", "tabfact_base"])
def test_a_whole_step_is_exported(preset, tmp_path):
    config = Step(preset, None, (*SMALL, "--config.max_seq_length=32", "--config.length_buckets="))
    export(config.config(num_layers=1), tmp_path / "step.hlo", size=2)
    program = (tmp_path / "step.hlo").read_bytes()
    for part in (b"ResourceApplyAdam", b"rng-bit-generator", b"clip_by_global_norm"):
        assert part in program


TASKS = ("mlm_mate", "wtq", "tabfact", "hybridqa_mate", "hybridqa_reader")


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("attention", check_tpu.ATTENTIONS)
def test_every_attention_is_exported_with_every_task(attention, task, tmp_path):
    whole = Step(f"{task}_large", attention).config()
    export(check_tpu.SmallStep("", whole).config(), tmp_path / "step.hlo")
    assert b"ResourceApplyAdam" in (tmp_path / "step.hlo").read_bytes()


@pytest.mark.slow
@pytest.mark.skipif(not LIBTPU.is_file(), reason="needs .venv-tpu; make check-tpu")
def test_a_step_with_dropout_compiles_for_a_chip_and_draws_with_its_generator(tmp_path):
    changes = (*SMALL, "--config.max_seq_length=128", "--config.length_buckets=")
    found = compiled(Step("tabfact_base", None, changes), 1, tmp_path, str(LIBTPU))
    assert found.fits and not found.num_dynamic
    assert found.memory < 2**30  # Philox alone would take thousands of operations


def test_needs_follow_from_two_depths_or_from_the_compilers_error():
    two = Needs(10.0, 7.0, 100.0, 50.0)
    four = Needs(14.0, 13.0, 180.0, 90.0)
    assert four.at(24, 4, two, 2) == Needs(54.0, 73.0, 980.0, 490.0)
    message = "RESOURCE_EXHAUSTED: Ran out of memory. Used 20.60G of 15.75G hbm. Exceeded by 4.85G"
    needs = needs_too_much(message)
    assert needs is not None
    assert needs.memory == 20.6 * 2**30
    assert not needs.fits
    assert needs_too_much("INTERNAL: Mosaic failed") is None


@cases(
    "changes, is_good, in_row",
    ({}, True, "| yes |"),
    ({"temporaries": 2.0**30}, False, "| **no** |"),  # a GiB a layer: 24 at full depth
    ({"num_dynamic": 1}, False, "2 dynamic shapes"),
    ({"fits": False}, False, "no room even with these layers"),
)
def test_a_step_is_judged_at_full_depth_and_once(changes, is_good, in_row, tmp_path, monkeypatch):
    exported = []

    def export_name(config, path):
        exported.append(config.encoder.num_layers)
        path.write_text(str(config.encoder.num_layers), encoding="utf-8")

    monkeypatch.setattr(check_tpu, "export_apart", export_name)
    needs = dataclasses.asdict(Needs(2.0**20, 2.0**20, 1e12, 1e9)) | changes
    compiler = tmp_path / "compiler"
    compiler.write_text(COMPILER.format(needs=needs), encoding="utf-8")
    compiler.chmod(0o700)
    for _ in range(2):  # the second time from the files
        ((row, good),) = check([Step("mlm_mate_large")], [1, 2], tmp_path, str(compiler))
        assert good == is_good
        assert in_row in row
    assert sorted(exported) == [1, 2]


def test_what_does_not_compile_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(check_tpu, "export_apart", lambda config, path: path.write_text(""))
    compiler = tmp_path / "compiler"
    compiler.write_text("#!/bin/sh\necho INTERNAL: Mosaic failed >&2\nexit 1\n")
    compiler.chmod(0o700)
    steps = [Step("mlm_mate_large"), Step("tabfact_large")]
    rows = list(check(steps, [1], tmp_path, str(compiler)))
    assert [is_good for _, is_good in rows] == [False, False]
    assert all("does not compile: INTERNAL: Mosaic failed" in row for row, _ in rows)
