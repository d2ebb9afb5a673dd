"""The network of the paper: a mirrored autoencoder whose latent vector is the logits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

__all__ = ["FIRST", "Autoencoder", "generator"]

FIRST = "encoder.0.weight"  # the name of the weight that reads the features

ACTIVATIONS = {"silu": nn.SiLU, "relu": nn.ReLU}


def generator(seed: int, *stream: int) -> torch.Generator:
    """Return a generator of its own for each stream of a seed, so that nothing depends on what was drawn before."""
    mixed = seed
    for number in stream:
        mixed = (mixed * 6364136223846793005 + number + 1442695040888963407) % (1 << 63)
    return torch.Generator().manual_seed(mixed)


def _layers(sizes: Sequence[int], activation: str, draw: torch.Generator, dtype: torch.dtype) -> nn.Sequential:
    modules: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        layer = nn.Linear(inputs, outputs, dtype=dtype, device="meta").to_empty(device="cpu")
        bound = 1.0 / math.sqrt(max(inputs, 1))
        with torch.no_grad():  # the usual start of a linear layer, but from this generator alone
            layer.weight.uniform_(-bound, bound, generator=draw)
            layer.bias.uniform_(-bound, bound, generator=draw)
        modules += [layer, ACTIVATIONS[activation]()]
    return nn.Sequential(*modules[:-1])


class Autoencoder(nn.Module):
    """``features -> hidden -> latent`` and back.

    Parameters
    ----------
    features, latent : int
        The size of the input, and the number of classes.
    hidden : sequence of int
        The sizes of the hidden layers of the encoder; the decoder has them in reverse.
    activation : {"silu", "relu"}
        Between the layers.
    outputs : int, optional
        The size of the reconstruction, that of the input by default; with 0 there is no decoder.
    """

    encoder: nn.Sequential
    decoder: nn.Sequential | None

    def __init__(
        self,
        features: int,
        hidden: Sequence[int],
        latent: int,
        activation: str = "silu",
        *,
        seed: int = 0,
        outputs: int | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        outputs = features if outputs is None else outputs
        draw = generator(seed, 1)
        self.encoder = _layers([features, *hidden, latent], activation, draw, dtype)
        self.decoder = _layers([latent, *hidden[::-1], outputs], activation, draw, dtype) if outputs else None

    @classmethod
    def of(cls, state: Mapping[str, Tensor], activation: str) -> Autoencoder:
        """Return the network of a state dict, whose shapes tell its sizes."""

        def sizes(part: str) -> list[int]:
            weights = [name for name in state if name.startswith(part) and name.endswith(".weight")]
            return [state[name].shape[0] for name in sorted(weights, key=lambda name: int(name.split(".")[1]))]

        *hidden, latent = sizes("encoder")
        outputs = (sizes("decoder") or [0])[-1]
        first = state[FIRST]
        network = cls(first.shape[1], hidden, latent, activation, outputs=outputs, dtype=first.dtype)
        network.load_state_dict(state)
        return network.eval()

    @property
    def activation(self) -> str:
        """The name of what stands between the layers."""
        return type(self.encoder[1]).__name__.lower()

    @property
    def first(self) -> nn.Linear:
        """The layer that reads the features: column j of its weight belongs to feature j."""
        layer = self.encoder[0]
        assert isinstance(layer, nn.Linear)
        return layer

    def forward(self, X: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return the latent vectors, and the reconstruction if there is a decoder."""
        Z = self.encoder(X)
        return Z, None if self.decoder is None else self.decoder(Z)
