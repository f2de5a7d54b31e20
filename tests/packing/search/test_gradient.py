"""The blocked pass against the full Gram matrix, in float64."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import settings as options
from hypothesis import strategies as st

from repcap.packing.search.gradient import BlockPass
from repcap.packing.search.symmetry import TRIVIAL, Cyclic, random_cyclic

CPU = torch.device("cpu")


def unit(count: int, d: int, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.nn.functional.normalize(torch.randn(count, d, generator=generator, dtype=torch.float64), dim=1)


def by_definition(rows: torch.Tensor, lines: torch.Tensor, beta: float, m: float):
    """U_i, w_i, max over all lines but the row itself, which is line i."""
    cosines = rows @ lines.T
    own = torch.arange(len(rows))
    cosines[own, own] = 0.0
    weight = torch.exp(beta * (cosines.abs() - m))
    weight[own, own] = 0.0
    # A line orthogonal to a row pushes it either way: sign(0) = 0 here, either sign there. Leave those out.
    return (weight * cosines.sign()) @ lines, weight.sum(dim=1), float(cosines.abs().max())


@options(max_examples=25)
@given(
    count=st.integers(2, 40), d=st.integers(1, 12), rows=st.integers(1, 50), columns=st.integers(1, 50),
    beta=st.floats(0.5, 30.0), seed=st.integers(0, 999),
)  # fmt: skip
def test_pass_is_the_sum_over_all_pairs_whatever_the_blocks(count, d, rows, columns, beta, seed):
    x = unit(count, d, seed)
    expected, weights, top = by_definition(x, x, beta, 0.9)
    block_pass = BlockPass(count, CPU, rows=rows, columns=columns, precision="float64")
    out = torch.full_like(x, 7.0)
    assert block_pass(x, beta, 0.9, out) == pytest.approx(top, abs=1e-12)
    assert torch.allclose(out, expected, atol=1e-9)
    assert torch.allclose(block_pass.weights, weights, rtol=1e-9)


@options(max_examples=25)
@given(
    order=st.integers(2, 9), count=st.integers(1, 12), d=st.integers(2, 11), rows=st.integers(1, 14),
    columns=st.integers(1, 40), seed=st.integers(0, 999),
)  # fmt: skip
def test_symmetric_pass_is_the_pass_over_all_lines(order, count, d, rows, columns, seed):
    generator = torch.Generator().manual_seed(seed)
    symmetry = random_cyclic(order, d, generator)
    x = unit(count, d, seed + 1)
    lines = symmetry.expand(x)
    # Half turns by half-integer frequencies leave a row orthogonal to itself, where the sign is anyone's.
    cosines = (x @ lines.T).abs()
    own = torch.arange(count)
    cosines[own, own] = 1.0
    free = cosines.amin(dim=1) > 1e-9
    expected, weights, top = by_definition(x, lines, 5.0, 0.8)
    block_pass = BlockPass(count, CPU, symmetry, rows, columns, "float64")
    out = torch.empty_like(x)
    assert block_pass(x, 5.0, 0.8, out) == pytest.approx(top, abs=1e-12)
    assert torch.allclose(out[free], expected[free], atol=1e-9)
    assert torch.allclose(block_pass.weights, weights, rtol=1e-9)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_lower_precision_is_near(precision):
    x = unit(300, 20, 3)
    expected, weights, top = by_definition(x, x, 40.0, 0.7)
    block_pass = BlockPass(300, CPU, rows=64, columns=100, precision=precision)
    out = torch.empty(300, 20)
    assert block_pass(x.float(), 40.0, 0.7, out) == pytest.approx(top, rel=1e-6)
    error = (out.double() - expected).norm(dim=1) / weights
    assert float(error.max()) < (1e-5 if precision == "float32" else 2e-2)


def test_gradient_is_that_of_the_smoothed_maximum():
    x = unit(12, 5, 0).requires_grad_(True)
    beta = 9.0
    cosines = x @ x.T
    pairs = cosines[torch.triu(torch.ones(12, 12, dtype=torch.bool), 1)]
    torch.logsumexp(beta * pairs.abs(), dim=0).backward()
    block_pass = BlockPass(12, CPU, precision="float64")
    out = torch.empty(12, 5, dtype=torch.float64)
    block_pass(x.detach(), beta, 0.5, out)
    total = block_pass.weights.sum() / 2
    assert torch.allclose(x.grad, beta * out / total, atol=1e-10)


def test_no_weight_is_subnormal():
    """Products with subnormal numbers cost a hundred ordinary ones."""
    x = torch.nn.functional.normalize(torch.randn(200, 6, generator=torch.Generator().manual_seed(0)), dim=1)
    block_pass = BlockPass(200, CPU)
    block_pass(x, 300.0, 1.0, torch.empty(200, 6))
    size = block_pass._now.abs()
    exact = 300.0 * ((x.double() @ x.double().T).abs() - 1.0)
    assert bool(((exact < -88.0) & (exact > -103.0)).any())  # float32 would make them subnormal
    assert not bool(((size > 0.0) & (size < torch.finfo(torch.float32).tiny)).any())


def test_exponents_far_above_the_last_maximum_stay_finite():
    x = torch.ones(6, 4) / 2
    out = torch.empty(6, 4)
    BlockPass(6, CPU)(x, 1e4, 0.1, out)
    assert bool(torch.isfinite(out).all())


@pytest.mark.parametrize(("order", "d"), [(2, 5), (3, 7), (4, 6), (5, 10), (6, 9), (12, 15)])
def test_rotation_has_its_order_and_keeps_angles(order, d):
    for seed in range(4):
        symmetry = random_cyclic(order, d, torch.Generator().manual_seed(seed))
        x = unit(6, d, seed)
        whole = symmetry.apply(x, order)
        assert torch.allclose(whole, x, atol=1e-12) or torch.allclose(whole, -x, atol=1e-12)
        turned = symmetry.apply(x, 1)
        assert torch.allclose(turned @ turned.T, x @ x.T, atol=1e-12)
        assert torch.allclose(symmetry.apply(turned, 2), symmetry.apply(x, 3), atol=1e-12)


def test_frequencies_are_balanced():
    symmetry = random_cyclic(5, 21, torch.Generator().manual_seed(0))
    assert isinstance(symmetry, Cyclic)
    # 21 coordinates over the regular representation of Z_5: a share of 4.2 for each of its 5 dimensions.
    planes = [symmetry.frequencies.count(j) for j in (0.0, 1.0, 2.0)]
    assert 2 * planes[0] + 1 in (3, 5)
    assert abs(planes[1] - planes[2]) <= 1
    assert random_cyclic(1, 4, torch.Generator()) is TRIVIAL
