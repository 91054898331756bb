"""A config of configs, for the tests of what reads and changes them."""

import dataclasses
from typing import Literal


@dataclasses.dataclass(frozen=True)
class Attention:
    bucket_size: int = 42
    kind: Literal["dense", "multi_view"] = "dense"


@dataclasses.dataclass(frozen=True)
class Encoder:
    hidden_size: int = 64
    num_heads: int = 4
    attention: Attention = Attention()

    def __post_init__(self):
        if self.hidden_size % self.num_heads:
            raise ValueError("expected hidden_size to be a multiple of num_heads")


@dataclasses.dataclass(frozen=True)
class Config:
    name: str
    learning_rate: float = 1e-3
    shuffle: bool = True
    limit: int | None = None
    lengths: tuple[int, ...] = (128, 512)
    encoder: Encoder = Encoder()
