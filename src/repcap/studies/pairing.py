"""Which row of one matrix corresponds to which row of another: by row number, or by the text of the token."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from repcap import geometry
from repcap.errors import InputError, OptionError
from repcap.matrix import Matrix, Tokens

ALIKE = 0.99
"""Share of equal token texts from which two vocabularies are taken as one, so that row numbers correspond."""


@dataclasses.dataclass(frozen=True)
class Pairing:
    """Rows a[i] and b[i] correspond; both (m,) int64. how: `row` or `text`. notes: what a reader should know."""

    a: np.ndarray = dataclasses.field(repr=False, compare=False)
    b: np.ndarray = dataclasses.field(repr=False, compare=False)
    how: str
    count_a: int
    count_b: int
    notes: tuple[str, ...] = ()

    def views(self, left: Matrix, right: Matrix) -> tuple[Matrix, Matrix]:
        """The corresponding rows of both as matrices of equal length."""
        return _view(left, self.a), _view(right, self.b)

    def to_dict(self) -> dict[str, Any]:
        return {
            "how": self.how,
            "rows": len(self.a),
            "only_a": self.count_a - len(self.a),
            "only_b": self.count_b - len(self.b),
            "notes": list(self.notes),
        }


def _view(matrix: Matrix, rows: np.ndarray) -> Matrix:
    whole = len(rows) == matrix.count and np.array_equal(rows, np.arange(matrix.count))
    return matrix if whole else geometry.Subset(matrix, rows)


def pair_rows(a: Matrix, b: Matrix, match: str = "auto") -> Pairing:
    """Pair the rows of two matrices.

    match `row`: the common row numbers 0 .. min(n_a, n_b) - 1. `text`: tokens whose text occurs in both vocabularies,
    once in each. `auto`: by text where both have a tokenizer and more than 1 % of the common rows stand for different
    tokens, else by row. Memory: the texts, where both have a tokenizer.

    Raises
    ------
    InputError
        for `text` without two tokenizers, or where no row corresponds.
    """
    known = a.tokens is not None and b.tokens is not None
    if match == "text" and not known:
        without = a.info.source if a.tokens is None else b.info.source
        raise OptionError("match", match, f"needs two tokenizers, and {without} has none beside it: use row")
    common = min(a.count, b.count)
    alike = _alike(a.tokens, b.tokens, common) if a.tokens is not None and b.tokens is not None else None
    if match == "row" or (match == "auto" and (alike is None or alike >= ALIKE)):
        return _by_row(a, b, common, alike)
    assert a.tokens is not None
    assert b.tokens is not None
    return _by_text(a, b, _unique(a.tokens, a.count), _unique(b.tokens, b.count), alike or 0.0)


def _alike(a: Tokens, b: Tokens, common: int) -> float:
    """Share of the first `common` rows that have the same text in both, of those that have one in either."""
    texts = [(a.text(row), b.text(row)) for row in range(common)]
    known = [(x, y) for x, y in texts if x is not None or y is not None]
    return sum(x == y for x, y in known) / len(known) if known else 1.0


def _unique(tokens: Tokens, count: int) -> dict[str, int]:
    """Text -> row, of the texts that one row alone has."""
    found: dict[str, int] = {}
    twice: set[str] = set()
    for row in range(min(count, tokens.count)):
        text = tokens.text(row)
        if text is not None and found.setdefault(text, row) != row:
            twice.add(text)
    return {text: row for text, row in found.items() if text not in twice}


def _by_row(a: Matrix, b: Matrix, common: int, alike: float | None) -> Pairing:
    notes = []
    if a.count != b.count:
        notes.append(
            f"{a.count} and {b.count} rows: the {common} common row numbers are compared, "
            f"{abs(a.count - b.count)} rows of the longer matrix are left out"
        )
    if alike is not None and alike < ALIKE:
        notes.append(
            f"only {alike:.0%} of the common rows stand for the same token in both vocabularies: "
            "their cosines say little; matched by text, equal tokens are paired"
        )
    rows = np.arange(common, dtype=np.int64)
    return Pairing(rows, rows, "row", a.count, b.count, tuple(notes))


def _by_text(a: Matrix, b: Matrix, left: dict[str, int], right: dict[str, int], alike: float) -> Pairing:
    pairs = sorted((row, right[text]) for text, row in left.items() if text in right)
    if not pairs:
        raise InputError(f"{a.info.source} and {b.info.source} have no token in common: match them by row")
    note = (
        f"the vocabularies differ ({alike:.0%} of the common rows stand for the same token): "
        f"the {len(pairs)} tokens that both have are compared, by their text"
    )
    rows = np.array(pairs, dtype=np.int64)
    return Pairing(rows[:, 0], rows[:, 1], "text", a.count, b.count, (note,))
