"""The break-even length, measured on a tiny encoder."""

from tests.small import run_binary

TINY = ("--config.encoder.hidden_size=12", "--config.encoder.intermediate_size=12")


def test_prints_the_setting_for_a_preset():
    result = run_binary("experiments.benchmarks.break_even", "--longest=128", "--rounds=1", *TINY)
    assert result.returncode == 0, result.stderr
    setting, length = result.stdout.strip().split("=")
    assert setting == "--config.encoder.attention.dense_up_to"
    assert int(length) in (0, 64, 128)
    assert "tokens: dense" in result.stderr


def test_a_preset_without_a_linear_evaluator_is_refused():
    result = run_binary("experiments.benchmarks.break_even", "--config=wtq_minilm")
    assert result.returncode == 1
    assert "expected a config whose encoder has a linear evaluator" in result.stderr
