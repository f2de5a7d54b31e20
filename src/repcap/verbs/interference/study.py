"""`interference`: what reading s active features costs, for k directions in R^d that are random, optimised or built."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from repcap import geometry
from repcap.errors import DomainError, InputError
from repcap.matrix import ProgressFn, stages
from repcap.numerics import format_power
from repcap.options import Device, Option, Seed, verb
from repcap.result import Result

if TYPE_CHECKING:
    import torch

    from repcap.verbs.interference.direction_sets import DirectionSet

METHODS = ("random", "optimised", "constructed")

SAFE = 0.99
"""Share of draws in which the active set must be found for s to count as readable."""


def _named(vectors: Any) -> str:
    """What a record says of directions that were given."""
    return str(vectors) if isinstance(vectors, (str, Path)) else "in memory"


@dataclasses.dataclass(frozen=True, repr=False)
class Interference(Result):
    """Error against s for each set of directions, and the geometric bounds beside it."""

    kind = "interference"

    k: int
    d: int
    active: tuple[int, ...]
    feature_values: str
    """`signs`, `ones` or `uniform`: `values` of the record."""
    trials: int
    seed: int
    sets: tuple[DirectionSet, ...]
    bounds: tuple[dict[str, Any], ...]
    """Per set: what the bracket at its coherence says of the number of directions (log10)."""

    @property
    def title(self) -> str:
        return f"{self.k} directions in R^{self.d}"

    @property
    def numbers(self) -> str:
        return "; ".join(f"{one.method}: coherence {one.coherence:.4f}, {one.readable} readable" for one in self.sets)

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
            "(k - d)/(d (k - 1)). Matching pursuit (omp) decodes all active rows together and is told how many there "
            "are: what it finds beyond the readouts is lost by reading linearly."
        )

    def values(self) -> dict[str, Any]:
        found = super().values()
        sort = found.pop("feature_values")
        return {**found, "values": sort}

    def rows(self) -> list[dict[str, Any]]:
        """One row a set, number of active features and readout."""
        return [{"method": one.method, **dataclasses.asdict(readout)} for one in self.sets for readout in one.readouts]


@verb
def interference(
    k: Annotated[int | None, Option("Directions (features).")] = None,
    d: Annotated[int | None, Option("Dimensions.")] = None,
    active: Annotated[Iterable[int], Option("Numbers of active features.")] = (1, 2, 4, 8, 16, 32),
    *,
    methods: Annotated[
        Iterable[str], Option("random, optimised, constructed; a comma list.", flags=("--method",))
    ] = METHODS,
    vectors: Annotated[Any, Option("Read these rows (.safetensors, .npy) instead.", write=_named)] = None,
    trials: Annotated[int, Option("Random sets of active features for each s.", least=1)] = 200,
    values: Annotated[str, Option("Feature values: signs, ones or uniform.")] = "signs",
    steps: Annotated[int, Option("Steps of the optimiser.", least=1)] = 400,
    seed: Seed = 0,
    device: Device = "auto",
    on_progress: ProgressFn | None = None,
) -> Interference:
    """Simulate reading s of k features, for each s in `active`; see `repcap.geometry.readout.superposed` for the model.

    k, d: size of the sets made by `methods` (`random`, `optimised` in `steps` steps, `constructed`). vectors: a (k, d)
    tensor, or the path of a .safetensors or .npy file, to read instead. values: `signs`, `ones` or `uniform`. Numbers
    of active features above k are left out.

    Cost: the optimiser 3 k^2 d a step, k^2 d for the coherence of each set; 4 k d + 2 s k d a trial and s, matching
    pursuit at most 4e11 for each s. Memory O(k d).

    Raises
    ------
    InputError, DomainError
        if sizes or names are unusable.
    """
    from repcap.verbs.interference import direction_sets as making  # loads torch

    given = None if vectors is None else making.given(vectors)
    k, d = _size(k, d, given)
    wanted = tuple(dict.fromkeys(int(s) for s in active if s <= k))
    if not wanted:
        raise InputError(f"no number of active features is within 1..{k}")
    geometry.check_request(k, wanted, trials, values)
    asked = list(methods)
    # The optimiser takes about nine tenths of the time.
    packing, reading = stages(on_progress, 9 if given is None and "optimised" in asked else 0, 1)
    made = making.made(k, d, asked, steps, seed, device, packing) if given is None else [given]
    sets, bounds = [], []
    for position, (method, label, rows) in enumerate(made, start=1):
        found = geometry.simulate(rows, wanted, trials=trials, values=values, seed=seed, device=device)
        sets.append(making.describe(method, label, rows, found, values, SAFE))
        bounds.append(making.bounds_at(d, sets[-1].coherence))
        reading(position, len(made))
    return Interference(
        k=k,
        d=d,
        active=wanted,
        feature_values=values,
        trials=trials,
        seed=seed,
        sets=tuple(sets),
        bounds=tuple(bounds),
    )


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
