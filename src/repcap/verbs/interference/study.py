"""`interference`: what reading s active features costs, for k directions in R^d that are random, optimised or built."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from repcap import geometry
from repcap._version import __version__
from repcap.errors import DomainError, InputError
from repcap.numerics import format_power

if TYPE_CHECKING:
    import torch

    from repcap.geometry.readout.superposed import Readout

METHODS = ("random", "optimised", "constructed")

SAFE = 0.99
"""Share of draws in which the active set must be found for s to count as readable."""

EQUAL = 1.0 - 1e-6
"""Directions of a larger |cosine| are one and the same in float32, in which readings are computed."""

Progress = Callable[[str, float], None]
"""Called with (what is being done, fraction done)."""


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


@dataclasses.dataclass(frozen=True)
class Interference:
    """Error against s for each set of directions, and the geometric bounds beside it."""

    k: int
    d: int
    active: tuple[int, ...]
    values: str
    trials: int
    seed: int
    sets: tuple[DirectionSet, ...]
    bounds: tuple[dict[str, Any], ...]
    """Per set: what the bracket at its coherence says of the number of directions (log10)."""
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    """How the sets were made: empty for directions that were given."""

    @property
    def reading(self) -> str:
        """The result in words."""
        parts = []
        for one, bound in zip(self.sets, self.bounds, strict=True):
            sure = "any number" if one.guaranteed is None else str(one.guaranteed)
            room = f"at coherence {one.coherence:.3f} up to {format_power(bound['upper'])} directions are not ruled out"
            if one.coherence <= 0:
                room = "they are orthogonal"
            parts.append(
                f"{one.method}: {room}, {sure} active at once are surely told apart, and {one.readable} were in "
                f"{SAFE:.0%} of the draws"
            )
        return (
            f"{self.k} directions in R^{self.d}. " + "; ".join(parts) + ". Coherence bounds how many directions fit; "
            "how many can be read at once falls with their mean square cosine, which no packing can push below "
            "(k - d)/(d (k - 1))."
        )

    def to_dict(self) -> dict[str, Any]:
        return {**dataclasses.asdict(self), "reading": self.reading, "repcap_version": __version__}


def interference(
    k: int | None = None,
    d: int | None = None,
    active: Sequence[int] = (1, 2, 4, 8, 16, 32),
    *,
    methods: Sequence[str] = METHODS,
    vectors: Any = None,
    trials: int = 200,
    values: str = "signs",
    steps: int = 400,
    seed: int = 0,
    device: str = "auto",
    on_progress: Progress | None = None,
) -> Interference:
    """Simulate reading s of k features, for each s in `active`; see `repcap.geometry.readout.superposed` for the model.

    k, d: size of the sets made by `methods` (`random`, `optimised` in `steps` steps, `constructed`). vectors: a (k, d)
    tensor, or the path of a .safetensors or .npy file, to read instead. values: `signs`, `ones` or `uniform`. Numbers
    of active features above k are left out.

    Cost: the optimiser 3 k^2 d a step, k^2 d for the coherence of each set; 4 k d a trial and s. Memory O(k d).

    Raises
    ------
    InputError, DomainError
        if sizes or names are unusable.
    """
    given = None if vectors is None else _given(vectors)
    k, d = _size(k, d, given)
    wanted = tuple(dict.fromkeys(int(s) for s in active if s <= k))
    if not wanted:
        raise InputError(f"no number of active features is within 1..{k}")
    geometry.check_request(k, wanted, trials, values)
    made = _made(k, d, methods, steps, seed, device, on_progress) if given is None else [given]
    sets, bounds = [], []
    for position, (method, label, rows) in enumerate(made):
        if on_progress is not None:
            on_progress(f"reading {method}", position / len(made))
        found = geometry.simulate(rows, wanted, trials=trials, values=values, seed=seed, device=device)
        sets.append(_describe(method, label, rows, found, values))
        bounds.append(_bounds(d, sets[-1].coherence))
    options = {} if given else {"methods": [one.method for one in sets], "steps": steps, "device": device}
    return Interference(k, d, wanted, values, trials, seed, tuple(sets), tuple(bounds), options)


def _size(k: int | None, d: int | None, given: tuple[str, str, torch.Tensor] | None) -> tuple[int, int]:
    """k and d as asked for, or of the vectors that are given."""
    if given is None:
        if k is None or d is None:
            raise InputError("give k and d, or a file of vectors")
        if k < 2 or d < 1:
            raise DomainError(f"k = {k}, d = {d} is outside the domain: k >= 2 and d >= 1 are needed")
        return k, d
    _, label, rows = given
    if rows.ndim != 2 or len(rows) < 2:
        raise InputError(f"{label}: shape {tuple(rows.shape)} is no set of directions: give two rows or more")
    if (k or rows.shape[0], d or rows.shape[1]) != tuple(rows.shape):
        raise InputError(f"{label} holds {rows.shape[0]} directions in R^{rows.shape[1]}: leave k and d out")
    return rows.shape[0], rows.shape[1]


def _given(vectors: Any) -> tuple[str, str, torch.Tensor]:
    import torch

    if isinstance(vectors, (str, Path)):
        from repcap.packing.vector_files import open_vectors

        matrix, _ = open_vectors(vectors)
        with matrix:
            return "file", str(vectors), matrix.read(0, matrix.count)
    return "given", "vectors in memory", torch.as_tensor(vectors)


def _made(
    k: int,
    d: int,
    methods: Sequence[str],
    steps: int,
    seed: int,
    device: str,
    on_progress: Progress | None,
) -> list[tuple[str, str, torch.Tensor]]:
    for method in methods:
        if method not in METHODS:
            raise InputError(f"unknown method {method!r}: use {', '.join(METHODS)}")
    # The optimiser last: it takes the time, and the others may have nothing to give.
    order = sorted(dict.fromkeys(methods), key=lambda method: method == "optimised")
    made = {method: _make(method, k, d, steps, seed, device, on_progress) for method in order}
    return [made[method] for method in dict.fromkeys(methods)]


def _make(
    method: str, k: int, d: int, steps: int, seed: int, device: str, on_progress: Progress | None
) -> tuple[str, str, torch.Tensor]:
    import torch

    from repcap.constructions.build import best_lines
    from repcap.packing import pack

    if method == "random":
        return method, "drawn from the sphere", torch.randn(k, d, generator=torch.Generator().manual_seed(seed))
    if method == "constructed":
        lines = best_lines(k, d)
        if lines is None:
            raise InputError(f"no explicit set of {k} directions in R^{d} is known: leave `constructed` out")
        return method, str(lines.info.name), lines.read(0, k)

    def hook(state: Any) -> None:
        if on_progress is not None:
            on_progress("packing", state.fraction)

    packed = pack(k, d, steps=steps, seed=seed, device=device, constructions=False, on_progress=hook)
    return method, packed.method, packed.vectors


def _describe(method: str, label: str, rows: torch.Tensor, found: Sequence[Readout], values: str) -> DirectionSet:
    import math

    from repcap.packing.coherence import coherence

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
        if one.recovery < SAFE or one.active == k:  # all k active: nothing is left to tell them from
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


def _bounds(d: int, coherence: float) -> dict[str, Any]:
    from repcap.laws import fitted

    keys = [curve.key for curve in fitted()]
    if not 0.0 < coherence < 1.0:
        return {"construction": None, **dict.fromkeys(keys), "upper": None}
    from repcap.bracket.interval import bracket

    found = bracket(d, coherence)
    proven, _ = found.proven
    return {"construction": proven, **{key: found.laws[key] for key in keys}, "upper": found.upper.log10_k}
