"""How well predictions fit observations: the measures that the published fits are judged by, and AIC.

All take float64 arrays of shape (n,) and cost O(n). Errors are in the unit of the observations unless said otherwise.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from repcap.errors import InputError

Floats = npt.NDArray[np.float64]

NRMSE_NORMALISER = "range of the observations (max - min)"
"""What `nrmse` divides by. It gives the published 0.9 %; the mean or the standard deviation do not."""


def _pair(observed: npt.ArrayLike, predicted: npt.ArrayLike) -> tuple[Floats, Floats]:
    y, p = np.asarray(observed, dtype=np.float64), np.asarray(predicted, dtype=np.float64)
    if y.ndim != 1 or y.shape != p.shape:
        raise InputError(f"observed {y.shape} and predicted {p.shape} must be one-dimensional and of one length")
    if y.size == 0:
        raise InputError("no observations to compare")
    return y, p


def r2(observed: npt.ArrayLike, predicted: npt.ArrayLike) -> float:
    """Coefficient of determination, 1 - SS_residual / SS_total about the mean of the observations.

    NaN where the observations do not vary. Negative where the prediction is worse than the mean.
    """
    y, p = _pair(observed, predicted)
    total = float(np.sum((y - y.mean()) ** 2))
    return 1.0 - float(np.sum((y - p) ** 2)) / total if total > 0.0 else math.nan


def rmse(observed: npt.ArrayLike, predicted: npt.ArrayLike) -> float:
    """Root of the mean squared error."""
    y, p = _pair(observed, predicted)
    return math.sqrt(float(np.mean((y - p) ** 2)))


def nrmse(observed: npt.ArrayLike, predicted: npt.ArrayLike) -> float:
    """RMSE divided by the range of the observations, as a fraction. NaN where they do not vary."""
    y, p = _pair(observed, predicted)
    span = float(y.max() - y.min())
    return rmse(y, p) / span if span > 0.0 else math.nan


def mape(observed: npt.ArrayLike, predicted: npt.ArrayLike) -> float:
    """Mean of |error| / |observation| as a fraction, over the observations that are not zero. NaN if all are zero."""
    y, p = _pair(observed, predicted)
    some = y != 0.0
    return float(np.mean(np.abs((y[some] - p[some]) / y[some]))) if some.any() else math.nan


def max_error(observed: npt.ArrayLike, predicted: npt.ArrayLike) -> float:
    """Largest |error|."""
    y, p = _pair(observed, predicted)
    return float(np.max(np.abs(y - p)))


def aic(observed: npt.ArrayLike, predicted: npt.ArrayLike, parameters: int) -> float:
    """Akaike's information criterion for least squares: n ln(SS_residual / n) + 2 (parameters + 1).

    Up to a constant that depends on the observations alone: compare it between laws on the same cells and the same
    scale only, lower is better. The extra parameter is the variance of the errors (Burnham and Anderson 2002, 2.2).
    """
    y, p = _pair(observed, predicted)
    mean_square = float(np.mean((y - p) ** 2))
    return y.size * math.log(mean_square) + 2.0 * (parameters + 1) if mean_square > 0.0 else -math.inf


@dataclasses.dataclass(frozen=True)
class Metrics:
    """Every measure of one set of predictions; fractions, not percent."""

    n: int
    r2: float
    rmse: float
    nrmse: float
    mape: float
    max_error: float

    @classmethod
    def of(cls, observed: npt.ArrayLike, predicted: npt.ArrayLike) -> Metrics:
        """All measures of `predicted` against `observed`, both of shape (n,)."""
        pair = _pair(observed, predicted)
        return cls(pair[0].size, r2(*pair), rmse(*pair), nrmse(*pair), mape(*pair), max_error(*pair))

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)
