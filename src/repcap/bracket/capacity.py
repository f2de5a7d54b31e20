"""`capacity`: from two of (d, epsilon, k) the third, by every law and between what is proven from both sides."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Annotated, Any

from repcap.bracket.interval import RANDOM_CODING, bracket, extrapolation
from repcap.constructions.best import best_coherence, best_construction
from repcap.domain import check_eps, check_log_k, scalar_d
from repcap.errors import DomainError
from repcap.laws import curves, fitted, law_epsilon, published
from repcap.laws.law import Curve, Law
from repcap.laws.limits.bounds import coherence_lower_bound, upper_bound
from repcap.laws.limits.existence import gilbert_varshamov, gilbert_varshamov_coherence, random_coherence
from repcap.numerics import LN10, format_power, power
from repcap.options import Option, verb
from repcap.result import Result

_D_MOST = 10**6
"""Dimensions that are searched when d is asked for."""
_VOCAB_MOST = 10**15


@dataclasses.dataclass(frozen=True)
class Budget:
    """Vectors that a vocabulary takes: 2 V with separate embedding and unembedding, V where they are tied."""

    vocab: int
    tied: bool
    needed: int
    left: dict[str, float | None]
    """log10 of what is left for features, by law and by end of the bracket, where k was asked for; None: too few."""

    def to_dict(self) -> dict[str, Any]:
        left = {name: {"log10_k": value, "k": power(value)} for name, value in self.left.items()}
        return {"vocab": self.vocab, "tied": self.tied, "needed": self.needed, "left": left}


def _within_float(number: float) -> float | None:
    """What a record holds of a number that may be a whole number of any size."""
    return number if number < 1e308 else None


Vocab = Annotated[int | float | None, Option("Vocabulary V: it takes 2 V vectors.")]
Tied = Annotated[bool, Option("Embedding is unembedding: V takes V vectors.")]


@dataclasses.dataclass(frozen=True, repr=False)
class Capacity(Result):
    """Two of (d, epsilon, k) as given, and the third (`solved_for`) by every law and between the proven limits.

    solved_for: `k`, `epsilon` or `d`: what the entries of `laws` and `bracket` hold.
    """

    kind = "capacity"

    solved_for: str
    d: int | None
    epsilon: float | None
    k: float | None
    laws: dict[str, dict[str, Any]]
    bracket: dict[str, dict[str, Any]]
    budget: Budget | None
    warnings: tuple[str, ...]
    said: str = dataclasses.field(repr=False)
    """`reading`, the result in one sentence."""

    @property
    def reading(self) -> str:
        return self.said

    @property
    def title(self) -> str:
        """What was given, in words."""
        words = []
        if self.k is not None:
            words.append(f"k = {format_power(math.log10(self.k))}")
        if self.d is not None:
            words.append(f"d = {self.d}")
        if self.epsilon is not None:
            ratio = self.epsilon_ratio
            words.append(f"epsilon = {self.epsilon:.6g}" + (f" = {ratio:.3g} times random" if ratio else ""))
        if self.budget is not None:
            times = "" if self.budget.tied else "2 x "
            words.append(f"vocabulary takes {times}{self.budget.vocab} = {self.budget.needed}")
        return ", ".join(words)

    @property
    def numbers(self) -> str:
        key = ENTRY_KEYS[self.solved_for]
        ends = {name: self.bracket[name][key] for name in ("construction", "upper", "lower") if name in self.bracket}
        return f"{key}: " + ", ".join(
            f"{name} {'none' if value is None else format(value, '.4g')}" for name, value in ends.items()
        )

    @property
    def epsilon_null(self) -> float | None:
        """2/sqrt(d): mean + 2 std of the cosines of random directions."""
        return None if self.d is None else 2.0 / math.sqrt(self.d)

    @property
    def epsilon_ratio(self) -> float | None:
        """epsilon / epsilon_null, where both are given."""
        return None if self.epsilon is None or self.epsilon_null is None else self.epsilon / self.epsilon_null

    def values(self) -> dict[str, Any]:
        """What was solved for stands in `laws` and `bracket` only."""
        result: dict[str, Any] = {"d": self.d, "epsilon": self.epsilon}
        result = {key: value for key, value in result.items() if value is not None}
        if self.k is not None:
            result |= {"k": _within_float(self.k), "log10_k": math.log10(self.k)}
        result["solved_for"] = self.solved_for
        if self.epsilon_ratio is not None:
            result |= {"epsilon_null": self.epsilon_null, "epsilon_ratio": self.epsilon_ratio}
        result |= {"laws": self.laws, "bracket": self.bracket}
        if self.budget is not None:
            result["budget"] = self.budget.to_dict()
        return result | {"warnings": list(self.warnings)}

    def rows(self) -> list[dict[str, Any]]:
        """One row a law and an end of the bracket."""
        ends = {name: entry for name, entry in self.bracket.items() if name not in self.laws}
        return [
            *({"what": name, "from": "law", **entry} for name, entry in self.laws.items()),
            *({"what": name, "from": "bracket", **entry} for name, entry in ends.items()),
        ]


ENTRY_KEYS = {"k": "log10_k", "epsilon": "epsilon", "d": "d"}
"""What was solved for -> the key of the entries of `laws` and `bracket`."""


@verb
def capacity(
    d: Annotated[int | float | None, Option("Dimensions.")] = None,
    eps: Annotated[float | None, Option("Accepted |cosine|, between 0 and 1.")] = None,
    k: Annotated[int | float | None, Option("Vectors; with vocab: features beside it.", write=_within_float)] = None,
    vocab: Vocab = None,
    tied: Tied = False,
) -> Capacity:
    """How many near-orthogonal vectors fit (d and eps given), how near (d and k), or into how many dimensions (k, eps).

    With `vocab` = V the vocabulary takes 2 V of the vectors (V if `tied`): beside d and eps the result tells what is
    left for features; beside one of d and eps, k counts the features (0 where it is left out) and the vocabulary is
    added to it.

    Plain float arithmetic; milliseconds.

    Examples
    --------
    >>> result = capacity(d=64, eps=0.125)
    >>> round(10 ** result.bracket["explicit"]["log10_k"]), round(10 ** result.bracket["upper"]["log10_k"])
    (2112, 2112)

    Raises
    ------
    DomainError
        unless exactly two of d, eps and k (or vocab) are given, each in its domain: d >= 1 whole, 0 < eps < 1, k > 1,
        vocab >= 1.
    """
    needed = _needed(vocab, tied)
    if vocab is not None and (d is None or eps is None):
        if k is not None and not k >= 0:
            raise DomainError(
                f"k = {str(k)[:40]} is outside the domain: beside a vocabulary it counts features, 0 or more"
            )
        k = needed + (k or 0)
    if sum(value is not None for value in (d, eps, k)) != 2:
        raise DomainError("give exactly two of d, eps and k (a vocabulary stands for a k)")
    if k is None:
        result = _count(scalar_d(d), float(check_eps(eps)))
    elif eps is None:
        result = _nearness(scalar_d(d), k)
    else:
        result = _dimensions(k, float(check_eps(eps)))
    if vocab is None:
        return result
    return dataclasses.replace(result, budget=_budget(result, vocab, tied, needed))


def _needed(vocab: float | None, tied: bool) -> int:
    if vocab is None:
        if tied:
            raise DomainError("tied says how a vocabulary counts: give vocab too")
        return 0
    if not (1 <= vocab <= _VOCAB_MOST and vocab == int(vocab)):
        raise DomainError(f"vocab = {str(vocab)[:40]} is outside the domain: a whole number >= 1 is needed")
    return int(vocab) * (1 if tied else 2)


def _budget(result: Capacity, vocab: float, tied: bool, needed: int) -> Budget:
    left: dict[str, float | None] = {}
    if result.solved_for == "k":
        ends = {name: entry for name, entry in result.bracket.items() if name not in result.laws}
        for name, entry in {**result.laws, **ends}.items():
            share = math.log(needed) - entry["log10_k"] * LN10
            left[name] = entry["log10_k"] + math.log1p(-math.exp(share)) / LN10 if share < 0 else None
    return Budget(int(vocab), tied, needed, left)


def _found(
    solved_for: str,
    laws: dict[str, dict[str, Any]],
    ends: dict[str, dict[str, Any]],
    warnings: Sequence[str],
    said: str,
    *,
    d: int | None = None,
    epsilon: float | None = None,
    k: float | None = None,
) -> Capacity:
    return Capacity(
        solved_for=solved_for,
        d=d,
        epsilon=epsilon,
        k=k,
        laws=laws,
        bracket=ends,
        budget=None,
        warnings=tuple(warnings),
        said=said,
    )


def _count(d: int, eps: float) -> Capacity:
    found = bracket(d, eps)
    laws = {name: {"log10_k": value, "k": power(value)} for name, value in found.laws.items()}
    proven, name = found.proven
    if found.exact:
        limits = f"exactly {format_power(proven)} lines are possible ({name})"
    else:
        limits = f"at least {format_power(proven)} lines exist ({name}) and no set has more than "
        limits += format_power(found.upper.log10_k)
    law = published().key
    reading = (
        f"In {d} dimensions with every |cosine| <= {eps:.6g} {limits}; "
        f"{format_power(found.laws[law])} ({law}) is what a published optimiser would reach by its fit."
    )
    return _found("k", laws, found.ends(), found.warnings, reading, d=d, epsilon=eps)


def _nearness(d: int, k: float) -> Capacity:
    log_k = float(check_log_k(k))
    laws = law_epsilon(log_k, d)
    explicit, exists = best_coherence(k, d), gilbert_varshamov_coherence(k, d)
    lower = coherence_lower_bound(k, d)
    chance = random_coherence(k, d) if log_k >= math.log(2.0) else 0.0
    ends: dict[str, dict[str, Any]] = {
        "explicit": {"epsilon": explicit.coherence, "name": explicit.name, "log10_k": explicit.log10_k},
        "exists": {"epsilon": exists, "name": RANDOM_CODING},
        "random": {"epsilon": chance},
        **{curve.key: {"epsilon": laws[curve.key]} for curve in fitted()},
        "lower": {"epsilon": lower.value, "name": lower.name},
    }
    best, name = min((explicit.coherence, explicit.name), (exists, RANDOM_CODING))
    warnings = _warnings_of_nearness(d, log_k, laws, (best, name), lower.value)
    count = format_power(log_k / LN10)
    if lower.value > 1.0 - 1e-9:
        limits = f"the least coherence is within {1.0 - lower.value:.1g} of 1"
    elif explicit.coherence <= lower.value * (1.0 + 1e-9):
        limits = f"the least coherence is exactly {best:.4g} ({name})"
    else:
        limits = f"some set has coherence {best:.4g} ({name}) and none has less than {lower.value:.4g}"
    reading = f"For {count} lines in {d} dimensions {limits}; random lines have about {chance:.4g}."
    entries = {law: {"epsilon": value} for law, value in laws.items()}
    return _found("epsilon", entries, ends, warnings, reading, d=d, k=k)


def _warnings_of_nearness(
    d: int, log_k: float, laws: dict[str, float], best: tuple[float, str], lower: float
) -> list[str]:
    """What to know of the laws' epsilon at (k, d), given the best proven (epsilon, name) and the proven least."""
    warnings = []
    keys = [curve.key for curve in fitted()]
    for law in (law for law in keys if laws[law] < 1.0):
        if best[0] * (1.0 + 1e-9) < laws[law]:
            warnings.append(f"{law} gives {laws[law]:.4g}, but {best[0]:.4g} is proven to be possible ({best[1]})")
        elif laws[law] < lower * (1.0 - 1e-9):
            warnings.append(f"{law} gives {laws[law]:.4g}, below the proven least coherence {lower:.4g}")
    if mute := [f"{law} gives {value:.4g}" for law, value in laws.items() if value >= 1.0]:
        warnings.append(f"{' and '.join(mute)}: at 1 and above a law says nothing")
    return warnings + extrapolation(d, dict.fromkeys(keys, log_k))


