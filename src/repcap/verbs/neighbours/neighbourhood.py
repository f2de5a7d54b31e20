"""What `neighbours` finds."""

from __future__ import annotations

import dataclasses
from typing import Any

from repcap.matrix import titled
from repcap.result import Result

SAID = 3
"""Answers of a kind that the reading names."""


@dataclasses.dataclass(frozen=True)
class Neighbour:
    """One row, its token, and its cosine with what was asked for."""

    row: int
    token: str | None
    cosine: float


@dataclasses.dataclass(frozen=True)
class TokenNeighbours:
    """The rows nearest to one token and those most opposed to it."""

    row: int
    token: str | None
    nearest: tuple[Neighbour, ...]
    opposed: tuple[Neighbour, ...]


@dataclasses.dataclass(frozen=True)
class Analogy:
    """Rows nearest to a sum of unit rows; forms of its own words do not count. rank: of `expected` among them."""

    expression: str
    nearest: tuple[Neighbour, ...]
    excluded: int
    expected: str | None = None
    rank: int | None = None


@dataclasses.dataclass(frozen=True)
class PairKind:
    """Cosines of the listed word pairs of one kind. above: share beyond epsilon. missing: pairs not in the tokens."""

    kind: str
    cosines: tuple[float, ...]
    pairs: tuple[tuple[str, str], ...]
    mean: float
    above: float
    missing: int


@dataclasses.dataclass(frozen=True)
class Cluster:
    """A primary token: the nearest neighbour of `size` others, of which the first are listed."""

    row: int
    token: str | None
    size: int
    members: tuple[Neighbour, ...]


@dataclasses.dataclass(frozen=True)
class Suspect:
    """A row that may be a duplicate or an untrained (glitch) token.

    influence: epsilon minus epsilon without the row. length: of the row over the median length.
    """

    row: int
    token: str | None
    twin: int
    twin_token: str | None
    cosine: float
    influence: float
    length: float


@dataclasses.dataclass(frozen=True)
class Tail:
    """Pairs beyond epsilon, and how many of them are forms of one word (case, plural, leading space).

    lexical_pairs: all pairs of forms of one word; lexical_beyond: those beyond epsilon.
    """

    beyond: int
    pairs: int
    lexical_beyond: int
    lexical_pairs: int

    @property
    def share(self) -> float:
        """Share of the right tail that lexical variants explain."""
        return self.lexical_beyond / self.beyond if self.beyond else 0.0


@dataclasses.dataclass(frozen=True)
class Overview:
    """The whole vocabulary: primary tokens, the right tail, nearly identical rows."""

    tau: int
    primary_count: int
    primary: tuple[Cluster, ...]
    tail: Tail | None
    twin_groups: tuple[tuple[int, ...], ...]
    suspects: tuple[Suspect, ...]
    suspect_count: int
    nearest_quantiles: tuple[tuple[float, float], ...]


@dataclasses.dataclass(frozen=True, repr=False)
class Neighbourhood(Result):
    """What `neighbours` found: only what was asked for is not empty."""

    kind = "neighbours"

    source: str
    matrix: str
    count: int
    dim: int
    epsilon: float
    tokens: tuple[TokenNeighbours, ...]
    analogies: tuple[Analogy, ...]
    word_pairs: tuple[PairKind, ...]
    overview: Overview | None
    revision: str | None = None

    @property
    def title(self) -> str:
        return f"{titled(self.matrix, self.source)}, {self.count} x {self.dim}"

    @property
    def numbers(self) -> str:
        return f"epsilon {self.epsilon:.6f}"

    @property
    def reading(self) -> str:
        """What is near what, in words: of each kind of answer the first lines."""
        said = [f"nearest to {_named(one)} is {_first(one.nearest)}" for one in self.tokens[:SAID]]
        for one in self.analogies[:SAID]:
            rank = "" if one.rank is None else f' and "{one.expected}" is number {one.rank}'
            said.append(f"nearest to {one.expression} is {_first(one.nearest)}{rank}")
        means = [f"{kind.mean:.2f} ({kind.kind})" for kind in self.word_pairs if kind.cosines]
        if means:
            said.append(f"word pairs have mean cosines of {', '.join(means)}")
        if self.overview is not None:
            seen = self.overview
            said.append(f"{seen.primary_count} tokens are the nearest neighbour of more than {seen.tau} others")
            if seen.tail is not None:
                said.append(f"forms of one word are {seen.tail.share:.2%} of the pairs beyond epsilon")
            said.append(f"{seen.suspect_count} rows nearly equal another")
        text = "; ".join(said)
        return text[:1].upper() + text[1:] + "." if text else ""

    def values(self) -> dict[str, Any]:
        called = {field.name for field in dataclasses.fields(Result)}
        record = {name: value for name, value in dataclasses.asdict(self).items() if name not in called}
        if self.overview is not None and self.overview.tail is not None:
            record["overview"]["tail"]["share"] = self.overview.tail.share
        return record


def _named(one: Neighbour | TokenNeighbours) -> str:
    return f"row {one.row}" if one.token is None else f'"{one.token}"'


def _first(nearest: tuple[Neighbour, ...]) -> str:
    return f"{_named(nearest[0])}, {nearest[0].cosine:.4f}" if nearest else "nothing"
