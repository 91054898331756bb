"""Our variables under the names that the published TF1 checkpoints give them."""

import keras

from mate_tf.config import TYPE_FEATURES
from mate_tf.layers.attention.linformer import LinformerAttention
from mate_tf.layers.attention.table_etc import TableETCAttention
from mate_tf.layers.encoder import EncoderBlock, TableEncoder


def variables_by_name(model: keras.layers.Layer) -> dict[str, keras.Variable]:
    """Maps checkpoint names to the variables of an encoder or of a model that has one.

    Args:
        model: a built `TableEncoder`, or a model with one as `.encoder`; the other variables of
            such a model, those of its heads, go by their own name, or by that which its
            `checkpoint_variables`, where it has them, give them: Keras allows no scope in a name.

    Raises:
        ValueError: if the variables do not exist yet, or two would have one name.
    """
    encoder = encoder_of(model)
    if not encoder.built:
        raise ValueError(f"expected a built model, got {model.name!r} without variables")
    names = _encoder_variables(encoder)
    if hasattr(model, "checkpoint_variables"):
        names |= model.checkpoint_variables()
    known = {id(variable) for variable in names.values()}
    for variable in model.weights:
        if id(variable) in known or variable.path.endswith("seed_generator_state"):
            continue
        if variable.name in names:
            raise ValueError(f"two variables are named {variable.name!r} in model {model.name!r}")
        names[variable.name] = variable
    return names


def encoder_of(model: keras.layers.Layer) -> TableEncoder:
    """The model itself where it is an encoder, or else its `.encoder`."""
    return model if isinstance(model, TableEncoder) else model.encoder


def weights_by_path(model: keras.layers.Layer) -> dict[str, keras.Variable]:
    """The weights by their path in the model, as the checkpoints of our own runs keep them.

    Raises:
        ValueError: if two have the same path.
    """
    root = f"{model.name}/"  # numbered, where a process makes several models
    weights = {weight.path.removeprefix(root): weight for weight in model.weights}
    if len(weights) != len(model.weights):
        raise ValueError(f"expected weights of different paths in {model.name}")
    return weights


def _encoder_variables(encoder: TableEncoder) -> dict[str, keras.Variable]:
    embedding = encoder.embedding
    names = {"bert/embeddings/word_embeddings": embedding.word_embeddings}
    if embedding.position_embeddings is not None:
        names["bert/embeddings/position_embeddings"] = embedding.position_embeddings
    for index, feature in enumerate(TYPE_FEATURES):
        if feature in embedding.type_embeddings:
            name = f"bert/embeddings/token_type_embeddings_{index}"
            names[name] = embedding.type_embeddings[feature]
    if embedding.global_embeddings is not None:
        names["bert/embeddings/global_embeddings"] = embedding.global_embeddings
    names |= _layer_norm("bert/embeddings/LayerNorm", embedding.layer_norm)
    for index, block in enumerate(encoder.blocks):
        names |= _block_variables(f"bert/encoder/layer_{index}", block)
    return names | _linear("bert/pooler/dense", encoder.pooler)


def _block_variables(prefix: str, block: EncoderBlock) -> dict[str, keras.Variable]:
    attention = block.attention
    of_its_kind = {}
    if isinstance(attention, LinformerAttention):
        name = f"{prefix}/attention/self/proj_seq_length/kernel"
        of_its_kind[name] = attention.length_projection
    if isinstance(attention, TableETCAttention):
        labels = attention.label_embeddings
        of_its_kind[f"{prefix}/attention/self/{labels.name}"] = labels
    for biases in (attention.relations, attention.grammar_bias):
        for variable in biases.weights if biases is not None else ():
            of_its_kind[f"{prefix}/attention/self/{variable.name}"] = variable
    return (
        of_its_kind
        | _linear(f"{prefix}/attention/self/query", attention.query)
        | _linear(f"{prefix}/attention/self/key", attention.key)
        | _linear(f"{prefix}/attention/self/value", attention.value)
        | _linear(f"{prefix}/attention/output/dense", attention.output_projection)
        | _layer_norm(f"{prefix}/attention/output/LayerNorm", block.attention_layer_norm)
        | _linear(f"{prefix}/intermediate/dense", block.intermediate)
        | _linear(f"{prefix}/output/dense", block.output_projection)
        | _layer_norm(f"{prefix}/output/LayerNorm", block.output_layer_norm)
    )


def _linear(prefix: str, layer) -> dict[str, keras.Variable]:
    return {f"{prefix}/kernel": layer.kernel, f"{prefix}/bias": layer.bias}


def _layer_norm(prefix: str, layer) -> dict[str, keras.Variable]:
    return {f"{prefix}/gamma": layer.gamma, f"{prefix}/beta": layer.beta}