def _dimensions(k: float, eps: float) -> Capacity:
    log_k = float(check_log_k(k))
    laws = {curve.key: _law_dim(law, curve, log_k, eps) for law, curve in curves()}
    target = log_k / LN10 - 1e-12
    explicit = _least_d(lambda d: best_construction(d, eps).log10_k >= target)
    exists = _least_d(lambda d: gilbert_varshamov(d, eps) >= target)
    least = _least_d(lambda d: upper_bound(d, eps).log10_k >= target)
    name = None if explicit is None else best_construction(explicit, eps).name
    barrier = None if least is None or least == 1 else upper_bound(least - 1, eps).name
    ends: dict[str, dict[str, Any]] = {
        "explicit": {"d": explicit, "name": name},
        "exists": {"d": exists, "name": RANDOM_CODING},
        **{curve.key: {"d": laws[curve.key]} for curve in fitted()},
        "lower": {"d": least, "name": barrier},
    }
    warnings = [f"{law} has no d >= 1 with so few vectors" for law, value in laws.items() if value is None]
    enough = min((d for d in (explicit, exists) if d is not None), default=None)
    for law in (curve.key for curve in fitted()):
        value = laws[law]
        if value is not None and enough is not None and value > enough:
            warnings.append(f"{law} asks for {value:.1f} dimensions, but {enough} are proven to be enough")
        if value is not None and least is not None and math.ceil(value - 1e-9) < least:
            warnings.append(f"{law} asks for {value:.1f} dimensions, but {least} are proven to be needed")
        if value is not None:
            warnings += extrapolation(value, {law: log_k})
    fewer = f"cannot fit into fewer than {least}" if least is not None else f"need more than {_D_MOST}"
    fit = f"fit into {enough}" if enough is not None else f"are not known to fit into {_D_MOST}"
    reading = f"{format_power(log_k / LN10)} lines with every |cosine| <= {eps:.6g} {fit} dimensions and {fewer}."
    entries = {law: {"d": value} for law, value in laws.items()}
    return _found("d", entries, ends, warnings, reading, epsilon=eps, k=k)


def _law_dim(law: Law, curve: Curve, log_k: float, eps: float) -> float | None:
    try:
        return law.dim(log_k=log_k, eps=eps, **curve.params)
    except DomainError:  # one dimension already gives more
        return None


def _least_d(enough: Callable[[int], bool]) -> int | None:
    """The least d <= 10^6 with enough(d), by doubling and bisection; None if there is none."""
    high = 1
    while not enough(high):
        if high >= _D_MOST:
            return None
        high = min(2 * high, _D_MOST)
    low = high // 2  # not enough, or 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
