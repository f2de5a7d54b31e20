"""Unit rows: every finite, non-zero row has a direction, whatever its length and precision."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from repcap.errors import VectorsError
from repcap.geometry.rows.unit_rows import NON_FINITE, ZERO, Normaliser, compute_dtype, lengths


def normalise(block: torch.Tensor, dtype: torch.dtype = torch.float32):
    return Normaliser(dtype)(block, torch.arange(len(block)))


@settings(max_examples=60)
@given(
    exponents=st.lists(st.floats(-44, 38), min_size=1, max_size=20),
    d=st.integers(1, 600),
    seed=st.integers(0, 999),
    dtype=st.sampled_from([torch.float32, torch.float64]),
)
def test_rows_of_any_length_become_their_direction(exponents, d, seed, dtype):
    g = torch.Generator().manual_seed(seed)
    directions = torch.randn((len(exponents), d), generator=g, dtype=torch.float64)
    directions /= directions.abs().amax(1, keepdim=True)
    stored = (directions * torch.tensor(exponents).double()[:, None].mul(math.log(10)).exp()).to(dtype)
    if dtype == torch.float64:
        stored = stored**3 / stored.abs().amax(1, keepdim=True) ** 2  # and other directions
        stored = stored * torch.tensor(exponents).double()[:, None].mul(5 * math.log(10)).exp()
        stored[~torch.isfinite(stored)] = 1.0
    alive = (stored != 0).any(1) & torch.isfinite(stored).all(1)
    found = normalise(stored, dtype)
    kept = stored[alive].double()
    scaled = kept / kept.abs().amax(1, keepdim=True)
    want = scaled / scaled.norm(dim=1, keepdim=True)
    tolerance = 3e-7 if dtype == torch.float32 else 1e-14
    assert found.indices.tolist() == alive.nonzero()[:, 0].tolist()
    torch.testing.assert_close(found.units.double(), want, rtol=0, atol=tolerance)
    torch.testing.assert_close(
        found.norms, scaled.norm(dim=1) * kept.abs().amax(1), rtol=1e-6 if dtype == torch.float32 else 1e-13, atol=0
    )


def test_what_has_no_direction_is_named():
    block = torch.ones((5, 3))
    block[0], block[2, 1], block[4, 0] = 0.0, math.nan, math.inf
    found = Normaliser(torch.float32)(block, torch.tensor([10, 11, 12, 13, 14]))
    assert found.indices.tolist() == [11, 13]
    assert found.dropped == ((10, ZERO), (12, NON_FINITE), (14, NON_FINITE))
    torch.testing.assert_close(found.units, torch.full((2, 3), 1 / math.sqrt(3)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_row_has_the_same_bits_wherever_it_stands(dtype):
    """Equal rows are found by their bits, and a row that is read again must give them again."""
    row = torch.randn((1, 4099), generator=torch.Generator().manual_seed(3), dtype=dtype)
    other = torch.randn((300, 4099), dtype=dtype)
    for place in (0, 17, 299):
        block = other.clone()
        block[place] = row[0]
        assert torch.equal(normalise(block, dtype).units[place], normalise(row.clone(), dtype).units[0])


def test_lengths_of_long_float32_rows_are_not_biased():
    rows = torch.randn((400, 8192), generator=torch.Generator().manual_seed(0))
    relative = lengths(rows) / rows.double().norm(dim=1) - 1
    assert float(relative.abs().max()) < 3e-7
    assert abs(float(relative.mean())) < 6e-8


def test_the_buffer_is_used_again_and_the_input_is_not_touched():
    normaliser = Normaliser(torch.float32)
    block = torch.full((4, 3), 2.0)
    first = normaliser(block, torch.arange(4)).units
    second = normaliser(block[:2] * 3, torch.arange(2)).units
    assert first.data_ptr() == second.data_ptr()
    assert torch.equal(block, torch.full((4, 3), 2.0))


@pytest.mark.parametrize(
    ("block", "message"),
    [
        (torch.ones(4), "got 1 dimensions"),
        (torch.ones((2, 2, 2)), r"got 3 dimensions \(2x2x2\)"),
        (torch.ones((2, 0)), "no columns"),
        (torch.ones((2, 2), dtype=torch.complex128), "complex128"),
        (torch.ones((2, 2), dtype=torch.int64), "int64 values are codes"),
    ],
)
def test_what_is_no_block_of_vectors_is_refused(block, message):
    with pytest.raises(VectorsError, match=message):
        normalise(block)


def test_only_two_precisions():
    assert compute_dtype("float64") is torch.float64
    with pytest.raises(VectorsError, match="cannot compute in bfloat16"):
        compute_dtype("bfloat16")
