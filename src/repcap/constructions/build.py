"""From the parameters of an explicit set (`repcap.constructions.best`) to its vectors."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from repcap.constructions import CONSTRUCTIONS, by_command
from repcap.constructions.best import Construction, best_coherence, best_construction
from repcap.constructions.lines import DirectSum, Lines, Prefix
from repcap.errors import InputError

Described = Construction | Mapping[str, Any]


def _described(construction: Described) -> Mapping[str, Any]:
    return construction.to_dict() if isinstance(construction, Construction) else construction


def can_build(construction: Described) -> bool:
    """Whether `build` has the vectors of this set."""
    described = _described(construction)
    if described["family"] == "direct_sum":
        return all(can_build(part) for part in described["params"]["parts"])
    family = CONSTRUCTIONS.get(described["family"])
    return family is not None and family.has(int(described["d"]), described["params"])


def build(construction: Described) -> Lines:
    """The vectors of a set that `repcap.constructions.best` names, in the same order in every run.

    Raises
    ------
    InputError
        if the set is known on paper but not built here.
    """
    described = _described(construction)
    if not can_build(described):
        raise InputError(f"the vectors of {described['name']} (d = {described['d']}) are not built here")
    if described["family"] == "direct_sum":
        parts = [build(part) for part in described["params"]["parts"] for _ in range(part["copies"])]
        return DirectSum(parts, int(described["d"]), described["name"])
    make = CONSTRUCTIONS[described["family"]].build
    assert make is not None
    return make(int(described["d"]), described["params"])


@lru_cache(maxsize=64)
def best_lines(k: int, d: int) -> Lines | None:
    """The set of k lines in R^d with the least coherence among those built here, as a subset where one is larger.

    None where the families give nothing better than a repeated line.
    """
    found = best_coherence(k, d, built=True)
    if not can_build(found):
        return None
    lines = build(found)
    return Prefix(lines, k) if lines.count > k else lines


def most_lines(d: int, eps: float) -> Lines:
    """The largest set in R^d with coherence <= eps among those built here."""
    return build(best_construction(d, eps, built=True))


def named_lines(name: str, d: int, **params: int) -> Lines:
    """The lines of one family in exactly R^d, by the family's name on the command line (`Family.command`).

    Raises
    ------
    InputError
        if there is no such family, or it has no member in R^d with these parameters.
    """
    key, families = name.lower().replace("_", "-"), by_command()
    if key not in families:
        raise InputError(f"no construction is called {name!r}; there are {', '.join(families)}")
    family = families[key]
    unknown = sorted(set(params) - set(family.options))
    if unknown:
        takes = f"takes {', '.join(family.options)}" if family.options else "takes no parameter"
        raise InputError(f"{key} {takes}, not {unknown[0]}")
    assert family.build is not None
    return family.build(d, family.choose(d, params))
