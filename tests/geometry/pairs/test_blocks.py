"""The scan hands every pair of rows over once, whatever the sizes of panels and blocks."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from repcap.errors import InputError
from repcap.geometry.pairs import blocks
from repcap.geometry.pairs.blocks import panel_pairs, scan
from repcap.matrix import TensorMatrix


class Collector:
    def __init__(self):
        self.seen = []

    def take(self, a, b, same, product):
        for row, i in enumerate(a.ids.tolist()):
            for column, j in enumerate(b.ids.tolist()):
                if not same or row < column:
                    self.seen.append((i, j, float(product[row, column])))


@settings(max_examples=40)
@given(
    n=st.integers(1, 40), panel=st.integers(1, 50), block=st.integers(1, 20), lane=st.sampled_from(["cpu", "device"])
)
def test_every_pair_once(n, panel, block, lane):
    rows = torch.randn(n, 4, generator=torch.Generator().manual_seed(n))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "BLOCK", block)
        patch.setattr(blocks, "DEVICE_BLOCK", block)
        if lane == "device":
            patch.setattr(blocks, "_CpuLanes", blocks._DeviceLane)
        workers = scan(TensorMatrix(rows), panel_pairs(n, panel), Collector, scale=3.0, panel=panel, device="cpu")
    seen = sorted(entry for worker in workers for entry in worker.seen)
    unit = torch.nn.functional.normalize(rows.double())
    expected = [(i, j) for i in range(n) for j in range(i + 1, n)]
    assert [(i, j) for i, j, _ in seen] == expected
    for i, j, value in seen:
        assert value == pytest.approx(3.0 * float(unit[i] @ unit[j]), abs=1e-6)


def test_progress_reaches_the_total():
    calls = []
    rows = TensorMatrix(torch.randn(30, 4))
    scan(rows, panel_pairs(30, 7), Collector, panel=7, device="cpu", on_progress=lambda *at: calls.append(at))
    assert calls[-1] == (30 * 29 // 2, 30 * 29 // 2)
    assert [done for done, _ in calls] == sorted(done for done, _ in calls)


def test_an_error_in_a_worker_is_passed_on():
    class Broken:
        def take(self, a, b, same, product):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        scan(TensorMatrix(torch.randn(5, 2)), panel_pairs(5), Broken, device="cpu")


def test_mask_of_the_wrong_shape():
    with pytest.raises(InputError, match=r"mask must have shape \(5,\), got \(4,\)"):
        scan(TensorMatrix(torch.randn(5, 2)), panel_pairs(5), Collector, mask=np.ones(4, bool))
