"""Least squares for one law: which cells count, what the law predicts for them, and the constants of the minimum.

A law is fitted in free coordinates: its positive constants by their logarithm, so that no step can leave the domain.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from scipy.optimize import least_squares

from repcap.errors import InputError
from repcap.laws.fitting.data import Floats, PackingTable
from repcap.laws.law import Law, Params

Scale = Literal["epsilon", "log"]
AT_BOUND = 0.01
"""Of the logarithm of a parameter: nearer to a border than that it stands at it. The search itself stays inside."""


def predict(law: Law, table: PackingTable, params: Params) -> Floats:
    """epsilon of every cell, shape (cells,), float64; 0 where k <= d for a law that is about k > d."""
    predicted = np.zeros(len(table))
    inside = ~table.degenerate if law.above_d else np.ones(len(table), dtype=bool)
    if inside.any():
        predicted[inside] = law.epsilon(table.k[inside], table.d[inside], **params)
    return predicted


def cells_for(table: PackingTable, law: Law, on: Scale, include_degenerate: bool) -> PackingTable:
    """The cells that the fit uses.

    Raises
    ------
    InputError
        too few cells for the law's parameters, or, on the logarithm, a cell whose epsilon (observed or predicted) is 0.
    """
    if on not in ("epsilon", "log"):
        raise InputError(f"cannot fit on {on!r}: use epsilon or log")
    cells = table if include_degenerate else table.take(~table.degenerate)
    usable = cells if not law.above_d else cells.take(~cells.degenerate)
    # One more than the parameters, or the residuals are 0 by construction.
    if len(usable) <= len(law.params):
        left = f" ({len(table) - len(cells)} with k <= d left out)" if len(cells) < len(table) else ""
        raise InputError(
            f"{table.source}: {len(usable)} cells with k > d{left} are too few for the {len(law.params)} parameters of "
            f"{law.name}; give at least {len(law.params) + 1}"
        )
    if on == "log" and law.above_d and len(usable) < len(cells):
        raise InputError(f"{law.name} gives 0 where k <= d, which has no logarithm: fit on epsilon, or leave them out")
    if on == "log" and not (cells.epsilon > 0.0).all():
        raise InputError(f"{table.source}: a cell with epsilon = 0 has no logarithm: fit on epsilon, or leave it out")
    return cells


def solve(law: Law, cells: PackingTable, on: Scale, start: Params | None = None) -> dict[str, float]:
    """Parameters of least squares on epsilon or on ln epsilon.

    A law that is a shape times sqrt(C) has a closed form. The others are minimised from the published parameters (or
    `start`) by a trust-region method in the logarithms of the parameters, with tolerances at the rounding level.
    Cost O(cells) a step, some tens of steps.
    """
    if law.scale_only:
        shape = predict(law, cells, {"C": 1.0})
        if on == "epsilon":
            return {"C": float((shape @ cells.epsilon) / (shape @ shape)) ** 2}
        return {"C": float(np.exp(2.0 * np.mean(np.log(cells.epsilon) - np.log(shape))))}
    return _minimise(law, cells, on, start or law.reference)


def _minimise(law: Law, cells: PackingTable, on: Scale, start: Params) -> dict[str, float]:
    target = cells.epsilon if on == "epsilon" else np.log(cells.epsilon)

    def params(free: Floats) -> dict[str, float]:
        return dict(zip(law.params, np.exp(free).tolist(), strict=True))

    def residuals(free: Floats) -> Floats:
        predicted = predict(law, cells, params(free))
        return (predicted if on == "epsilon" else np.log(predicted)) - target

    low, high = _bounds(law, cells)
    first = np.clip(np.log([start[name] for name in law.params]), low + 1e-6, high - 1e-6)
    found = least_squares(residuals, first, bounds=(low, high), jac="3-point", xtol=1e-14, ftol=1e-14, gtol=1e-14)
    return params(found.x)


def at_bounds(law: Law, cells: PackingTable, params: Params) -> list[str]:
    """Names of the parameters that stand at a border of where the search may go: no minimum was found for them."""
    if law.scale_only:
        return []
    low, high = _bounds(law, cells)
    free = np.log([params[name] for name in law.params])
    return [name for name, least, value, most in zip(law.params, low, free, high, strict=True)
            if min(value - least, most - value) < AT_BOUND]  # fmt: skip


def _bounds(law: Law, cells: PackingTable) -> tuple[Floats, Floats]:
    """Least and largest allowed value of each free coordinate."""
    bounds = np.full(len(law.params), math.log(1e-6))
    if law.least is not None:
        inside = ~cells.degenerate
        for name, value in law.least(cells.k[inside], cells.d[inside]).items():
            bounds[list(law.params).index(name)] = math.log(value + 1e-9)
    return bounds, np.full(len(law.params), math.log(1e4))
