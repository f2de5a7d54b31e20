"""Laws, proven bounds and explicit constructions: how many near-orthogonal lines fit into R^d.

Floats in, floats out; no torch. See README.md in this directory for which file holds what.

`LAWS` is the one list of laws. A new law is one file that makes a `Law`, and one line here: then `capacity` answers by
it (if it has curves), `fit` fits it, and both name it in their help.
"""

from __future__ import annotations

from collections.abc import Iterator

from repcap.domain import Floats
from repcap.errors import InputError
from repcap.laws import full, jl, ratio, welch_power
from repcap.laws.law import Curve, Law

LAWS: dict[str, Law] = {law.name: law for law in (jl.LAW, ratio.LAW, full.LAW, welch_power.LAW)}
"""Every law, by name, in the order in which they are shown."""


def named(name: str) -> Law:
    """The law of that name.

    Raises
    ------
    InputError
        unknown name; the message lists the known ones.
    """
    if name not in LAWS:
        raise InputError(f"no law {name!r}: use one of {', '.join(LAWS)}")
    return LAWS[name]


def curves() -> Iterator[tuple[Law, Curve]]:
    """Every set of constants that `capacity` answers by, with its law, in order."""
    return ((law, curve) for law in LAWS.values() for curve in law.curves)


def fitted() -> tuple[Curve, ...]:
    """The curves that were fitted to the published optimised packings: they stand in the bracket."""
    return tuple(curve for _, curve in curves() if curve.fitted)


def published() -> Curve:
    """The curve that gives the published capacities of models."""
    return next(curve for _, curve in curves() if curve.published)


def law_epsilon(log_k: float, d: float) -> dict[str, float]:
    """epsilon of every curve at (k, d), by its key."""
    return {curve.key: law.epsilon(log_k=log_k, d=d, **curve.params) for law, curve in curves()}


def law_log_k(d: float, eps: Floats) -> dict[str, Floats]:
    """ln k of every curve at (d, eps), by its key; arrays for an array of eps."""
    return {curve.key: law.log_k(d, eps, **curve.params) for law, curve in curves()}
