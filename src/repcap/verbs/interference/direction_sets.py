"""Sets of directions for `interference`: made or given, and how each reads. torch is loaded here."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from repcap import geometry, packing
from repcap.bracket.interval import bracket
from repcap.constructions.build import best_lines
from repcap.errors import InputError
from repcap.geometry.readout.superposed import Readout
from repcap.laws import fitted
from repcap.matrix import ProgressFn
from repcap.packing.coherence import coherence
from repcap.packing.vector_files import open_vectors

METHODS = ("random", "optimised", "constructed")
EQUAL = 1.0 - 1e-6
"""Directions of a larger |cosine| are one and the same in float32, in which readings are computed."""


@dataclasses.dataclass(frozen=True)
class DirectionSet:
    """One set of k directions and how it reads.

    label: how it was made. coherence: largest |cosine|. rms_cosine: root mean square of the cosines, the least of which
    any k directions can have is `welch_rms`. guaranteed: largest s whose features are always found (None: any).
    readable: largest s, of those tried below k and the guaranteed one, up to which the direct readout finds the active
    set in 99 % of the draws (0: none).
    """

    method: str
    label: str
    k: int
    d: int
    coherence: float
    rms_cosine: float
    welch_rms: float
    guaranteed: int | None
    readable: int
    readouts: tuple[Readout, ...]


def given(vectors: Any) -> tuple[str, str, torch.Tensor]:
    if isinstance(vectors, (str, Path)):
        matrix, _ = open_vectors(vectors)
        with matrix:
            return "file", str(vectors), matrix.read(0, matrix.count)
    return "given", "vectors in memory", torch.as_tensor(vectors)


def made(
    k: int,
    d: int,
    methods: Sequence[str],
    steps: int,
    seed: int,
    device: str,
    on_progress: ProgressFn | None,
) -> list[tuple[str, str, torch.Tensor]]:
    for method in methods:
        if method not in METHODS:
            raise InputError(f"unknown method {method!r}: use {', '.join(METHODS)}")
    # The optimiser last: it takes the time, and the others may have nothing to give.
    order = sorted(dict.fromkeys(methods), key=lambda method: method == "optimised")
    found = {method: _make(method, k, d, steps, seed, device, on_progress) for method in order}
    return [found[method] for method in dict.fromkeys(methods)]


def _make(
    method: str, k: int, d: int, steps: int, seed: int, device: str, on_progress: ProgressFn | None
) -> tuple[str, str, torch.Tensor]:
    if method == "random":
        return method, "drawn from the sphere", torch.randn(k, d, generator=torch.Generator().manual_seed(seed))
    if method == "constructed":
        lines = best_lines(k, d)
        if lines is None:
            raise InputError(f"no explicit set of {k} directions in R^{d} is known: leave `constructed` out")
        return method, str(lines.info.name), lines.read(0, k)

    def hook(state: Any) -> None:
        if on_progress is not None:
            on_progress(round(1000 * state.fraction), 1000)

    packed = packing.pack(k, d, steps=steps, seed=seed, device=device, constructions=False, on_progress=hook)
    return method, packed.method, packed.vectors


def describe(
    method: str, label: str, rows: torch.Tensor, found: Sequence[Readout], values: str, safe: float
) -> DirectionSet:
    k, d = rows.shape
    unit = rows.double() / rows.double().norm(dim=1, keepdim=True)
    largest = coherence(unit).value
    # Exactly orthogonal rows differ from 0 by rounding alone.
    largest = 0.0 if largest < 1e-7 else largest
    moments = geometry.Moments.of(unit)
    square = max(0.0, (float((moments.G * moments.G).sum()) - k) / (k * (k - 1)))
    direct = [one for one in found if one.readout == "direct"]
    readable = 0
    for one in sorted(direct, key=lambda one: one.active):
        if one.recovery < safe or one.active == k:  # all k active: nothing is left to tell them from
            break
        readable = one.active
    sure = geometry.guaranteed_active(largest) if largest < EQUAL else 0
    sure = None if sure is not None and sure >= k else sure
    if values != "uniform":  # the guarantee is for values of equal size; it may lie between two numbers that were tried
        readable = max(readable, k if sure is None else min(sure, k))
    return DirectionSet(
        method=method,
        label=label,
        k=k,
        d=d,
        coherence=largest,
        rms_cosine=math.sqrt(square),
        welch_rms=math.sqrt(max(0.0, (k - d) / (d * (k - 1)))),
        guaranteed=sure,
        readable=readable,
        readouts=tuple(found),
    )


def bounds_at(d: int, coherence: float) -> dict[str, Any]:
    keys = [curve.key for curve in fitted()]
    if not 0.0 < coherence < 1.0:
        return {"explicit": None, "exists": None, **dict.fromkeys(keys), "upper": None}
    found = bracket(d, coherence)
    return {
        "explicit": found.explicit.log10_k,
        "exists": found.exists,
        **{key: found.laws[key] for key in keys},
        "upper": found.upper.log10_k,
    }
