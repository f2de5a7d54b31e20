"""The two passes of `latents` over a text: states come from the model's taps and go into sums, nothing is kept."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from repcap.geometry.epsilon import Spread
from repcap.geometry.moments import Moments, MomentsBuilder
from repcap.geometry.rows import Normaliser
from repcap.geometry.stream import StreamMoments
from repcap.matrix import ProgressFn
from repcap.studies.latent_model import NORMED, RAW, Taps
from repcap.studies.latents import LatentOptions, StateSpread

if TYPE_CHECKING:
    from torch import nn


@dataclasses.dataclass(frozen=True)
class LayerStates:
    """What was found of one layer; see `LayerLatents`."""

    raw: StateSpread
    normed: StateSpread | None
    median_norm: float
    first_norm: float


def read_layers(
    model: nn.Module,
    windows: Sequence[Sequence[int]],
    layers: Sequence[int],
    dim: int,
    options: LatentOptions,
    on_progress: ProgressFn | None,
) -> tuple[dict[int, LayerStates], int]:
    """States of `layers` over all windows, and the number of jackknife blocks.

    Two passes for each group of layers whose sums fit into `options.memory`: 32 d^2 bytes a layer.
    """
    size = max(1, options.memory // (32 * dim * dim))
    groups = [list(layers[at : at + size]) for at in range(0, len(layers), size)]
    tokens = sum(map(len, windows))
    pieces = max(1, round(options.blocks * len(windows[0]) / tokens))
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
                    clock.tick(len(window))
        blocks = reader.views[group[0], RAW].blocks
        found |= {layer: reader.result(layer, options.z) for layer in group}
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
        self._first: list[torch.Tensor] = []
        self._folded: MomentsBuilder | None = None
        self._dim = dim
        self._with_first: tuple[int, float, float] | None = None

    def add(self, states: torch.Tensor, pieces: int) -> None:
        """First pass: one window, (tokens, d)."""
        self._add_first(states[:1])
        self.norms.append(torch.linalg.vector_norm(states[1:].double(), dim=1))
        for piece in _split(states[1:], pieces):
            self.rest.add(piece)
            self.blocks += 1

    def add_again(self, states: torch.Tensor, pieces: int) -> None:
        """Second pass: the same window."""
        if self._with_first is None:
            both = self.rest.moments + self._first_moments()
            self._with_first = (both.count, both.mean, both.std)
        for piece in _split(states[1:], pieces):
            self.rest.add_again(piece)

    def _add_first(self, state: torch.Tensor) -> None:
        found = Normaliser(torch.float64)(state, torch.arange(1))
        self.first_norms.append(float(torch.linalg.vector_norm(state.double())))
        self._first.append(found.units)
        if len(self._first) > self._dim:  # a long text: no more rows than the sums would take
            self._fold()

    def _fold(self) -> None:
        if self._folded is None:
            self._folded = MomentsBuilder(self._dim, torch.device("cpu"), torch.float64)
        self._folded.add(torch.cat(self._first))
        self._first = []

    def _first_moments(self) -> Moments:
        if self._first:
            self._fold()
        assert self._folded is not None
        found, self._folded = self._folded.result(), None
        return found

    def result(self, z: float) -> StateSpread:
        assert self._with_first is not None
        count, mean, std = self._with_first
        return StateSpread(
            spread=self.rest.spread("without first", z),
            se=self.rest.standard_error(z),
            with_first=Spread("with first", count, self._dim, mean, std, z),
            centred=self.rest.centred(z),
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
        found = self.views.setdefault((layer, view), _View(self._dim))
        (found.add_again if self.again else found.add)(states, self._pieces)

    def result(self, layer: int, z: float) -> LayerStates:
        """Results of one layer; its sums are dropped."""
        raw, normed = self.views.pop((layer, RAW)), self.views.pop((layer, NORMED), None)
        return LayerStates(
            raw=raw.result(z),
            normed=normed.result(z) if normed is not None else None,
            median_norm=float(torch.cat(raw.norms).median()),
            first_norm=float(torch.tensor(raw.first_norms, dtype=torch.float64).median()),
        )
