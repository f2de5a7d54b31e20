"""Rows that repeat the direction of an earlier row, bit for bit, found in one pass by hashes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import numpy as np
import torch

_KEY_COLUMNS = 64

FetchUnit = Callable[[int], torch.Tensor]
"""Row number to its unit row (d,), the same bits as before."""


class RepeatFinder:
    """Names the rows whose unit row has been seen before.

    A row's key is a hash of 64 of its columns; only rows with equal keys are hashed whole (BLAKE2b, 128 bits), the
    earlier of them after it is read again. Memory: about 150 bytes a row, whatever d is. Time: O(1) a row that is new.
    """

    def __init__(self, dim: int, fetch: FetchUnit) -> None:
        step = max(1, dim // _KEY_COLUMNS)
        self._columns = slice(None, step * _KEY_COLUMNS, step)
        self._whole = dim <= _KEY_COLUMNS
        self._fetch = fetch
        self._first: dict[bytes, int] = {}
        self._digests: dict[bytes, dict[bytes, int]] = {}
        self._groups: dict[int, list[int]] = {}

    def find(self, units: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
        """(m,) bool: True for each row of (m, d) `units` whose direction an earlier row has already."""
        array = units.numpy()
        keys = np.ascontiguousarray(array[:, self._columns]) + 0.0  # -0.0 and 0.0 are one number
        found = torch.zeros(len(indices), dtype=torch.bool)
        for position, (index, key_row) in enumerate(zip(indices.tolist(), keys, strict=True)):
            key = _digest(key_row)
            earlier = self._first.setdefault(key, index)
            if earlier == index:
                continue
            original = earlier if self._whole else self._same(key, earlier, index, array[position])
            if original is not None:
                found[position] = True
                self._groups.setdefault(original, [original]).append(index)
        return found

    def _same(self, key: bytes, earlier: int, index: int, row: np.ndarray) -> int | None:
        """Number of the earlier row that equals `row`, or None after `row` is noted as new."""
        if key not in self._digests:
            self._digests[key] = {_digest(self._fetch(earlier).numpy() + 0.0): earlier}
        original = self._digests[key].setdefault(_digest(row + 0.0), index)
        return None if original == index else original

    @property
    def groups(self) -> list[list[int]]:
        """Row numbers of each direction that occurs more than once, largest group first."""
        return sorted(self._groups.values(), key=lambda group: (-len(group), group[0]))


def _digest(row: np.ndarray) -> bytes:
    return hashlib.blake2b(row.data, digest_size=16).digest()
