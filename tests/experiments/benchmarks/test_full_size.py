"""Presets take two steps each, and a report says how that went."""

import json
import math
import types

import pytest
from absl import flags

from experiments.benchmarks import full_size
from experiments.benchmarks.check_tpu import small_steps


@pytest.mark.medium
def test_a_preset_takes_two_steps_of_one_example(monkeypatch):
    (small,) = (step.config() for step in small_steps() if step.name == "hybridqa_mate_large")
    steps = [types.SimpleNamespace(name="small", whole=small)]
    monkeypatch.setattr(full_size, "small_steps", lambda: steps)
    result = full_size.take_steps("small")
    assert result["tokens"] == 128
    assert len(result["losses"]) == len(result["seconds"]) == 2
    assert all(map(math.isfinite, result["losses"]))
    assert result["memory_gb"] > 0.1 and result["million_parameters"] > 1


def test_a_preset_that_fails_is_reported_and_the_others_go_on(monkeypatch, tmp_path):
    def run(_, name):
        if name == "fails":
            raise ValueError("too large")
        return {"losses": [2.0, 1.0]}

    steps = [types.SimpleNamespace(name=name) for name in ("fails", "works")]
    monkeypatch.setattr(full_size, "small_steps", lambda: steps)
    monkeypatch.setattr(full_size, "in_its_own_process", run)
    flags.FLAGS(["full_size", f"--output_dir={tmp_path}", "--only=fails,works"])
    assert full_size.main([]) == 1
    results = json.loads((tmp_path / "full_size.json").read_text())
    assert results == {"fails": {"error": "ValueError: too large"}, "works": {"losses": [2.0, 1.0]}}
    flags.FLAGS(["full_size", f"--output_dir={tmp_path}/other", "--only=works"])
    assert full_size.main([]) == 0
    flags.FLAGS(["full_size", "--only=work"])
    with pytest.raises(ValueError, match=r"^expected --only among fails, works, got 'work'$"):
        full_size.main([])
