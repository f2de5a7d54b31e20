"""How far the rows of one matrix have turned against the corresponding rows of another: the cosines, summarised."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from repcap.errors import VectorsError
from repcap.matrix import Matrix
from repcap.studies.pairing import Pairing

if TYPE_CHECKING:
    from repcap.geometry.nearest.corresponding import Corresponding

LOW = 0.05
"""Share of the quantile that says how far the rows that turn most have turned."""
QUANTILES = (0.0, 0.01, LOW, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)
BINS = 200


@dataclasses.dataclass(frozen=True)
class RowChange:
    """One pair of corresponding rows. norm_ratio: length in b over length in a."""

    row_a: int
    row_b: int
    token: str | None
    cosine: float
    norm_ratio: float


@dataclasses.dataclass(frozen=True)
class RowCosines:
    """Cosines of corresponding rows. rows: pairs with a direction on both sides; dropped: pairs without.

    quantiles: (share, cosine). norm_ratio: median of the length in b over that in a. worst: the rows that differ most,
    the worst first. edges, counts: histogram.
    """

    rows: int
    dropped: int
    mean: float
    std: float
    quantiles: tuple[tuple[float, float], ...]
    norm_ratio: float
    worst: tuple[RowChange, ...]
    edges: tuple[float, ...]
    counts: tuple[int, ...]

    @property
    def low(self) -> float:
        """The cosine above which 95 % of the rows lie."""
        return dict(self.quantiles)[LOW]

    def to_dict(self) -> dict[str, Any]:
        return {
            "rows": self.rows,
            "dropped": self.dropped,
            "mean": self.mean,
            "std": self.std,
            "quantiles": [{"share": share, "cosine": cosine} for share, cosine in self.quantiles],
            "norm_ratio": self.norm_ratio,
            "worst": [dataclasses.asdict(row) for row in self.worst],
            "histogram": {"edges": list(self.edges), "counts": list(self.counts)},
        }


def summarise_rows(found: Corresponding, pairing: Pairing, named: Matrix, worst: int) -> RowCosines:
    """Distribution and worst rows of corresponding cosines; token texts are those of `named`."""
    usable = np.flatnonzero(~np.isnan(found.cosine))
    if not len(usable):
        raise VectorsError("no row has a direction in both matrices: nothing to compare")
    cosine = found.cosine[usable]
    low = float(min(cosine.min(), 1.0 - 1e-6))
    counts, edges = np.histogram(cosine, bins=BINS, range=(low, 1.0))
    order = usable[np.argsort(cosine, kind="stable")[:worst]]
    text = named.tokens.text if named.tokens is not None else lambda _row: None
    changes = tuple(
        RowChange(
            row_a=int(pairing.a[at]),
            row_b=int(pairing.b[at]),
            token=text(int(pairing.a[at])),
            cosine=float(found.cosine[at]),
            norm_ratio=float(found.norm_b[at] / found.norm_a[at]),
        )
        for at in order
    )
    return RowCosines(
        rows=len(usable),
        dropped=len(found.cosine) - len(usable),
        mean=float(cosine.mean()),
        std=float(cosine.std()),
        quantiles=tuple((share, float(np.quantile(cosine, share))) for share in QUANTILES),
        norm_ratio=float(np.median(found.norm_b[usable] / found.norm_a[usable])),
        worst=changes,
        edges=tuple(edges.tolist()),
        counts=tuple(counts.tolist()),
    )
