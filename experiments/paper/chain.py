"""The papers' chain as one command: masked words, statements, SQA, WikiTableQuestions.

    python -m experiments.paper.chain --model=mate --size=large --input_dir=releases \\
        --vocab_file=bert_large/vocab.txt --init_checkpoint=bert_large --output_dir=out/chain

--input_dir holds the releases: interactions, TAPAS's pre-training corpus; SQA; WikiTableQuestions;
and for other --stages, such as mlm,statements,tabfact, Table-Fact-Checking and WikiSQL. --model is
a name of mate_tf/presets.py. The stage sqa is the preset sqa_large with that attention.

A stage makes its records in {output_dir}/sqa/data, trains in sqa/run from the weights of the stage
before, and writes those of its best evaluation to sqa/weights, in half precision. Started again,
the program passes over a stage whose weights are there, and goes on in the one that was
interrupted. --output_dir may be in a bucket, gs://bucket/folder. Changes such as
--config.gradient_accumulation_steps=32 are of all stages. Of several workers one makes the records,
and the others wait.

It begins with the least hours of each stage: the floating point operations of its matrix products,
counted from the sizes at the full length of the records, at the peak of --teraflops. The MATE
paper's 2 days for mlm on 32 cores of TPU v3 are 36 % of their peak. Nobody has run it at full size.
"""

import contextlib
import dataclasses
import pathlib
import tempfile
from collections.abc import Iterator
from typing import Any

from absl import flags

from experiments import program
from mate_tf.command_line import arguments
from mate_tf.command_line.arguments import say
from mate_tf.paths import as_path, is_remote
from mate_tf.presets import ARCHITECTURE_PRESETS

# The task that each stage's records are made with, and the folder of its release.
STAGES = {
    "mlm": ("INTERACTIONS", "interactions"),
    "statements": ("INTERACTIONS", "interactions"),
    "sqa": ("SQA", "SQA"),
    "wikisql": ("WIKISQL", "WikiSQL"),
    "wtq": ("WTQ", "WikiTableQuestions"),
    "tabfact": ("TABFACT", "Table-Fact-Checking"),
}
_MODEL = flags.DEFINE_enum("model", "mate", [*ARCHITECTURE_PRESETS], "the attention")
_SIZE = flags.DEFINE_enum("size", "large", ["base", "large"], "of the encoder")
_STAGES = flags.DEFINE_list("stages", "mlm,statements,sqa,wtq", f"of {', '.join(STAGES)}")
_INPUT = flags.DEFINE_string("input_dir", None, "folder of the releases", required=True)
_OUTPUT = flags.DEFINE_string("output_dir", None, "folder of the stages", required=True)
_VOCAB = flags.DEFINE_string("vocab_file", None, "BERT's or TAPAS's vocabulary", required=True)
_INIT = flags.DEFINE_string("init_checkpoint", None, "weights to start from; random without it")
_PEAK = flags.DEFINE_float("teraflops", 32 * 197.0, "a second of all devices; by default 32 v5e")
_DEVICES = program.define_flags(arguments.add_training_devices)


def config_of(stage: str, size: str, model: str, overrides: list[str]) -> Any:
    from mate_tf.training.starting_points import make_config

    name = f"mlm_mate_{size}" if stage == "mlm" else f"{stage}_{size}"
    return make_config(name, model, overrides)


def step_flops(config: Any) -> float:
    """Floating point operations of the matrix products in a training step, with full attention."""
    sizes, length = config.encoder, config.max_seq_length
    width = sizes.hidden_size
    weights = 4 * width**2 + 2 * width * sizes.intermediate_size
    token_flops = sizes.num_layers * 2 * (weights + 2 * length * width)
    return 3.0 * config.batch_size * length * token_flops  # forward, and backward twice as many


def make_records(stage: str, config: Any, folder: pathlib.Path) -> Iterator[str]:
    """Makes the records of a stage in folder/data, and yields what it did."""
    from experiments.synthesis.creation import Files, write_statements
    from experiments.synthesis.statements import StatementsConfig
    from mate_tf.features.config import FeatureConfig, MaskedLmConfig, PretrainingConfig
    from mate_tf.records.creation import Creation, create_pretraining_records, create_records

    task, release = STAGES[stage]
    source = str(pathlib.Path(_INPUT.value) / release)
    length = config.max_seq_length
    creation = Creation(
        task=task,
        input_dir=source,
        output_dir=str(folder / "data"),
        vocab_file=_VOCAB.value,
        progress=arguments.with_progress,
    )
    if stage == "mlm":
        masked = MaskedLmConfig(length, max_predictions=-(-20 * length // 128), require_text=False)
        creation = dataclasses.replace(creation, num_shards=64)
        yield from create_pretraining_records(creation, PretrainingConfig(masked))
        return
    with contextlib.ExitStack() as scratch:
        if stage == "statements":
            folder.mkdir(parents=True, exist_ok=True)
            beside = None if is_remote(folder) else folder
            texts = scratch.enter_context(tempfile.TemporaryDirectory(dir=beside))
            vocab_file = _VOCAB.value
            files = Files(task=task, input_dir=source, output_dir=texts, vocab_file=vocab_file)
            yield write_statements(files, StatementsConfig(), ("synthetic", "counterfactual"))
            creation = dataclasses.replace(creation, task="JSONL", input_dir=texts)
        yield from create_records(creation, FeatureConfig(length, trim_cells=True))


def run_stage(stage: str, config: Any, start: str | None, folder: pathlib.Path) -> None:
    """Makes what is not there of a stage: its records, its run, its weights."""
    from mate_tf.training.distribution import is_chief, sum_over_workers
    from mate_tf.training.examples import record_files
    from mate_tf.training.run import train_run
    from mate_tf.weights.run import export_weights

    if is_chief():
        try:
            record_files(config, folder / "data")
        except FileNotFoundError:
            for line in make_records(stage, config, folder):
                say(line)
    sum_over_workers([0])  # the others wait
    train_run(config, folder / "data", folder / "run", start)
    if is_chief():
        export_weights(folder / "run", folder / "weights")
    sum_over_workers([0])


def main(argv: list[str]) -> None:
    if unknown := set(_STAGES.value) - set(STAGES):
        raise ValueError(f"expected stages of {', '.join(STAGES)}, got {', '.join(unknown)}")
    configs = {
        stage: config_of(stage, _SIZE.value, _MODEL.value, argv[1:]) for stage in _STAGES.value
    }
    for stage, config in configs.items():
        teraflops = step_flops(config) / 1e12
        hours = config.num_steps * teraflops / _PEAK.value / 3600
        steps = f"{config.num_steps:,} steps of {teraflops:.1f} TFLOP"
        say(f"{stage}: {steps}, {hours:.1f} hours or more")
    start = _INIT.value
    with arguments.make_strategy(_DEVICES()).scope():
        for stage, config in configs.items():
            folder = as_path(_OUTPUT.value) / stage
            if (folder / "weights" / "model.safetensors").is_file():
                say(f"{stage}: its weights are there")
            else:
                run_stage(stage, config, start, folder)
            start = str(folder / "weights")


if __name__ == "__main__":
    program.run(main, trains=True)
