"""`design`: which d_model holds so many features and a vocabulary at a given epsilon, and what models of today do."""

from __future__ import annotations

import dataclasses
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

from repcap.bracket.capacity import Capacity, Tied, Vocab, capacity
from repcap.domain import check_eps
from repcap.errors import DomainError
from repcap.jobs.store import Store
from repcap.laws import fitted, published
from repcap.laws.fitting.data import published_models
from repcap.laws.fitting.ranges import outside
from repcap.numerics import format_power
from repcap.options import Option, verb
from repcap.result import Result

HEURISTIC = (
    "What is heuristic here: `ratio` and `full` interpolate what one optimiser reached for k <= 32000; that features "
    "keep to the epsilon of the embedding is the paper's assumption (repcap latents tests it); and that room for "
    "directions is what limits a model is a hypothesis. What is proven: so many directions fit into no d_model below "
    "`needed`, as it is before rounding, and do fit at `enough`. Whether training finds them is another matter."
)

PEER_FACTOR = 2.0
"""Models within this factor of the parameters asked for, or of d_model, count as peers."""

_SIZE = re.compile(r"(?<![A-Za-z0-9.])(\d+(?:\.\d+)?)\s?([MBT])(?![A-Za-z0-9])")
_UNIT = {"M": 1e6, "B": 1e9, "T": 1e12}


@dataclasses.dataclass(frozen=True)
class Width:
    """One answer: d as computed, `rounded` up to the multiple, and what the vocabulary's matrices weigh there.

    d, rounded: None where the law or the search has no answer. embedding_params: V d (2 V d if untied).
    share: of all parameters, where they are given.
    """

    name: str
    d: float | None
    rounded: int | None
    embedding_params: int | None
    share: float | None


@dataclasses.dataclass(frozen=True)
class DesignRow:
    """One epsilon: k directions in all, and the d_model that each law and each proven limit asks for."""

    epsilon: float
    k: float
    widths: tuple[Width, ...]
    warnings: tuple[str, ...]

    def width(self, name: str) -> Width:
        """The answer of a fitted law (`ratio`, `full`), `enough` or `needed`."""
        return next(width for width in self.widths if width.name == name)

    def beyond(self, law: str, side: str) -> bool:
        """Whether a law asks for more than is `enough`, or for less than is `needed`, both proven."""
        asked, proven = self.width(law).d, self.width(side).d
        if asked is None or proven is None:
            return False
        return asked > proven if side == "enough" else math.ceil(asked - 1e-9) < proven

    @property
    def extrapolates(self) -> bool:
        """Whether a law's answer lies outside the data that it was fitted to."""
        asked = (self.width(law).d for law in _laws())
        return any(outside(d, math.log(self.k)) is not None for d in asked if d is not None)


@dataclasses.dataclass(frozen=True)
class Peer:
    """A measured model of that size: parameters as its name says, or None."""

    model: str
    d_model: int
    epsilon: float
    ratio: float
    params: float | None
    tied: bool | None


