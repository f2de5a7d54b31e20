"""Which rows raise epsilon and which lower it."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch

from repcap.matrix import Tokens


@dataclasses.dataclass(frozen=True)
class RowInfluence:
    """index: row number. influence: epsilon minus epsilon without this row. token: its text, where it is known."""

    index: int
    influence: float
    token: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


@dataclasses.dataclass(frozen=True)
class Influence:
    """raises: the rows that raise epsilon most, strongest first. lowers: the rows that lower it most."""

    raises: tuple[RowInfluence, ...]
    lowers: tuple[RowInfluence, ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            "raises": [row.to_dict() for row in self.raises],
            "lowers": [row.to_dict() for row in self.lowers],
        }


def rank_influence(
    indices: torch.Tensor, without: torch.Tensor, epsilon: float, top: int, tokens: Tokens | None
) -> Influence:
    """The `top` rows at either end. indices: (m,) row numbers; without: (m,) epsilon without each."""
    influence = epsilon - without
    order = torch.argsort(influence, descending=True, stable=True)

    def row(position: int) -> RowInfluence:
        index = int(indices[position])
        return RowInfluence(index, float(influence[position]), tokens.text(index) if tokens is not None else None)

    raising = [position for position in order[:top].tolist() if influence[position] > 0]
    lowering = [position for position in order.flip(0)[:top].tolist() if influence[position] < 0]
    return Influence(tuple(map(row, raising)), tuple(map(row, lowering)))
