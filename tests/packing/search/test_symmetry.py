"""Rotations: every line of an orbit is another line, and many lines in few dimensions do not fall on one another."""

from __future__ import annotations

import math

import pytest
import torch

from repcap.laws.limits.existence import gilbert_varshamov_coherence
from repcap.packing import pack
from repcap.packing.search.symmetry import Cyclic, random_cyclic


@pytest.mark.parametrize("d", [2, 3, 4, 5, 8])
def test_no_two_lines_of_an_orbit_coincide(d):
    generator = torch.Generator().manual_seed(d)
    row = torch.randn(1, d, generator=generator, dtype=torch.float64)
    for order in range(2, 25):
        for _ in range(4):
            lines = torch.nn.functional.normalize(random_cyclic(order, d, generator).expand(row), dim=1)
            assert (lines @ lines.T).abs().fill_diagonal_(0.0).max() < 1 - 1e-6, order


@pytest.mark.parametrize(
    ("symmetry", "d", "faithful"),
    [
        (Cyclic(10, (2.0,)), 3, False),  # five turns are 1
        (Cyclic(10, (3.0,)), 3, True),
        (Cyclic(10, (3.0,)), 2, False),  # five turns are -1, which fixes every line
        (Cyclic(10, (1.5,)), 2, True),
        (Cyclic(6, (2.0,), 3.0), 3, True),  # three turns change the sign of the last coordinate alone
        (Cyclic(6, (3.0, 1.0)), 4, False),  # three turns are -1
        (Cyclic(6, (2.0, 1.0)), 4, True),
    ],
)
def test_faithful(symmetry, d, faithful):
    assert symmetry.faithful(d) is faithful


@pytest.mark.parametrize(("k", "d", "degrees"), [(300, 3, 7.5), (1000, 3, 3.0), (500, 4, 16.0)])
def test_many_lines_in_few_dimensions_stand_apart(k, d, degrees):
    # All of them fell on one another, or nearly, where an orbit was short and the path ended too soft.
    angle = math.degrees(math.acos(pack(k, d, constructions=False).coherence))
    assert angle > degrees > math.degrees(math.acos(gilbert_varshamov_coherence(k, d)))
