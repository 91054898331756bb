"""mate-tf export: a trained or published model as a SavedModel, for ONNX, or its weights alone."""

import argparse
from typing import Any

from mate_tf.command_line import arguments
from mate_tf.command_line.arguments import say

HELP = "export a trained model, to serve it or to pass it on"
DESCRIPTION = """\
Exports the model of a run (`mate-tf train`) as a SavedModel: the weights of its best evaluation,
with features made as the training's records were.

Without a run it exports the model that MATE_TF_MODEL names, or the one that comes with the package.

The folder answers with every command that takes --model, and serves with stock TensorFlow Serving:
the signature serving_default takes serialized tf.Examples, features the nine token features, and
tables text. An exported model that is there already is replaced, with its calibration.

--format=onnx writes the weights and a graph for ONNX Runtime, model.onnx, which answers without
TensorFlow; with --single-file the weights are in the graph, for other programs (docs/onnx.md).

--checkpoint takes a published model in place of a run: a Hugging Face folder of TAPAS or the name
of one on the Hub (pip install 'mate_tf[hub]'), or a TF1 checkpoint with its bert_config.json, for
which --config says which heads it has. Features are then made as the authors' release makes them.
"""
EPILOG = """\
examples:
  mate-tf export --output-dir=my_model         (the model that comes with the package)
  mate-tf export --model-dir=my_run --output-dir=my_model
  mate-tf export --model-dir=my_run --output-dir=my_weights --weights-alone
  mate-tf export --output-dir=my_onnx --format=onnx --single-file
  mate-tf export --checkpoint=google/tapas-base-finetuned-wtq --architecture=mate \\
    --output-dir=tapas_wtq
"""
_OF_CHECKPOINTS = ("revision", "config", "position", "architecture", "vocab_file")


def add_arguments(parser: Any) -> None:
    """Adds what the command takes."""
    arguments.add(
        parser,
        """
        --model-dir=FOLDER  folder of a run; by default the model that other commands ask
        --checkpoint=WEIGHTS  a published model in place of a run: a Hugging Face folder, a name on
            the Hub or the prefix of a TF1 checkpoint
        --output-dir=FOLDER  folder to write the model to
        --format=saved_model|onnx  a SavedModel, which has a model.onnx in assets.extra, or the
            weights with a model.onnx alone
        --single-file  with --format=onnx: the weights are in model.onnx
        --weights-alone  of a run: write its weights in half precision in place of a SavedModel; the
            folder answers, is exported and starts other runs like the run's own
        --max-seq-length=N  the longest input, in tokens, that the exported model accepts; by
            default 16384, with dense attention 2048, with absolute positions as many as there are,
            with a Linformer its sequence_length
        """,
        types=dict(max_seq_length=arguments.number(4)),
        defaults=dict(format="saved_model"),
        required=["output_dir"],
    )
    arguments.add(
        parser.add_argument_group("for a --checkpoint"),
        """
        --revision=REVISION  of a name on the Hub: a commit, branch or tag
        --config=CONFIG  whose heads a TF1 checkpoint has, as mate-tf train takes it
        --position=per_cell|absolute  how a TF1 checkpoint counts positions; by default as --config
            does: per_cell, as the TAPAS checkpoints whose names end in _reset
        --architecture=NAME  how tokens attend to each other: an architecture that adds no weights,
            such as sat, mate or mate_exact; by default all to all, as TAPAS was trained
        --vocab-file=FILE  the vocabulary; by default vocab.txt beside it
        """,
    )


def run(options: argparse.Namespace) -> None:
    """Exports the model and says where it is."""
    if options.model_dir is not None and options.checkpoint is not None:
        raise ValueError("expected either --model-dir or --checkpoint, got both")
    given = [name for name in _OF_CHECKPOINTS if getattr(options, name) is not None]
    if options.checkpoint is None and given:
        option = given[0].replace("_", "-")
        raise ValueError(f"expected --{option} with --checkpoint alone, got none")
    if options.checkpoint is None:
        options.model_dir = arguments.find_model(options.model_dir)

    if options.single_file and options.format != "onnx":
        raise ValueError("expected --single-file with --format=onnx alone")
    if options.weights_alone:
        import tensorflow as tf

        from mate_tf.serving.onnx_graph import add_graph
        from mate_tf.weights.run import export_weights

        if options.model_dir is None:
            raise ValueError("expected --weights-alone with --model-dir, got --checkpoint")
        path = export_weights(options.model_dir, options.output_dir)
        say(f"wrote {tf.io.gfile.stat(str(path)).length / 1e6:.1f} MB to {path}")
        if reason := add_graph(options.output_dir):
            say(f"there is no model.onnx beside it: {reason}")
        return

    from mate_tf.answers.kinds import answering_kind
    from mate_tf.serving.export import export_onnx, export_stored
    from mate_tf.serving.stored import run_model

    if options.model_dir is None:
        stored = _published(options)
    else:
        stored = run_model(options.model_dir, max_seq_length=options.max_seq_length)
    if options.format == "onnx":
        export_onnx(stored, options.output_dir, options.single_file)
    else:
        export_stored(stored, options.output_dir)
    kind = answering_kind(stored.task_config)
    name = stored.name
    if stored.step == 0:
        name = f"the weights that {options.model_dir} began with, for no evaluation was better,"
    say(f"exported {name} ({kind}) to {options.output_dir}")


def _published(options: argparse.Namespace) -> Any:
    """The model of --checkpoint."""
    from mate_tf.serving.stored import published_model
    from mate_tf.training.starting_points import find_config
    from mate_tf.weights.folder import kind_of_weights, locate_weights
    from mate_tf.weights.hugging_face import hugging_face_task_config

    config: Any = find_config(options.config) if options.config else None
    location = locate_weights(options.checkpoint, options.revision)
    is_described = kind_of_weights(location) == "hugging_face"
    if config is None and not (is_described and hugging_face_task_config(location)):
        raise ValueError(
            f"expected --config with the heads of the checkpoint, such as wtq_base, for {location} "
            "describes none"
        )
    more = {}
    if config is not None and not is_described:
        more["position"] = options.position or config.encoder.position
    return published_model(
        location,
        config.task if config else None,
        architecture=options.architecture,
        vocab_file=options.vocab_file,
        max_seq_length=options.max_seq_length,
        **more,
    )._replace(name=options.checkpoint)
