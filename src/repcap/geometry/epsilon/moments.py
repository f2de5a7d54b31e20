"""Mean and standard deviation over all pairs of directions, exactly, without forming a pair.

With unit rows u_i, s = sum_i u_i (d,) and G = U^T U (d, d), over the N = n (n - 1) ordered pairs i != j:

    mean   = (s.s - n) / N
    second = (|G|_F^2 - n) / N          because sum_ij (u_i.u_j)^2 = tr(G G)
    std    = sqrt(second - mean^2)

O(n d^2) work in one pass, O(d^2) memory. Both sums add up over any split of the rows, which is what `Moments.__add__`
does: workers and streams each measure their part.
"""

from __future__ import annotations

import dataclasses
import math
import os
from typing import Any

import numpy as np
import torch

from repcap.devices import accumulator_device
from repcap.errors import InputError, VectorsError
from repcap.files import atomic_path
from repcap.numerics import Z_DEFAULT

_SUM_CHUNK = 512


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Moments:
    """The sums that mean, standard deviation and epsilon follow from. Mergeable: `a + b` is the union of the rows.

    count: number of unit rows, n.
    s: (d,) float64, on the cpu, sum of the unit rows.
    G: (d, d) float64, on the cpu, symmetric, sum of their outer products. Its trace is n.
    """

    count: int
    s: torch.Tensor
    G: torch.Tensor

    @staticmethod
    def empty(dim: int) -> Moments:
        """Moments of no rows in d = `dim` dimensions."""
        return Moments(0, torch.zeros(dim, dtype=torch.float64), torch.zeros((dim, dim), dtype=torch.float64))

    @staticmethod
    def of(units: torch.Tensor) -> Moments:
        """Moments of unit rows that are in memory, (n, d) float32 or float64, on any device. O(n d^2).

        Raises
        ------
        VectorsError
            if they are no such rows, or not of length 1.
        """
        if not isinstance(units, torch.Tensor) or units.ndim != 2 or units.dtype not in (torch.float32, torch.float64):
            raise VectorsError("moments are of a torch tensor of unit rows, (n, d), float32 or float64")
        builder = MomentsBuilder(units.shape[1], units.device, units.dtype)
        builder.add(units)
        moments = builder.result()
        if not moments.is_of_unit_rows():
            raise VectorsError(
                "the rows are not of length 1: divide each by its length first (and leave zero rows out)"
            )
        return moments

    def __repr__(self) -> str:
        return f"Moments({self.count} rows, d = {self.dim})"

    def is_of_unit_rows(self) -> bool:
        """Whether the trace of G is n to 1e-4, which sums of unit rows give."""
        return math.isclose(float(self.G.trace()), self.count, rel_tol=1e-4, abs_tol=1e-4)

    @property
    def dim(self) -> int:
        return int(self.s.shape[0])

    @property
    def pairs(self) -> int:
        """Ordered pairs, N = n (n - 1)."""
        return self.count * (self.count - 1)

    @property
    def mean(self) -> float:
        """Mean cosine over all pairs."""
        self._need_pairs()
        return (float(self.s @ self.s) - self.count) / self.pairs

    @property
    def second(self) -> float:
        """Mean squared cosine over all pairs."""
        self._need_pairs()
        return max((float(self.G.flatten() @ self.G.flatten()) - self.count) / self.pairs, 0.0)

    @property
    def std(self) -> float:
        """Population standard deviation of the cosines over all pairs."""
        return math.sqrt(max(self.second - self.mean**2, 0.0))

    def epsilon(self, z: float = Z_DEFAULT) -> float:
        """mean + z std."""
        return self.mean + z * self.std

    def __add__(self, other: Moments) -> Moments:
        self._need_same_dim(other)
        return Moments(self.count + other.count, self.s + other.s, self.G + other.G)

    def __sub__(self, other: Moments) -> Moments:
        """Moments of the rows of `self` without those of `other`, which must be among them."""
        self._need_same_dim(other)
        if other.count > self.count:
            raise VectorsError(f"cannot take {other.count} rows out of {self.count}")
        return Moments(self.count - other.count, self.s - other.s, self.G - other.G)

    def to_dict(self) -> dict[str, Any]:
        """`count`, and `s` (d,), `G` (d, d) as float64 numpy arrays: what a worker sends home."""
        return {"count": self.count, "s": self.s.numpy(), "G": self.G.numpy()}

    @staticmethod
    def from_dict(record: dict[str, Any]) -> Moments:
        """The inverse of `to_dict`.

        Raises
        ------
        InputError
            if the record holds no moments, or sums that belong to no set of unit rows.
        """
        try:
            count = int(record["count"])
            s = torch.from_numpy(np.array(record["s"], dtype=np.float64))
            G = torch.from_numpy(np.array(record["G"], dtype=np.float64))
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"not a record of moments (count, s, G): {error}") from error
        if s.ndim != 1 or G.shape != (len(s), len(s)) or count < 0:
            raise InputError(f"moments do not fit together: count {count}, s {tuple(s.shape)}, G {tuple(G.shape)}")
        moments = Moments(count, s, G)
        if not moments.is_of_unit_rows():
            raise InputError(f"moments are damaged: the trace of G is {float(G.trace()):g}, not the count {count}")
        return moments

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to an .npz file, whole or not at all."""
        with atomic_path(path) as temporary, temporary.open("wb") as file:
            np.savez(file, **self.to_dict())

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Moments:
        """Read what `save` wrote.

        Raises
        ------
        InputError
            if the file cannot be read or holds no moments.
        """
        try:
            with np.load(path, allow_pickle=False) as stored:
                return Moments.from_dict({name: stored[name] for name in stored.files})
        except (OSError, ValueError, TypeError, EOFError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"cannot read moments from {os.fspath(path)}: {error}") from error

    def _need_pairs(self) -> None:
        if self.count < 2:
            raise VectorsError(f"{self.count} vectors make no pair: at least two are needed")

    def _need_same_dim(self, other: Moments) -> None:
        if self.dim != other.dim:
            raise VectorsError(f"moments of {self.dim} and of {other.dim} dimensions do not add up")


class MomentsBuilder:
    """Adds unit rows block by block. Memory: G (8 d^2 bytes) and one panel of a product.

    The products are in the rows' own precision (float32 or float64), the sums in float64. G is symmetric, so for each
    panel of columns only the columns from that panel on are multiplied: (1 + 1/panels)/2 of the work of U^T U.
    """

    def __init__(self, dim: int, device: torch.device, dtype: torch.dtype) -> None:
        self.dim, self.device, self.dtype = dim, device, dtype
        self.count = 0
        self.sums_on = accumulator_device(device)
        self._s = torch.zeros(dim, dtype=torch.float64, device=self.sums_on)
        self._G = torch.zeros((dim, dim), dtype=torch.float64, device=self.sums_on)
        self.panel = panel_width(dim)
        self._product = torch.empty(self.panel * dim, dtype=dtype, device=device)

    def add(self, units: torch.Tensor) -> None:
        """Add (m, d) unit rows of this builder's dtype and device. O(m d^2 / 2)."""
        whole = len(units) // _SUM_CHUNK * _SUM_CHUNK
        for part in (units[:whole].unflatten(0, (-1, _SUM_CHUNK)), units[whole:][None]):  # (chunks, rows, d)
            self._s += part.sum(1).to(self.sums_on, torch.float64).sum(0)
        for first in range(0, self.dim, self.panel):
            left = units[:, first : first + self.panel].T  # (p, m)
            width = self.dim - first
            product = self._product[: left.shape[0] * width].view(left.shape[0], width)
            torch.mm(left, units[:, first:], out=product)  # (p, m) (m, d - first)
            self._G[first : first + self.panel, first:].add_(product.to(self.sums_on))  # "+=" would copy G once more
        self.count += units.shape[0]

    def squares(self) -> tuple[float, float]:
        """(|s|^2, |G|_F^2) so far, from the columns that are kept; more rows may follow. O(d^2) time, no copy of G."""
        F = 0.0
        for first in range(0, self.dim, self.panel):
            rows = self._G[first : first + self.panel]
            F += float(torch.linalg.vector_norm(rows[:, first : first + self.panel])) ** 2
            if first + self.panel < self.dim:
                F += 2.0 * float(torch.linalg.vector_norm(rows[:, first + self.panel :])) ** 2
        return float(self._s @ self._s), F

    def result(self) -> Moments:
        """The moments so far. The builder is spent: its G is handed over, not copied."""
        for first in range(self.panel, self.dim, self.panel):
            self._G[first : first + self.panel, :first] = self._G[:first, first : first + self.panel].T
        return Moments(self.count, self._s.cpu(), self._G.cpu())


def panel_width(dim: int) -> int:
    """Columns in a panel: narrow enough to save work, wide enough for fast products."""
    return min(dim, max(96, min(512, -(-dim // 4))))
