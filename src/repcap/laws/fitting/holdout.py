"""Which law predicts cells that it has not seen? Cross-validation over cells or over whole dimensions."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from repcap.errors import InputError
from repcap.laws import LAWS, named
from repcap.laws.fitting import metrics
from repcap.laws.fitting.data import Floats, PackingTable
from repcap.laws.fitting.fit import TableLike, as_table
from repcap.laws.fitting.least_squares import Scale, cells_for, predict, solve

By = Literal["cells", "d"]
FOLDS = 10


@dataclasses.dataclass(frozen=True)
class HeldOut:
    """Errors of a law on cells left out of its fit, every cell left out once."""

    law: str
    by: str
    """`cells`: random folds, an interpolation. `d`: one dimension at a time, which for the least and the largest d is
    an extrapolation."""
    folds: int
    n: int
    rmse: float
    mape: float
    rmse_log: float
    """RMSE of ln epsilon; NaN where a cell or its prediction is 0."""
    score: float
    """What the laws are ranked by: the RMSE on the scale of the fit."""

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Held-out errors of several laws on the same folds, best first."""

    ranking: tuple[HeldOut, ...]
    on: str
    seed: int

    @property
    def best(self) -> str:
        """Law of the least held-out error."""
        return self.ranking[0].law

    def of(self, law: str) -> HeldOut:
        return next(held for held in self.ranking if held.law == law)

    def to_dict(self) -> dict[str, Any]:
        return {"best": self.best, "on": self.on, "seed": self.seed, "ranking": [h.to_dict() for h in self.ranking]}


def _parts(cells: PackingTable) -> list[npt.NDArray[np.intp]]:
    """What is left out together: the rows of each size, or single rows where all are of one size."""
    sizes = cells.sizes()
    return sizes if len(sizes) > 1 else [np.array([row]) for row in range(len(cells))]


def folds_of(cells: PackingTable, by: By, folds: int, seed: int) -> Iterator[npt.NDArray[np.bool_]]:
    """Masks of the cells to leave out, shape (cells,); every cell is in exactly one.

    Random starts of one size (k, d) are left out together: a law that has seen one of them has seen them all.

    Raises
    ------
    InputError
        fewer than 2 folds, more folds than cells, or a single dimension where dimensions are left out.
    """
    if by == "d":
        dimensions = np.unique(cells.d)
        if dimensions.size < 2:
            raise InputError("leaving out a dimension needs cells of at least two; hold out cells instead")
        for d in dimensions:
            yield cells.d == d
    elif by == "cells":
        sizes = _parts(cells)
        if not 2 <= folds <= len(sizes):
            raise InputError(f"folds = {folds} must lie between 2 and the number of cells, {len(sizes)}")
        order = np.random.default_rng(seed).permutation(len(sizes))
        for part in np.array_split(order, folds):
            mask = np.zeros(len(cells), dtype=bool)
            mask[np.concatenate([sizes[i] for i in part])] = True
            yield mask
    else:
        raise InputError(f"cannot hold out {by!r}: use cells or d")


def held_out(
    table: TableLike,
    law: str,
    *,
    by: By = "cells",
    folds: int | None = None,
    on: Scale = "epsilon",
    include_degenerate: bool = False,
    seed: int = 0,
) -> HeldOut:
    """Cross-validate one law: fit without each fold in turn and predict it. One fit a fold.

    `folds` counts for `by="cells"`: 10 by default, or as many as there are cells.
    """
    chosen = named(law)
    cells = cells_for(as_table(table), chosen, on, include_degenerate)
    predicted: Floats = np.full(len(cells), np.nan)
    count = 0
    for out in folds_of(cells, by, folds or min(FOLDS, len(_parts(cells))), seed):
        training = cells_for(cells.take(~out), chosen, on, include_degenerate)
        predicted[out] = predict(chosen, cells.take(out), solve(chosen, training, on))
        count += 1
    positive = bool((predicted > 0.0).all() and (cells.epsilon > 0.0).all())
    logs = metrics.rmse(np.log(cells.epsilon), np.log(predicted)) if positive else math.nan
    found = metrics.Metrics.of(cells.epsilon, predicted)
    score = found.rmse if on == "epsilon" else logs
    return HeldOut(law, by, count, len(cells), found.rmse, found.mape, logs, score)


def compare(table: TableLike, laws: Sequence[str] = (), **options: Any) -> Comparison:
    """`held_out` for several laws, all where none is named, on the same folds, ranked by their error (least first)."""
    data = as_table(table)
    found = [held_out(data, law, **options) for law in laws or LAWS]
    ranking = tuple(sorted(found, key=lambda held: held.score))
    return Comparison(ranking, options.get("on", "epsilon"), options.get("seed", 0))
