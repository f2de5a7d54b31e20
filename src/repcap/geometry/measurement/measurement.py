"""The result of measuring one matrix."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from repcap.geometry.epsilon.epsilon import Spread
from repcap.matrix import MatrixInfo
from repcap.numerics import finite
from repcap.result import Result

if TYPE_CHECKING:
    from repcap.geometry.epsilon.influence import Influence
    from repcap.geometry.epsilon.sample import Estimate
    from repcap.geometry.epsilon.spectrum import Spectrum
    from repcap.geometry.readout.leverage import ReadoutLimits


@dataclasses.dataclass(frozen=True)
class RowNote:
    """A row worth naming: row number, why, token text where it is known."""

    index: int
    reason: str
    token: str | None = None

    def to_dict(self) -> dict[str, Any]:
        record: dict[str, Any] = {"index": self.index, "reason": self.reason}
        if self.token is not None:
            record["token"] = self.token
        return record


@dataclasses.dataclass(frozen=True)
class RepeatGroup:
    """Rows with the same direction, bit for bit."""

    indices: tuple[int, ...]
    tokens: tuple[str | None, ...] = ()
    size: int = 0
    """Rows in the group; `indices` and `tokens` list the first of them."""

    def to_dict(self) -> dict[str, Any]:
        return {"size": self.size, "indices": list(self.indices), "tokens": list(self.tokens)}


@dataclasses.dataclass(frozen=True)
class RowFindings:
    """Rows worth naming. At most 1000 of each kind are listed; the counts are whole.

    dropped: rows without a direction (zero, non-finite), which are left out.
    tiny: rows shorter than 1/1000 of the median length. They keep their direction and are measured.
    repeats: groups of rows with equal directions; `repeat_rows`: rows whose direction an earlier row has.
    padding_rows: rows beyond the `tokenizer_count` ids of the tokenizer (None where there is no tokenizer).
    """

    dropped: tuple[RowNote, ...]
    dropped_count: int
    tiny: tuple[RowNote, ...]
    tiny_count: int
    repeats: tuple[RepeatGroup, ...]
    repeat_rows: int
    padding_rows: int
    tokenizer_count: int | None

    def to_dict(self) -> dict[str, Any]:
        return {
            "dropped": [row.to_dict() for row in self.dropped],
            "dropped_count": self.dropped_count,
            "tiny": [row.to_dict() for row in self.tiny],
            "tiny_count": self.tiny_count,
            "repeats": [group.to_dict() for group in self.repeats],
            "repeat_rows": self.repeat_rows,
            "padding_rows": self.padding_rows,
            "tokenizer_count": self.tokenizer_count,
        }


@dataclasses.dataclass(frozen=True, repr=False)
class Measurement(Result):
    """Cosines between all pairs of rows of one matrix, in two numbers, and what follows from them.

    Plain Python numbers, strings and tuples; it compares, copies and pickles.

    spread: mean, std, epsilon of all rows, the published convention; exact unless `estimate` is given.
    epsilon_se: jackknife standard error over rows as a sample of rows (None where n < 3), from `se_rows` rows. Of an
    estimate: the standard error of the estimate.
    variants: the same on other rows or after a common part was removed: `tokenizer`, `distinct`, `centred`, `top 1` ...
    common: in words, whether one common direction is what makes epsilon high; None unless class is `high`.
    common_share: share of the excess over random directions that is gone without it; None where that is not known.
    readout: how well a linear readout can tell the rows apart, from G alone; None of an estimate.
    drift: (ids, epsilon of the first so many ids), of 8192 random rows where all are dear; empty for few rows.
    seconds: wall time. bytes_read: in the stored encoding.
    """

    tells = True

    info: MatrixInfo
    spread: Spread
    epsilon_se: float | None
    se_rows: int
    variants: tuple[Spread, ...]
    spectrum: Spectrum
    readout: ReadoutLimits | None
    common: str | None
    common_share: float | None
    influence: Influence | None
    estimate: Estimate | None
    findings: RowFindings
    notes: tuple[str, ...]
    drift: tuple[tuple[int, float], ...]
    device: str
    bytes_read: int

    kind = "measurement"

    @property
    def title(self) -> str:
        return f"{self.info.title}, {self.count} x {self.dim}"

    @property
    def numbers(self) -> str:
        error = "" if self.epsilon_se is None else f" ± {self.epsilon_se:.2g}"
        return (
            f"mean {self.mean:.6f}, std {self.std:.6f}, epsilon {self.epsilon:.6f}{error}, "
            f"{self.epsilon_ratio:.3g} times random, class {self.class_name}"
        )

    @property
    def count(self) -> int:
        """Rows that have a direction and were measured, n."""
        return self.spread.count

    @property
    def dim(self) -> int:
        """Columns, d."""
        return self.spread.dim

    @property
    def mean(self) -> float:
        """Mean cosine over all pairs."""
        return self.spread.mean

    @property
    def std(self) -> float:
        """Population standard deviation of the cosines over all pairs."""
        return self.spread.std

    @property
    def epsilon(self) -> float:
        """mean + z std."""
        return self.spread.epsilon

    @property
    def epsilon_null(self) -> float:
        """z/sqrt(d), the epsilon of random directions."""
        return self.spread.null

    @property
    def epsilon_ratio(self) -> float:
        """epsilon / epsilon_null; NaN where z = 0."""
        return self.spread.ratio

    @property
    def class_name(self) -> str:
        """`high`, `between` or `low`."""
        return self.spread.class_name

    @property
    def tied(self) -> bool | None:
        """Whether embedding and unembedding are one matrix; None where that is not known."""
        return self.info.tied

    @property
    def effective_dim(self) -> float:
        """1 / mean squared cosine; infinite where all rows are orthogonal."""
        return self.spread.effective_dim

    def values(self) -> dict[str, Any]:
        """Every number above, JSON-ready: null where one is not finite. Keys are stable."""
        info, spread = self.info, self.spread
        return {
            "source": info.source,
            "revision": info.revision,
            "matrix": info.name,
            "role": info.role,
            "count": spread.count,
            "stored_count": info.count,
            "dim": spread.dim,
            "dtype": info.dtype,
            "mean": spread.mean,
            "std": spread.std,
            "z": spread.z,
            "epsilon": spread.epsilon,
            "epsilon_null": spread.null,
            "epsilon_ratio": finite(spread.ratio),
            "epsilon_se": self.epsilon_se,
            "se_rows": self.se_rows,
            "class": spread.class_name,
            "tied": info.tied,
            "evidence": info.evidence,
            "effective_dim": finite(spread.effective_dim),
            "estimate": self.estimate.to_dict() if self.estimate else None,
            "variants": [variant.to_dict() for variant in self.variants],
            "common": self.common,
            "common_share": self.common_share,
            "spectrum": self.spectrum.to_dict(),
            "readout": self.readout.to_dict() if self.readout else None,
            "influence": self.influence.to_dict() if self.influence else None,
            **self.findings.to_dict(),
            "notes": list(self.notes),
            "warnings": list(info.warnings),
            "drift": [{"ids": ids, "epsilon": epsilon} for ids, epsilon in self.drift],
            "device": self.device,
            "bytes_read": self.bytes_read,
        }
