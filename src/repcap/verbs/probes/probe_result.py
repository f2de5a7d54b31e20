"""What `probes` finds: parts of blocks as sets of directions, gains of norms."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from repcap.result import Result
from repcap.verbs.probes.probe_names import PARTS

if TYPE_CHECKING:
    from repcap.geometry.epsilon.epsilon import Spread


@dataclasses.dataclass(frozen=True)
class Aligned:
    """The largest |cosine| of a part's vectors with embedding rows. rows: vectors that were compared, all or random.

    largest: of all; vector: which vector of the part; row, token: which embedding row. mean: over the vectors, of each
    one's largest. random: what `largest` would be for as many random directions (median).
    """

    rows: int
    largest: float
    vector: int
    row: int
    token: str | None
    mean: float
    random: float

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


@dataclasses.dataclass(frozen=True)
class Part:
    """One part of one block: `count` vectors of the stream's width. writes: they are columns that are written.

    spread: None where fewer than two have a direction. median_norm, max_norm: lengths of the vectors.
    """

    layer: int
    part: str
    writes: bool
    tensors: tuple[str, ...]
    count: int
    spread: Spread | None
    median_norm: float
    max_norm: float
    aligned: Aligned | None

    def to_dict(self) -> dict[str, Any]:
        return {
            "layer": self.layer,
            "part": self.part,
            "direction": "writes" if self.writes else "reads",
            "tensors": list(self.tensors),
            "count": self.count,
            **({} if self.spread is None else {k: v for k, v in self.spread.to_dict().items() if k != "rows"}),
            "stored_count": self.count,
            "median_norm": self.median_norm,
            "max_norm": self.max_norm,
            "aligned": self.aligned.to_dict() if self.aligned else None,
        }


@dataclasses.dataclass(frozen=True)
class GainScale:
    """The gain of a norm, as it multiplies. rms: root of its mean square; small: share below a tenth of the median."""

    layer: int | None
    place: str
    tensor: str
    mean: float
    rms: float
    least: float
    most: float
    small: float

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


@dataclasses.dataclass(frozen=True, repr=False)
class Probes(Result):
    """Every part of every block that was found. embedding: its spread; weights: the parts; skipped: (tensor, why)."""

    kind = "probes"

    source: str
    dim: int
    embedding: Spread
    weights: tuple[Part, ...]
    gains: tuple[GainScale, ...]
    skipped: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    revision: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Parts that occur, in the order of a block."""
        present = {part.part for part in self.weights}
        return tuple(name for name in PARTS if name in present)

    @property
    def layers(self) -> tuple[int, ...]:
        return tuple(sorted({part.layer for part in self.weights}))

    def of(self, layer: int, name: str) -> Part | None:
        """One part of one block."""
        return next((part for part in self.weights if part.layer == layer and part.part == name), None)

    @property
    def title(self) -> str:
        return f"{self.source}, {len(self.layers)} blocks, {self.dim} dimensions"

    @property
    def numbers(self) -> str:
        known = {name: [p.spread.ratio for p in self.weights if p.part == name and p.spread] for name in self.names}
        means = ", ".join(f"{name} {sum(ratios) / len(ratios):.2f}" for name, ratios in known.items() if ratios)
        return f"epsilon as a multiple of random directions': {means}"

    @property
    def reading(self) -> str:
        """The range of the ratio to random directions, and the strongest alignment, in words."""
        known = [part for part in self.weights if part.spread is not None]
        if not known:
            return "No part has two vectors with a direction."
        low = min(known, key=lambda part: part.spread.ratio if part.spread else 0.0)
        high = max(known, key=lambda part: part.spread.ratio if part.spread else 0.0)
        assert low.spread is not None
        assert high.spread is not None
        text = (
            f"epsilon is {low.spread.ratio:.2f} ({low.part}, layer {low.layer}) to {high.spread.ratio:.2f} "
            f"({high.part}, layer {high.layer}) times that of random directions; the embedding's is "
            f"{self.embedding.ratio:.2f} times"
        )
        aligned = [part for part in self.weights if part.aligned is not None]
        if aligned:
            best = max(aligned, key=lambda part: part.aligned.largest if part.aligned else 0.0)
            assert best.aligned is not None
            what = f"token {best.aligned.token!r}" if best.aligned.token is not None else f"row {best.aligned.row}"
            text += (
                f". The vector nearest to an embedding row is one of {best.part} in layer {best.layer}: |cosine| "
                f"{best.aligned.largest:.3f} with {what} (random directions: {best.aligned.random:.3f})"
            )
        return text + "."

    def values(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "revision": self.revision,
            "dim": self.dim,
            "epsilon_null": self.embedding.null,
            "embedding": self.embedding.to_dict(),
            "parts": [part.to_dict() for part in self.weights],
            "gains": [gain.to_dict() for gain in self.gains],
            "skipped": [{"tensor": tensor, "reason": why} for tensor, why in self.skipped],
            "notes": list(self.notes),
        }

    def rows(self) -> list[dict[str, Any]]:
        """One row a part of a block."""
        return [
            {key: value for key, value in part.to_dict().items() if not isinstance(value, (list, dict))}
            for part in self.weights
        ]