@dataclasses.dataclass(frozen=True, repr=False)
class Design(Result):
    """d_model over epsilon for a number of features beside a vocabulary."""

    kind = "design"

    features: float
    vocab: int | None
    tied: bool
    multiple: int
    params: float | None
    points: tuple[DesignRow, ...]
    """One an epsilon, ascending: `rows` of the record."""
    peers: tuple[Peer, ...]
    peers_from: str
    heuristic: str = HEURISTIC

    @property
    def title(self) -> str:
        beside = f" beside {self._vocabulary}" if self.vocab else ""
        return f"{format_power(math.log10(self.features))} features{beside}"

    @property
    def numbers(self) -> str:
        first = self.points[0]
        widths = (f"{w.name} {'none' if w.rounded is None else w.rounded}" for w in first.widths)
        return f"d_model at epsilon {first.epsilon:g}: {', '.join(widths)}"

    @property
    def reading(self) -> str:
        """The result in a sentence or two."""
        first, last = self.points[0], self.points[-1]
        what = f"{format_power(math.log10(first.k))} directions ({format_power(math.log10(self.features))} features"
        what += f" and {self._vocabulary})" if self.vocab else ")"
        name = published().key
        law = _ends(first.width(name).rounded, last.width(name).rounded)
        # Proven is the number itself, not what it is rounded up to.
        least = _ends(
            *(None if end is None else math.ceil(end) for end in (w.width("needed").d for w in (first, last)))
        )
        asked = f"`{name}` asks for d_model {law}" if law else f"`{name}` has no answer"
        limit = f"no set exists in fewer than {least} dimensions" if least else "what is needed at least is not known"
        return f"For {what} at epsilon {_span(first.epsilon, last.epsilon)}: {asked}; {limit}."

    @property
    def remarks(self) -> tuple[str, ...]:
        """What to know of the numbers: laws outside the proven limits or their data, weights beyond the model's."""
        found = []
        for side, words in (
            ("enough", "more dimensions than are proven to be enough"),
            ("needed", "too few dimensions"),
        ):
            at: dict[str, list[str]] = {}
            for law in _laws():
                beyond = [row.epsilon for row in self.points if row.beyond(law, side)]
                if beyond:
                    at.setdefault(_span(min(beyond), max(beyond)), []).append(law)
            found += [f"at epsilon {span} {_asks(laws)} for {words}" for span, laws in at.items()]
        if any(row.extrapolates for row in self.points):
            found.append("the laws extrapolate beyond the data that they were fitted to (k up to 32000, d 32 to 4096)")
        if any((width.share or 0.0) >= 1.0 for row in self.points for width in row.widths):
            found.append("the vocabulary's matrices alone have more parameters than `params` gives the whole model")
        return tuple(found)

    @property
    def _vocabulary(self) -> str:
        assert self.vocab is not None
        return f"{self.vocab} tied rows" if self.tied else f"2 x {self.vocab} rows of the vocabulary"

    def values(self) -> dict[str, Any]:
        found = super().values()
        points = found.pop("points")
        return {**found, "rows": points, "remarks": list(self.remarks)}

    def rows(self) -> list[dict[str, Any]]:
        """One row an epsilon: d_model, rounded up, by each answer."""
        return [
            {"epsilon": point.epsilon, "k": point.k, **{width.name: width.rounded for width in point.widths}}
            for point in self.points
        ]


def _laws() -> list[str]:
    return [curve.key for curve in fitted()]


def _asks(laws: Sequence[str]) -> str:
    return " and ".join(laws) + (" asks" if len(laws) == 1 else " ask")


def _ends(first: int | None, last: int | None) -> str:
    return " to ".join(str(end) for end in dict.fromkeys((first, last)) if end is not None)


def _span(low: float, high: float) -> str:
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


@verb
def design(
    features: Annotated[float, Option("Features to hold, such as 1e7.", above=0.0, domain=True)],
    eps: Annotated[
        float | Iterable[float], Option("epsilon: one or more numbers in (0, 1).", write=lambda value: value)
    ],
    *,
    vocab: Vocab = None,
    tied: Tied = False,
    multiple: Annotated[int, Option("Round d_model up to a multiple of this.", least=1, domain=True)] = 128,
    params: Annotated[
        float | None, Option("Parameters of the whole model, such as 8e9.", above=0.0, domain=True)
    ] = None,
    store: Annotated[
        str | os.PathLike[str] | None, Option("Take the peers from this result store, not the published table.")
    ] = None,
) -> Design:
    """The d_model in which `features` directions, and the rows of a vocabulary, are eps-nearly-orthogonal.

    features: count, > 0. eps: one or more, in (0, 1). vocab, tied: V rows if tied, 2 V if not, are added to k.
    multiple: d_model is rounded up to it. params: of the whole model, for the share of the embedding and for peers.
    store: a result store whose measurements are the peers; None: the published table.

    Plain arithmetic, about 0.1 s an epsilon.

    Raises
    ------
    DomainError
        if a number is outside its domain.
    """
    wanted = [float(check_eps(e)) for e in (eps if isinstance(eps, Iterable) else [eps])]
    if not wanted:
        raise DomainError("give at least one epsilon")
    points = tuple(_row(features, epsilon, vocab, tied, multiple, params) for epsilon in sorted(set(wanted)))
    models, origin = _models(store)
    widths = [
        width.rounded for row in points for width in row.widths if width.name == published().key and width.rounded
    ]
    return Design(
        features=features,
        vocab=None if vocab is None else int(vocab),
        tied=tied,
        multiple=multiple,
        params=params,
        points=points,
        peers=_peers(models, params, widths),
        peers_from=origin,
    )


