"""Keras layers: the embedding, the encoder, and what they are made of."""

import keras

if keras.backend.backend() != "tensorflow":
    raise ImportError(
        f"mate_tf's layers need Keras's TensorFlow backend, got {keras.backend.backend()}; set the "
        "environment variable KERAS_BACKEND=tensorflow before keras is imported"
    )
