"""What the tests of families share: a member by its parameters, and whether rows are the lines that it claims."""

from __future__ import annotations

import numpy as np
import pytest

from repcap.constructions import CONSTRUCTIONS

ABOVE = 1 + 1e-9


def member(family, d, eps, **params):
    """The block of `family` in R^d with these parameters."""
    for block in CONSTRUCTIONS[family].members(d, eps):
        if block.d == d and all(block.params[name] == value for name, value in params.items()):
            return block
    raise AssertionError(f"{family} has no member in R^{d} at {eps} with {params}")


def coherence(x):
    x = x / np.linalg.norm(x, axis=1, keepdims=True)
    gram = np.abs(x @ x.T)
    np.fill_diagonal(gram, 0.0)
    return gram.max()


def agrees(block, x):
    """The rows of x are the lines that `block` claims: their number, their dimension, their coherence."""
    assert len(x) == block.k
    assert x.shape[1] == block.d or np.linalg.matrix_rank(x) == block.d
    found = coherence(x)
    assert found <= block.coherence * ABOVE
    if block.exact:
        assert found == pytest.approx(block.coherence, rel=1e-9)
