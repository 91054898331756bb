"""Keras layers: the embedding, the encoder, and what they are made of."""
