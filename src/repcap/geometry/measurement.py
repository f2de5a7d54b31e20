"""The result of measuring one matrix."""

from __future__ import annotations

import dataclasses
from typing import Any

from repcap._version import __version__
from repcap.geometry.epsilon import Spread
from repcap.geometry.influence import Influence
from repcap.geometry.sample import Estimate
from repcap.geometry.spectrum import Spectrum
from repcap.matrix import MatrixInfo


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


@dataclasses.dataclass(frozen=True)
class Measurement:
    """Cosines between all pairs of rows of one matrix, in two numbers, and what follows from them.

    spread: mean, std, epsilon of all rows, the published convention; exact unless `estimate` is given.
    epsilon_se: jackknife standard error over rows as a sample of rows (None where n < 3), from `se_rows` rows. Of an
    estimate: the standard error of the estimate.
    variants: the same on other rows or after a common part was removed: `tokenizer`, `distinct`, `centred`, `top 1` ...
    common: in words, whether one common direction is all that makes epsilon high; None unless class is `high`.
    seconds: wall time. bytes_read: in the stored encoding.
    """

    info: MatrixInfo
    spread: Spread
    epsilon_se: float | None
    se_rows: int
    variants: tuple[Spread, ...]
    spectrum: Spectrum
    common: str | None
    influence: Influence | None
    estimate: Estimate | None
    findings: RowFindings
    notes: tuple[str, ...]
    options: dict[str, Any]
    device: str
    seconds: float
    bytes_read: int

    @property
    def count(self) -> int:
        """Rows that have a direction and were measured, n."""
        return self.spread.count

    @property
    def dim(self) -> int:
        return self.spread.dim

    @property
    def mean(self) -> float:
        return self.spread.mean

    @property
    def std(self) -> float:
        return self.spread.std

    @property
    def epsilon(self) -> float:
        return self.spread.epsilon

    @property
    def epsilon_null(self) -> float:
        return self.spread.null

    @property
    def epsilon_ratio(self) -> float:
        return self.spread.ratio

    @property
    def class_name(self) -> str:
        """`high`, `between` or `low`."""
        return self.spread.class_name

    @property
    def tied(self) -> bool | None:
        return self.info.tied

    @property
    def effective_dim(self) -> float:
        return self.spread.effective_dim

    def to_dict(self) -> dict[str, Any]:
        """Every number above, JSON-ready. Keys are stable."""
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
            "epsilon_ratio": spread.ratio,
            "epsilon_se": self.epsilon_se,
            "se_rows": self.se_rows,
            "class": spread.class_name,
            "tied": info.tied,
            "evidence": info.evidence,
            "effective_dim": spread.effective_dim,
            "estimate": self.estimate.to_dict() if self.estimate else None,
            "variants": [variant.to_dict() for variant in self.variants],
            "common": self.common,
            "spectrum": self.spectrum.to_dict(),
            "influence": self.influence.to_dict() if self.influence else None,
            **self.findings.to_dict(),
            "notes": list(self.notes),
            "warnings": list(info.warnings),
            "options": self.options,
            "device": self.device,
            "seconds": self.seconds,
            "bytes_read": self.bytes_read,
            "repcap_version": __version__,
        }
