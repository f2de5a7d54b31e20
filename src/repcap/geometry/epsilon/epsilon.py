"""What follows from mean and standard deviation: epsilon, its null, its class, the effective dimension."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from repcap.errors import DomainError
from repcap.numerics import CLASS_HIGH, CLASS_LOW, Z_DEFAULT, epsilon_class, finite

NULL_WARNING_DIM = 400
"""Below this d a random isotropic matrix has epsilon = 2/sqrt(d) > 0.1, the border of class `low`."""


def check_z(z: float) -> float:
    """z, if it is a finite number >= 0.

    Raises
    ------
    DomainError
        otherwise.
    """
    number = isinstance(z, (int, float))
    if not number or not math.isfinite(z) or z < 0:
        shown = f"{z:g}" if number else repr(z)
        raise DomainError(f"z = {shown} is no number of standard deviations: give a finite z >= 0 (the default is 2)")
    return float(z)


def epsilon_null(dim: int, z: float = Z_DEFAULT) -> float:
    """epsilon of random isotropic directions: mean 0, std 1/sqrt(d), so z/sqrt(d)."""
    return z / math.sqrt(dim)


@dataclasses.dataclass(frozen=True)
class Spread:
    """Mean and standard deviation of the cosines of one set of rows, and what follows from them.

    rows: which rows (`all`, `tokenizer`, `distinct`, `centred` ...).
    count: rows in the set, n. dim: d. dropped: rows of the set that have no direction and are not counted.
    """

    rows: str
    count: int
    dim: int
    mean: float
    std: float
    z: float = Z_DEFAULT
    dropped: int = 0
    sampled: bool = False
    """True where these are random rows that stand for the whole set."""

    @property
    def epsilon(self) -> float:
        return self.mean + self.z * self.std

    @property
    def second(self) -> float:
        return self.std**2 + self.mean**2

    @property
    def null(self) -> float:
        return epsilon_null(self.dim, self.z)

    @property
    def ratio(self) -> float:
        """epsilon / epsilon_null; NaN where z = 0, whose null is 0."""
        return self.epsilon / self.null if self.null else math.nan

    @property
    def class_name(self) -> str:
        """`high`, `between` or `low`: always of mean + 2 std, for which the borders are published."""
        return epsilon_class(self.mean + Z_DEFAULT * self.std)

    @property
    def effective_dim(self) -> float:
        """1 / second: the number of dimensions in which random directions have the same mean squared cosine.

        At most d, and at most n where these are all rows: rows that are nearer to orthogonal than random directions
        use every dimension that they could.
        """
        most = self.dim if self.sampled else min(self.dim, self.count)
        return min(1.0 / self.second, float(most)) if self.second > 0 else float(most)

    def to_dict(self) -> dict[str, Any]:
        """Every number, JSON-ready: null where one is not finite."""
        return {
            "rows": self.rows,
            "count": self.count,
            "sampled": self.sampled,
            "dropped_count": self.dropped,
            "mean": self.mean,
            "std": self.std,
            "epsilon": self.epsilon,
            "epsilon_ratio": finite(self.ratio),
            "class": self.class_name,
            "effective_dim": finite(self.effective_dim),
        }


def null_note(dim: int) -> str | None:
    """The sentence that belongs to the class of a narrow matrix, or None where d >= 400."""
    if dim >= NULL_WARNING_DIM:
        return None
    null = epsilon_null(dim)
    border = f"above {CLASS_HIGH:g}, class high" if null > CLASS_HIGH else f"above {CLASS_LOW:g}, not class low"
    return (
        f"the class borders 0.1 and 0.2 do not depend on d: at d = {dim} even random directions have epsilon "
        f"{null:.3f} ({border}); read the ratio to the null instead"
    )
