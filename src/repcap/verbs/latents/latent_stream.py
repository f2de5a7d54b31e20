"""The two passes of `latents` over a text: states come from the model's taps and go into sums, nothing is kept."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from repcap.errors import SourceError
from repcap.geometry.epsilon.epsilon import Spread
from repcap.geometry.measurement.stream import FedBuilder, StreamMoments
from repcap.geometry.rows.unit_rows import Normaliser
from repcap.matrix import ProgressFn
from repcap.verbs.latents.latent_model import NORMED, RAW, Taps, find_blocks, max_window
from repcap.verbs.latents.latent_result import LatentPlan, StateSpread

if TYPE_CHECKING:
    from torch import nn

__all__ = ["LayerStates", "find_blocks", "max_window", "read_layers"]


@dataclasses.dataclass(frozen=True)
class LayerStates:
    """What was found of one layer; see `LayerLatents`."""

    raw: StateSpread
    normed: StateSpread | None
    median_norm: float
    first_norm: float


def read_layers(
    model: nn.Module,
    windows: Sequence[np.ndarray],
    layers: Sequence[int],
    dim: int,
    plan: LatentPlan,
    on_progress: ProgressFn | None,
) -> tuple[dict[int, LayerStates], int]:
    """States of `layers` over all windows, and the number of jackknife blocks.

    Two passes for each group of layers whose sums fit into `plan.memory`: for raw and normed states two sums of
    8 d^2 bytes at a time, and a quarter more for products.
    """
    size = max(1, plan.memory // (40 * dim * dim))
    groups = [list(layers[at : at + size]) for at in range(0, len(layers), size)]
    tokens = sum(map(len, windows))
    pieces = max(1, round(plan.blocks * len(windows[0]) / tokens))
    clock = _Clock(2 * tokens * len(groups), on_progress)
    found: dict[int, LayerStates] = {}
    blocks = 0
    for group in groups:
        reader = _Reader(dim, pieces)
        with Taps(model, reader.take) as taps:
            for again in (False, True):
                reader.again = again
                for window in windows:
                    taps.run(window, group)
                    reader.check(group)
                    clock.tick(len(window))
        blocks = reader.views[group[0], RAW].blocks
        found |= {layer: reader.result(layer, plan.z) for layer in group}
    return found, blocks


class _Clock:
    def __init__(self, total: int, on_progress: ProgressFn | None) -> None:
        self._done, self._total, self._report = 0, total, on_progress

    def tick(self, tokens: int) -> None:
        self._done += tokens
        if self._report is not None:
            self._report(self._done, self._total)


class _View:
    """Sums of one layer, raw or normed: the first position of each window apart from the rest."""

    def __init__(self, dim: int) -> None:
        self.rest = StreamMoments(dim)
        self.blocks = 0
        self.norms: list[torch.Tensor] = []
        self.first_norms: list[float] = []
        self._dim = dim
        self._first: FedBuilder | None = FedBuilder(dim)
        self._with_first: tuple[int, float, float] | None = None

    def add(self, states: torch.Tensor, pieces: int) -> None:
        """First pass: one window, (tokens, d)."""
        assert self._first is not None
        self._first.add(Normaliser(torch.float64)(states[:1], torch.arange(1)).units)
        self.first_norms.append(float(torch.linalg.vector_norm(states[0].double())))
        self.norms.append(torch.linalg.vector_norm(states[1:].double(), dim=1))
        for piece in _split(states[1:], pieces):
            self.rest.add(piece)
            self.blocks += 1

    def add_again(self, states: torch.Tensor, pieces: int) -> None:
        """Second pass: the same window."""
        if self._first is not None:
            both, self._first = self.rest.moments + self._first.result(), None
            self._with_first = (both.count, both.mean, both.std)
        for piece in _split(states[1:], pieces):
            self.rest.add_again(piece)

    def result(self, z: float) -> StateSpread:
        assert self._with_first is not None
        count, mean, std = self._with_first
        return StateSpread(
            spread=self.rest.spread("without first", z),
            se=self.rest.standard_error(z),
            with_first=Spread("with first", count, self._dim, mean, std, z),
            centred=self.rest.centred(z),
            readout=self.rest.readout(),
        )


def _split(states: torch.Tensor, pieces: int) -> list[torch.Tensor]:
    """Contiguous blocks of a window, none empty."""
    return [piece for piece in states.tensor_split(min(pieces, max(1, len(states)))) if len(piece)]


class _Reader:
    """Takes the states of a group of layers as they come by."""

    def __init__(self, dim: int, pieces: int) -> None:
        self._dim, self._pieces = dim, pieces
        self.views: dict[tuple[int, str], _View] = {}
        self.again = False

    def take(self, layer: int, view: str, states: torch.Tensor) -> None:
        if states.dim() != 2 or states.shape[1] != self._dim:
            shape = " x ".join(map(str, states.shape))
            raise SourceError(
                f"the states at layer {layer} are {shape}, not one vector a token as wide as the embedding"
            )
        if (layer, view) not in self.views:
            self.views[layer, view] = _View(self._dim)
        found = self.views[layer, view]
        (found.add_again if self.again else found.add)(states, self._pieces)

    def check(self, layers: Sequence[int]) -> None:
        """After a window: SourceError if a layer gave no states."""
        silent = next((layer for layer in layers if (layer, RAW) not in self.views), None)
        if silent is not None:
            raise SourceError(f"the model gave no states at layer {silent}: it does not run the blocks that were found")

    def result(self, layer: int, z: float) -> LayerStates:
        """Results of one layer; its sums are dropped."""
        raw, normed = self.views.pop((layer, RAW)), self.views.pop((layer, NORMED), None)
        return LayerStates(
            raw=raw.result(z),
            normed=normed.result(z) if normed is not None else None,
            median_norm=float(torch.cat(raw.norms).median()),
            first_norm=float(torch.tensor(raw.first_norms, dtype=torch.float64).median()),
        )