def _row(
    features: float, epsilon: float, vocab: float | None, tied: bool, multiple: int, params: float | None
) -> DesignRow:
    found: Capacity = capacity(eps=epsilon, k=features, vocab=vocab, tied=tied)
    proven = [found.bracket[name]["d"] for name in ("explicit", "exists")]
    answers = {
        **{law: found.laws[law]["d"] for law in _laws()},
        "enough": min((d for d in proven if d is not None), default=None),
        "needed": found.bracket["lower"]["d"],
    }
    widths = tuple(_width(name, d, vocab, tied, multiple, params) for name, d in answers.items())
    assert found.k is not None
    return DesignRow(epsilon, found.k, widths, found.warnings)


def _width(name: str, d: float | None, vocab: float | None, tied: bool, multiple: int, params: float | None) -> Width:
    if d is None:
        return Width(name, None, None, None, None)
    # 1e-9: a root finder's 4096.0000000001 is 4096.
    rounded = multiple * math.ceil(d / multiple - 1e-9)
    weights = None if vocab is None else int(vocab) * rounded * (1 if tied else 2)
    return Width(name, float(d), rounded, weights, None if weights is None or params is None else weights / params)


def params_in_name(name: str) -> float | None:
    """Parameters that a model's name states: the first of `7B`, `270M`, `1.5B`; None where it states none.

    >>> params_in_name("Qwen 3 30B A3B"), params_in_name("Gemma 3 270M"), params_in_name("Phi 4")
    (30000000000.0, 270000000.0, None)
    """
    match = _SIZE.search(name.replace("-", " ").replace("_", " "))
    return None if match is None else float(match.group(1)) * _UNIT[match.group(2)]


def _models(store: str | os.PathLike[str] | None) -> tuple[list[Peer], str]:
    if store is None:
        found = [_peer(m.model, m.d_model, m.epsilon, None) for m in published_models()]
        return found, "the published table (Guha, arXiv 2606.02765)"
    with Store(store, "read") as held:
        return list(_measured(entry.record for entry in held.records("measure"))), str(store)


def _measured(records: Iterable[Mapping[str, Any]]) -> Iterable[Peer]:
    for record in records:
        if record.get("epsilon") is not None and record.get("dim") and record.get("role") in (None, "embedding"):
            name = str(record.get("name") or record["source"])
            yield _peer(name, int(record["dim"]), float(record["epsilon"]), record.get("tied"), str(record["source"]))


def _peer(model: str, d: int, epsilon: float, tied: bool | None, source: str = "") -> Peer:
    params = params_in_name(model) or params_in_name(source.rpartition("/")[2])
    return Peer(model, d, epsilon, epsilon * math.sqrt(d) / 2.0, params, tied)


def _peers(models: Sequence[Peer], params: float | None, widths: Sequence[int]) -> tuple[Peer, ...]:
    """Models within a factor of 2 of `params`, or without it of the widths found, by size."""
    if params is not None:
        chosen = [m for m in models if m.params and 1 / PEER_FACTOR <= m.params / params <= PEER_FACTOR]
        return tuple(sorted(chosen, key=lambda m: (m.params or 0.0, m.model)))
    if not widths:
        return ()
    low, high = min(widths) / PEER_FACTOR, max(widths) * PEER_FACTOR
    return tuple(sorted((m for m in models if low <= m.d_model <= high), key=lambda m: (m.d_model, m.model)))
