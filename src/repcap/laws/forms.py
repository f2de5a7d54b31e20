"""The laws as things that can be fitted: parameters, start, bounds, and where each says anything at all.

A form is fitted in free coordinates: positive parameters by their logarithm, so that no step can leave the domain.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from repcap.errors import InputError
from repcap.laws import full, jl, ratio, welch_power
from repcap.laws.fitting.data import PackingTable

Floats = npt.NDArray[np.float64]


@dataclasses.dataclass(frozen=True)
class Form:
    """A law to be fitted.

    `epsilon(k, d, **params)` predicts for the cells where the law is defined. `published` are the parameters that were
    published (for `jl` those fitted to random vectors). `above_d`: the law says nothing at k <= d; there it predicts
    0, the coherence of an orthonormal set, which is how the published fit treats those cells. `valid` is the range of
    (d, k/d) behind the published parameters where it is narrower than the shipped data, else None.
    """

    name: str
    formula: str
    epsilon: Callable[..., Any]
    published: dict[str, float]
    above_d: bool = True
    valid: dict[str, tuple[float, float]] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.published)

    @property
    def scale_only(self) -> bool:
        """Is epsilon = sqrt(C) times a known shape? Then least squares has a closed form."""
        return self.names == ("C",)

    def predict(self, table: PackingTable, params: dict[str, float]) -> Floats:
        """epsilon of every cell, shape (cells,), float64."""
        if not self.above_d:
            return np.asarray(self.epsilon(table.k, table.d, **params), dtype=np.float64)
        inside = ~table.degenerate
        predicted = np.zeros(len(table))
        if inside.any():
            predicted[inside] = self.epsilon(table.k[inside], table.d[inside], **params)
        return predicted

    def lower(self, table: PackingTable) -> Floats:
        """Least allowed value of each free coordinate ln(parameter)."""
        bounds = np.full(len(self.names), math.log(1e-6))
        if self.name == "full":
            # k^a > d in every cell, or the logarithm in the law has no power.
            inside = ~table.degenerate
            least = float(np.max(np.log(table.d[inside]) / np.log(table.k[inside])))
            bounds[self.names.index("a")] = math.log(least + 1e-9)
        return bounds

    def upper(self) -> Floats:
        """Largest allowed value of each free coordinate."""
        return np.full(len(self.names), math.log(1e4))


FORMS: dict[str, Form] = {
    form.name: form
    for form in (
        Form("jl", "eps = sqrt(C ln k / d)", jl.epsilon, {"C": jl.C_RANDOM}, above_d=False),
        Form("ratio", "eps = sqrt(C ln(k/d) / d)", ratio.epsilon, {"C": ratio.C}),
        Form("full", "eps = sqrt(C ln(k^a/d)^b / d^c)", full.epsilon, dict(full.PARAMS)),
        Form(
            "welch-power",
            "eps = sqrt((1/d) (1 - d/k) (1 + a (k/d - 1))^b)",
            welch_power.epsilon,
            {"a": welch_power.A, "b": welch_power.B},
            valid=welch_power.VALID,
        ),
    )
}
"""Every law that `fit` knows, by name."""


def form(name: str) -> Form:
    """The form of that name.

    Raises
    ------
    InputError
        unknown name; the message lists the known ones.
    """
    if name not in FORMS:
        raise InputError(f"no law {name!r}: use one of {', '.join(FORMS)}")
    return FORMS[name]
