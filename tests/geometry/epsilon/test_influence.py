"""Ranking rows by what they do to epsilon."""

from __future__ import annotations

import torch

from repcap.geometry.epsilon.influence import rank_influence
from repcap.geometry.measurement.measuring import MeasureOptions, measure_matrix
from repcap.matrix import TensorMatrix


class Words:
    count = 100

    def text(self, index: int) -> str | None:
        return f"word{index}" if index < 5 else None


def test_both_ends_in_order_with_text():
    without = torch.tensor([0.5, 0.3, 0.8, 0.5, 0.4])
    found = rank_influence(torch.tensor([2, 4, 6, 8, 10]), without, 0.5, 2, Words())
    assert [(row.index, row.token) for row in found.raises] == [(4, "word4"), (10, None)]
    assert [row.index for row in found.lowers] == [6]
    assert found.to_dict()["raises"][0]["influence"] > 0 > found.to_dict()["lowers"][0]["influence"]


def test_a_row_that_points_with_the_crowd_raises_epsilon_and_one_against_it_lowers():
    g = torch.Generator().manual_seed(0)
    rows = torch.randn((400, 12), generator=g) + 1.0
    rows[7], rows[9] = 1.0, -1.0
    found = measure_matrix(TensorMatrix(rows), MeasureOptions(device="cpu", influence=400, z=0.0))
    assert found.influence.raises[0].index == 7
    assert found.influence.lowers[0].index == 9
