"""What a family of explicit line sets is: its members, its proof, and how its vectors are made. One row a family."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from repcap.constructions.lines import Lines
from repcap.domain import loosened
from repcap.errors import InputError

Params = Mapping[str, Any]

LARGEST_TABLE = 5_000
"""Dimension up to which sets that are held as a dense table are built."""


@dataclasses.dataclass(frozen=True)
class Block:
    """k lines in R^d, exactly known."""

    family: str
    name: str
    d: int
    k: int
    coherence: float
    exact: bool
    """Whether the coherence is the value itself; else it is a proven upper bound on it (Weil)."""
    params: dict[str, Any] = dataclasses.field(default_factory=dict, hash=False)


def everywhere(d: int, params: Params) -> bool:
    """Every member is built."""
    return True


def small(d: int, params: Params) -> bool:
    """Members up to `LARGEST_TABLE` dimensions are built."""
    return d <= LARGEST_TABLE


def alone(d: int, given: Mapping[str, int]) -> dict[str, Any]:
    """A family with one member in every R^d, and no parameters."""
    return {}


@dataclasses.dataclass(frozen=True)
class Family:
    """A family of explicit line sets.

    A new one is a file in `constructions/families` that makes such a row, and one line in `constructions/__init__.py`:
    then `capacity`, `measure`, `design` and `pack` choose from it, and `pack --construct` builds it by name.
    """

    key: str
    """In records, and in `CONSTRUCTIONS`."""
    theorem: str
    """What is proven of it, and by whom."""
    members: Callable[[int, float], Iterable[Block]]
    """(d, epsilon) -> the members with at most d dimensions and coherence at most epsilon that are worth a look, the
    largest of each dimension. Integers are exact, however large."""
    build: Callable[[int, Params], Lines] | None = None
    """(d, params of a block) -> its vectors; None: known on paper, not built here."""
    built: Callable[[int, Params], bool] = everywhere
    """Whether `build` has the vectors of this member."""
    command: str | None = None
    """Name on the command line; None: not built by name."""
    options: tuple[str, ...] = ()
    """Parameters that the command line takes."""
    choose: Callable[[int, Mapping[str, int]], dict[str, Any]] = alone
    """(d, what was given) -> the params of the member in exactly R^d; InputError where there is none."""

    summed: bool = False
    """Whether `members` gives one block alone, the largest, and smaller ones may do better in a direct sum: then they
    are tried there."""

    def has(self, d: int, params: Params) -> bool:
        """Whether the vectors of this member can be made."""
        return self.build is not None and self.built(d, params)


def fits(coherence: float, eps: float) -> bool:
    """coherence <= eps, up to the rounding of either."""
    return coherence <= loosened(eps)


def powers_of_two(d: int, least: int) -> range:
    """M with 2^M <= d, from `least`."""
    return range(least, d.bit_length())


def exponent_of_two(d: int) -> int:
    """M with d = 2^M.

    Raises
    ------
    InputError
        if d is no power of two >= 2.
    """
    if d < 2 or d & (d - 1):
        raise InputError(f"this construction needs d = 2^M, got d = {d}")
    return d.bit_length() - 1


def at_least(least: int) -> Callable[[int, Mapping[str, int]], dict[str, Any]]:
    """`choose` of a family with one member in every R^d from `least` on."""

    def checked(d: int, given: Mapping[str, int]) -> dict[str, Any]:
        if d < least:
            raise InputError(f"this construction needs d >= {least}, got d = {d}")
        return {}

    return checked
