"""From the parameters of an explicit set (`repcap.constructions.best`) to its vectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from repcap.constructions.best import Construction, best_coherence, best_construction
from repcap.constructions.exact import SPORADIC, conference_lines, polygon_lines, roots_d, simplex
from repcap.constructions.lines import (
    Basis,
    DelsarteGoethals,
    DirectSum,
    ExponentialLines,
    Hadamard,
    Lines,
    Prefix,
    Table,
    dual_bch,
    quadratic_forms,
)
from repcap.errors import InputError

Builder = Callable[[int, Mapping[str, Any]], Lines]

LARGEST_TABLE = 5_000
"""Dimension up to which sets that are held as a dense table are built."""


def _simplex(d: int, params: Mapping[str, Any]) -> Lines:
    return Table("simplex", simplex(d), 1.0 / d)


def _polygon(d: int, params: Mapping[str, Any]) -> Lines:
    k = int(params["k"])
    return Table(f"{k} equal angles in the plane", polygon_lines(k), float(np.cos(np.pi / k)))


def _conference(d: int, params: Mapping[str, Any]) -> Lines:
    q = int(params["q"])
    return Table(f"conference matrix q={q}", conference_lines(q), q**-0.5)


def _sporadic(d: int, params: Mapping[str, Any]) -> Lines:
    name, claimed, build = SPORADIC[int(params["k"]), int(params["d"])]
    return Table(name, build(), float(claimed))


BUILDERS: dict[str, Builder] = {
    "orthonormal": lambda d, params: Basis(d, d),
    "simplex": _simplex,
    "polygon": _polygon,
    "sporadic": _sporadic,
    "root_d": lambda d, params: Table(f"root system D{d}", roots_d(d), 0.5),
    "hadamard": lambda d, params: Hadamard(int(params["bits"])),
    "conference": _conference,
    "kerdock": lambda d, params: DelsarteGoethals(int(params["bits"]), 0),
    "delsarte_goethals": lambda d, params: DelsarteGoethals(int(params["bits"]), int(params["r"])),
    "quadratic_forms": lambda d, params: quadratic_forms(int(params["bits"]), int(params["h"])),
    "dual_bch": lambda d, params: dual_bch(int(params["bits"]), int(params["t"])),
    "exponential_sums": lambda d, params: ExponentialLines(int(params["p"]), int(params["m"]), int(params["n"])),
}
"""Family of repcap.laws -> its vectors. The other families there (Steiner, Barnes-Wall, Reed-Muller) are not built."""

_DENSE = ("simplex", "root_d", "conference")


def can_build(construction: Construction | Mapping[str, Any]) -> bool:
    """Whether `build` has the vectors of this set."""
    described = construction.to_dict() if isinstance(construction, Construction) else construction
    family = described["family"]
    if family == "direct_sum":
        return all(can_build(part) for part in described["params"]["parts"])
    if family == "sporadic":
        return (described["params"]["k"], described["params"]["d"]) in SPORADIC
    return family in BUILDERS and (family not in _DENSE or described["d"] <= LARGEST_TABLE)


def build(construction: Construction | Mapping[str, Any]) -> Lines:
    """The vectors of a set that `repcap.constructions.best` names, in the same order in every run.

    Raises
    ------
    InputError
        if the set is known on paper but not built here.
    """
    described = construction.to_dict() if isinstance(construction, Construction) else construction
    if not can_build(described):
        raise InputError(f"the vectors of {described['name']} (d = {described['d']}) are not built here")
    if described["family"] == "direct_sum":
        parts = [build(part) for part in described["params"]["parts"] for _ in range(part["copies"])]
        return DirectSum(parts, int(described["d"]), described["name"])
    return BUILDERS[described["family"]](int(described["d"]), described["params"])


@lru_cache(maxsize=64)
def _best(k: int, d: int, families: tuple[str, ...]) -> Construction | None:
    found = best_coherence(k, d, families)
    if can_build(found):
        return found
    rest = tuple(name for name in families if name != "sporadic")
    return _best(k, d, rest) if len(rest) < len(families) else None


def best_lines(k: int, d: int) -> Lines | None:
    """The set of k lines in R^d with the least coherence among those built here, as a subset where one is larger.

    None where the families give nothing better than a repeated line.
    """
    found = _best(k, d, tuple(BUILDERS))
    if found is None:
        return None
    lines = build(found)
    return Prefix(lines, k) if lines.count > k else lines


def most_lines(d: int, eps: float) -> Lines:
    """The largest set in R^d with coherence <= eps among those built here."""
    families = tuple(BUILDERS)
    found = best_construction(d, eps, families)
    if not can_build(found):
        found = best_construction(d, eps, tuple(name for name in families if name != "sporadic"))
    return build(found)


def named_lines(name: str, d: int, **params: int) -> Lines:
    """The lines of one family in exactly R^d: `kerdock`, `delsarte-goethals` (r), `quadratic-forms` (h), `bch` (t),
    `exponential-sums` (degree n), `hadamard`, `orthonormal`, `simplex`, `root-d`, `exact` (k), `conference`.

    Raises
    ------
    InputError
        if there is no such family, or it has no member in R^d with these parameters.
    """
    key = name.lower().replace("_", "-")
    if key not in NAMED:
        raise InputError(f"no construction is called {name!r}; there are {', '.join(NAMED)}")
    build_named, allowed = NAMED[key]
    unknown = sorted(set(params) - set(allowed))
    if unknown:
        takes = f"takes {', '.join(allowed)}" if allowed else "takes no parameter"
        raise InputError(f"{key} {takes}, not {unknown[0]}")
    return build_named(d, params)


def _bits(d: int) -> int:
    if d < 2 or d & (d - 1):
        raise InputError(f"this construction needs d = 2^M, got d = {d}")
    return d.bit_length() - 1


def _exponential(d: int, params: Mapping[str, int]) -> Lines:
    from repcap.constructions.galois import prime_power

    power = prime_power(d // 2) if d % 2 == 0 else None
    if power is None or power[0] == 2:
        raise InputError(f"exponential sums need d = 2 q with q an odd prime power, got d = {d}")
    return ExponentialLines(*power, params.get("n", 2))


def _exact(d: int, params: Mapping[str, int]) -> Lines:
    fitting = sorted(k for k, dim in SPORADIC if dim == d)
    k = params.get("k", fitting[-1] if fitting else 0)
    if k not in fitting:
        raise InputError(
            f"no exact set of {k or 'any'} lines in R^{d} is held; for this d there are {fitting or 'none'}"
        )
    return _sporadic(d, {"k": k, "d": d})


def _at_least(least: int, make: Callable[[int], Lines]) -> Callable[[int, Mapping[str, int]], Lines]:
    def checked(d: int, params: Mapping[str, int]) -> Lines:
        if d < least:
            raise InputError(f"this construction needs d >= {least}, got d = {d}")
        return make(d)

    return checked


def _conference_in(d: int, params: Mapping[str, int]) -> Lines:
    from repcap.constructions.galois import prime_power

    q = 2 * d - 1
    if q % 4 != 1 or prime_power(q) is None:
        raise InputError(f"conference lines need 2 d - 1 = {q} to be a prime power = 1 mod 4")
    return _conference(d, {"q": q})


NAMED: dict[str, tuple[Callable[[int, Mapping[str, int]], Lines], tuple[str, ...]]] = {
    "kerdock": (lambda d, p: DelsarteGoethals(_bits(d), 0), ()),
    "delsarte-goethals": (lambda d, p: DelsarteGoethals(_bits(d), p.get("r", 1)), ("r",)),
    "quadratic-forms": (lambda d, p: quadratic_forms(_bits(d), p.get("h", (_bits(d) - 1) // 2)), ("h",)),
    "bch": (lambda d, p: dual_bch(_bits(d), p.get("t", 2)), ("t",)),
    "exponential-sums": (_exponential, ("n",)),
    "hadamard": (lambda d, p: Hadamard(_bits(d)), ()),
    "orthonormal": (_at_least(1, lambda d: Basis(d, d)), ()),
    "simplex": (_at_least(2, lambda d: _simplex(d, {})), ()),
    "root-d": (_at_least(3, lambda d: BUILDERS["root_d"](d, {})), ()),
    "conference": (_conference_in, ()),
    "exact": (_exact, ("k",)),
}
"""Name on the command line -> builder, and the parameters that it takes."""
