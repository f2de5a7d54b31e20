"""Equal directions are found exactly: no more, no fewer, whatever the block size."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from repcap.geometry.epsilon.repeats import RepeatFinder


def find(units: torch.Tensor, block: int) -> tuple[torch.Tensor, list[list[int]]]:
    finder = RepeatFinder(units.shape[1], lambda index: units[index])
    numbers = torch.arange(len(units)).split(block)
    return torch.cat([finder.find(units[part], part) for part in numbers]), finder.groups


@settings(max_examples=60)
@given(
    picks=st.lists(st.integers(0, 12), min_size=1, max_size=40),
    d=st.sampled_from([1, 2, 63, 64, 65, 200]),
    block=st.sampled_from([1, 3, 40]),
    last_only=st.booleans(),
)
def test_groups_are_those_of_equal_rows(picks, d, block, last_only):
    pool = torch.randn((13, d), generator=torch.Generator().manual_seed(d))
    if last_only:  # rows that differ in one column, which the short key does not see where d > 64
        pool = torch.ones((13, d))
        pool[:, -1] = torch.arange(13) + 0.5
    units = pool[torch.tensor(picks)]
    repeat, groups = find(units, block)
    seen: dict[int, list[int]] = {}
    for row, pick in enumerate(picks):
        seen.setdefault(pick, []).append(row)
    assert repeat.tolist() == [row != seen[pick][0] for row, pick in enumerate(picks)]
    want = sorted((rows for rows in seen.values() if len(rows) > 1), key=lambda rows: (-len(rows), rows[0]))
    assert groups == want


def test_minus_zero_is_zero():
    units = torch.tensor([[1.0, 0.0], [1.0, -0.0], [-1.0, 0.0]])
    assert find(units, 3)[1] == [[0, 1]]


@pytest.mark.parametrize("d", [64, 300])
def test_sign_vectors_do_not_collide(d):
    """Rows of +-1 differ in one bit a number, which simple sums of words confuse."""
    signs = torch.where(torch.rand((3000, d), generator=torch.Generator().manual_seed(1)) < 0.5, -1.0, 1.0)
    assert find(signs, 500)[1] == []
