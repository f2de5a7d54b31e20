"""What a law is: epsilon as a function of (k, d), its inverses, and the constants that it was fitted with.

Each law is one file (`jl.py`, `ratio.py`, `full.py`, `welch_power.py`) that states two formulas. Everything they share
is here: domain checks, vectorisation over numpy arrays, the inverse in d by bracketing and bisection, and what a fit
needs to know of a law.
All of it works with ln k, so that d = 10^6 at epsilon = 0.99 overflows nowhere.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import overload

import numpy as np

from repcap.domain import Array, Floats, check_d, check_eps, check_log_k, plain
from repcap.errors import DomainError
from repcap.laws.limits.roots import bisect

Params = Mapping[str, float]
Range = Mapping[str, tuple[float, float]]

_LN_D_MAX = math.log(1e300)


@dataclasses.dataclass(frozen=True)
class Curve:
    """A law with one set of constants, as `capacity` answers by it."""

    key: str
    """In JSON, in CSV and on the page."""
    label: str
    """In tables and figures."""
    short: str
    """In a table with many columns."""
    note: str
    """Where the constants come from, in a few words."""
    standing: str = "fitted"
    """What it says of k, on the page: `fitted`, `fitted to random`, `at least`."""
    params: Params = dataclasses.field(default_factory=dict)
    """The constants that differ from the law's own."""
    fitted: bool = False
    """Whether the constants were fitted to the published optimised packings: then the curve stands in the bracket, and
    a point outside those data is warned about."""
    published: bool = False
    """Whether the published capacities of models are this curve; one curve has it."""


@dataclasses.dataclass(frozen=True)
class Law:
    """One law.

    Cost of each method: O(size of the broadcast arguments) time and memory; `dim` about 1100 times that at most.
    """

    name: str
    formula: str
    """For people, with natural logarithms."""
    params: Params
    """Default constants by name."""
    forward: Callable[[Array, Array, Params], Array]
    """(ln k, d, params) -> epsilon."""
    inverse: Callable[[Array, Array, Params], Array]
    """(d, epsilon, params) -> ln k; strictly increasing in d."""
    curves: tuple[Curve, ...] = ()
    """The constants that `capacity` answers by; none: the law is for `fit` alone."""
    start: Params | None = None
    """Constants that a fit begins with and is compared to, where they are not the default ones."""
    above_d: bool = True
    """Whether the law is about k > d: a fit takes it as 0 elsewhere, the coherence of an orthonormal set, which is how
    the published fit treats those cells."""
    scale_only: bool = False
    """Whether epsilon is sqrt(C) times a shape without constants: then least squares has a closed form."""
    valid: Range | None = None
    """Range of d and k/d behind the default constants, where it is narrower than the shipped data."""
    least: Callable[[Array, Array], Params] | None = None
    """(k, d) of the cells of a fit -> constants below which the law is not defined there."""

    @property
    def reference(self) -> Params:
        """The constants that a fit begins with and is compared to."""
        return self.start or self.params

    @overload
    def epsilon(
        self, k: float | None = None, d: float | None = None, *, log_k: float | None = None, **params: float
    ) -> float: ...
    @overload
    def epsilon(
        self, k: Floats | None = None, d: Floats | None = None, *, log_k: Floats | None = None, **params: float
    ) -> Floats: ...
    def epsilon(
        self, k: Floats | None = None, d: Floats | None = None, *, log_k: Floats | None = None, **params: float
    ) -> Floats:
        """epsilon that the law gives k vectors in d dimensions; a float for scalars, else a float64 array.

        Give `log_k` (natural logarithm) in place of `k` where k overflows. Where the law's logarithm would be
        negative (k < d in `ratio`) the value is 0: so few vectors can be orthogonal. The value may exceed 1, where
        the law says nothing.

        Raises
        ------
        DomainError
            if k <= 1, d < 1, a value is not finite, or a constant is unknown or not positive.
        """
        return plain(self.forward(check_log_k(k, log_k), check_d(d), self._constants(params)))

    @overload
    def log_k(self, d: float, eps: float, **params: float) -> float: ...
    @overload
    def log_k(self, d: Floats, eps: Floats, **params: float) -> Floats: ...
    def log_k(self, d: Floats, eps: Floats, **params: float) -> Floats:
        """Natural logarithm of the number of vectors that the law gives at (d, eps).

        Raises
        ------
        DomainError
            if d < 1, eps is not in (0, 1), a value is not finite, or a constant is unknown or not positive.
        """
        return plain(self.inverse(check_d(d), check_eps(eps), self._constants(params)))

    @overload
    def dim(
        self, k: float | None = None, eps: float | None = None, *, log_k: float | None = None, **params: float
    ) -> float: ...
    @overload
    def dim(
        self, k: Floats | None = None, eps: Floats | None = None, *, log_k: Floats | None = None, **params: float
    ) -> Floats: ...
    def dim(
        self, k: Floats | None = None, eps: Floats | None = None, *, log_k: Floats | None = None, **params: float
    ) -> Floats:
        """The real d >= 1 at which the law gives k vectors at eps.

        ln k is strictly increasing in d, so bisection on a bracket in ln d finds the one root to the last bit.

        Raises
        ------
        DomainError
            if there is no root d >= 1 (the law gives more than k vectors at d = 1 already), or a value is outside
            its domain.
        """
        constants = self._constants(params)
        target, given = np.broadcast_arrays(check_log_k(k, log_k), check_eps(eps))
        with np.errstate(over="ignore"):  # the search passes far beyond the root: inf is more than asked for
            return plain(self._root(np.array(target), np.array(given), constants))

    def _root(self, target: Array, eps: Array, constants: Params) -> Array:
        low, high = np.zeros_like(target), np.ones_like(target)
        too_small = self.inverse(np.exp(low), eps, constants) > target
        if too_small.any():
            where = int(np.flatnonzero(too_small)[0])
            raise DomainError(
                f"{self.name}: no d >= 1 has ln k = {target.flat[where]:.12g} at epsilon = {eps.flat[where]:.12g}: "
                "one dimension already gives more"
            )
        while (short := self.inverse(np.exp(high), eps, constants) < target).any():
            if float(high.max()) >= _LN_D_MAX:
                raise DomainError(f"{self.name}: no d below 1e300 reaches the asked k at the asked epsilon")
            high = np.where(short, np.minimum(2.0 * high, _LN_D_MAX), high)
        # Bisect ln d down to the spacing of floats, then d itself, whose floats lie closer.
        low, high = bisect(lambda t: self.inverse(np.exp(t), eps, constants) < target, low, high)
        low, high = np.exp(low) * (1.0 - 1e-12), np.exp(high) * (1.0 + 1e-12)
        low, high = bisect(lambda d: self.inverse(d, eps, constants) < target, low, high)
        return np.maximum(0.5 * (low + high), 1.0)

    def _constants(self, params: Params) -> Params:
        for name, value in params.items():
            if name not in self.params:
                raise DomainError(f"{self.name} has no constant {name!r}; it has {', '.join(self.params)}")
            if not (math.isfinite(value) and value > 0):
                raise DomainError(f"{self.name}: constant {name} = {value} is outside the domain: it must be positive")
        return {**self.params, **params}
