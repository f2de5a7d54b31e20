"""What a linear readout gets when s of k features are active at once.

A state x = sum_{j in S} a_j u_j holds s active features along unit directions u_j, rows of U, shape (k, d). Feature i
is read as y_i = w_i . x with w_i . u_i = 1, so an active feature reads its value plus interference, an idle one reads
interference alone:

    y_i - a_i [i in S] = sum_{j in S, j != i} a_j (w_i . u_j)

`direct` takes w_i = u_i. `dual` takes w_i along (U^T U)^+ u_i, the linear readout of least mean squared error when all
features are equally likely; on a tight frame the two are the same. `omp` is no readout: it decodes the state by
orthogonal matching pursuit, and is told s (`repcap.geometry.readout.pursuit`).

For values of random sign and unit size the mean square of the interference of the direct readout is exact:

    active  (s - 1) q      idle  s q      q = (|U^T U|_F^2 - k) / (k (k - 1)), the mean square cosine,

and the s largest |y_i| are the active ones, whatever S is, as long as s < (1 + 1/mu) / 2, mu the coherence (an active
one reads at least 1 - (s - 1) mu, an idle one at most s mu; D. Donoho and M. Elad, PNAS 100 (2003), give the bound).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from repcap.devices import resolve_device
from repcap.errors import InputError, VectorsError
from repcap.geometry.readout.pursuit import affordable, pursue
from repcap.matrix import ProgressFn

VALUES = ("signs", "ones", "uniform")
READOUTS = ("direct", "dual", "omp")


@dataclasses.dataclass(frozen=True)
class Readout:
    """Error of reading k features while `active` of them are on; averages over `trials` random sets."""

    active: int
    readout: str
    trials: int
    rms_active: float
    """Root mean square of y_i - a_i over active features."""
    rms_idle: float
    """Root mean square of y_i over idle features."""
    worst: float
    """Largest |y_i| of an idle feature in any trial."""
    recovery: float
    """Share of trials in which the s largest |y_i| (of `omp`: the s rows it takes) are exactly the active features."""
    predicted_active: float | None
    """Closed form of `rms_active`; None where there is none (values not of random sign, or the dual readout)."""
    predicted_idle: float | None

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def guaranteed_active(coherence: float) -> int | None:
    """Largest s for which any s active features of equal size are found by their s largest readings; None: any s.

    >>> guaranteed_active(0.125), guaranteed_active(1.0), guaranteed_active(0.0)
    (4, 0, None)
    """
    if coherence <= 0.0:
        return None
    # s < (1 + 1/mu)/2, strictly: at equality an idle feature can tie with an active one.
    return max(0, math.ceil((1.0 + 1.0 / coherence) / 2.0 - 1e-12) - 1)


def simulate(
    vectors: torch.Tensor,
    active: Sequence[int],
    *,
    trials: int = 200,
    values: str = "signs",
    readouts: Sequence[str] = READOUTS,
    seed: int = 0,
    device: str = "auto",
    on_progress: ProgressFn | None = None,
) -> list[Readout]:
    """Read s active features out of k directions, for each s in `active`, over random sets and values.

    vectors: shape (k, d), floating; rows are normalised, and none may be zero or non-finite.
    values: `signs` (+1 or -1), `ones`, `uniform` (on (0, 1]).

    Cost: 2 k d operations a trial, s and readout, `omp` 2 s k d: of no more than 4e11 for each s, so that it may see
    fewer trials. Memory O(k d + trials (s d + block)), never k x k nor trials x k.

    Raises
    ------
    InputError
        if an s is not in 1..k, or `values`, `readouts` or `trials` is unusable.
    VectorsError
        if a row has no direction.
    """
    k = vectors.shape[0]
    check_request(k, active, trials, values, readouts)
    where = resolve_device(device)
    unit = _unit_rows(vectors).to(where)
    gram = _gram(unit)
    square = (float(gram.pow(2).sum()) - k) / max(k * (k - 1), 1)
    weights = {name: unit if name == "direct" else _dual(unit, gram) for name in readouts if name != "omp"}
    results = []
    with torch.inference_mode():
        for step, s in enumerate(active):
            chosen, amounts = _draw(k, s, trials, values, seed)
            chosen, amounts = chosen.to(where), amounts.to(where, unit.dtype)
            state = torch.stack([amounts[t] @ unit[chosen[t]] for t in range(trials)])
            for name in readouts:
                if name == "omp":
                    few = affordable(trials, s, *unit.shape)
                    results.append(_decode(unit, state[:few], chosen[:few], amounts[:few]))
                    continue
                exact = values == "signs" and name == "direct"
                results.append(_read(weights[name], state, chosen, amounts, name, square if exact else None))
            if on_progress is not None:
                on_progress(step + 1, len(active))
    return results


def check_request(k: int, active: Sequence[int], trials: int, values: str, readouts: Sequence[str] = READOUTS) -> None:
    """Raise InputError for what `simulate` would refuse, before directions are made for it."""
    for s in active:
        if not 1 <= s <= k:
            raise InputError(f"active features must be from 1 to k = {k}, got {s}")
    if trials < 1:
        raise InputError(f"trials must be at least 1, got {trials}")
    if values not in VALUES:
        raise InputError(f"unknown values {values!r}: use {', '.join(VALUES)}")
    for name in readouts:
        if name not in READOUTS:
            raise InputError(f"unknown readout {name!r}: use {', '.join(READOUTS)}")


def _unit_rows(vectors: torch.Tensor, block: int = 4096) -> torch.Tensor:
    if vectors.ndim != 2 or not vectors.shape[0]:
        raise VectorsError(f"directions must be a non-empty (k, d) matrix, got shape {tuple(vectors.shape)}")
    unit = torch.empty(vectors.shape, dtype=torch.float32)
    for first in range(0, vectors.shape[0], block):
        rows = vectors[first : first + block].to("cpu").double()
        largest = rows.abs().amax(dim=1, keepdim=True)
        bad = ~(torch.isfinite(largest) & (largest > 0)).squeeze(1)
        if bool(bad.any()):
            row = first + int(bad.nonzero()[0])
            raise VectorsError(f"row {row} has no direction (zero or not finite): leave it out first")
        rows = rows / largest  # not in place: float64 rows on the cpu are the caller's own
        unit[first : first + block] = rows / rows.norm(dim=1, keepdim=True)
    return unit


def _gram(unit: torch.Tensor, block: int = 4096) -> torch.Tensor:
    """U^T U in float64 on the cpu, block by block; the dual readout inverts it, so float32 would not do."""
    gram = torch.zeros((unit.shape[1], unit.shape[1]), dtype=torch.float64)
    for first in range(0, unit.shape[0], block):
        rows = unit[first : first + block].to("cpu").double()
        gram.addmm_(rows.mT, rows)
    return gram


def _dual(unit: torch.Tensor, gram: torch.Tensor, block: int = 4096) -> torch.Tensor:
    """Rows along (U^T U)^+ u_i, scaled to read 1 on their own feature. Shape (k, d)."""
    inverse = torch.linalg.pinv(gram, hermitian=True, rtol=1e-9)
    weights = torch.empty_like(unit)
    for first in range(0, unit.shape[0], block):
        rows = unit[first : first + block].to("cpu").double()
        dual = rows @ inverse
        weights[first : first + block] = (dual / (dual * rows).sum(dim=1, keepdim=True)).to(unit)
    return weights


def _draw(k: int, s: int, trials: int, values: str, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Active sets, shape (trials, s), distinct in each trial, and their values."""
    rng: np.random.Generator = np.random.default_rng([seed, s])
    chosen = np.stack([rng.choice(k, size=s, replace=False, shuffle=False) for _ in range(trials)])
    if values == "signs":
        amounts = rng.choice([-1.0, 1.0], size=(trials, s))
    elif values == "ones":
        amounts = np.ones((trials, s))
    else:
        amounts = 1.0 - rng.random((trials, s))
    return torch.from_numpy(chosen.astype(np.int64)), torch.from_numpy(amounts)


def _read(
    weights: torch.Tensor,
    state: torch.Tensor,
    chosen: torch.Tensor,
    amounts: torch.Tensor,
    name: str,
    square: float | None,
    block: int = 8192,
) -> Readout:
    trials, s = chosen.shape
    k = weights.shape[0]
    on = torch.empty_like(amounts)
    idle_square, idle_largest = 0.0, torch.zeros(trials, device=state.device)
    for first in range(0, k, block):
        last = min(first + block, k)
        reading = state @ weights[first:last].mT  # (trials, block)
        here = (chosen >= first) & (chosen < last)
        row, column = here.nonzero(as_tuple=True)
        at = chosen[row, column] - first
        on[row, column] = reading[row, at]
        reading[row, at] = 0.0  # what remains is idle
        idle_square += float(reading.pow(2).sum())
        idle_largest = torch.maximum(idle_largest, reading.abs().amax(dim=1))
    idle = trials * (k - s)
    found = on.abs().amin(dim=1) > idle_largest if s < k else torch.ones(trials, dtype=torch.bool)
    return Readout(
        active=s,
        readout=name,
        trials=trials,
        rms_active=float((on - amounts).pow(2).mean().sqrt()),
        rms_idle=math.sqrt(idle_square / idle) if idle else 0.0,
        worst=float(idle_largest.max()),
        recovery=float(found.float().mean()),
        predicted_active=None if square is None else math.sqrt(max(0.0, (s - 1) * square)),
        predicted_idle=None if square is None else math.sqrt(max(0.0, s * square)),
    )


def _decode(unit: torch.Tensor, state: torch.Tensor, chosen: torch.Tensor, amounts: torch.Tensor) -> Readout:
    """What the pursuit finds: a feature that it does not take reads 0."""
    trials, s = chosen.shape
    k = len(unit)
    taken, values = pursue(unit, state, s)
    same = chosen[:, :, None] == taken[:, None, :]  # (trials, active, taken)
    on = (same * values[:, None, :]).sum(2)
    wrong = values.masked_fill(same.any(1), 0.0)
    idle = trials * (k - s)
    return Readout(
        active=s,
        readout="omp",
        trials=trials,
        rms_active=float((on - amounts).pow(2).mean().sqrt()),
        rms_idle=math.sqrt(float(wrong.pow(2).sum()) / idle) if idle else 0.0,
        worst=float(wrong.abs().max()),
        recovery=float(same.any(1).all(1).float().mean()),
        predicted_active=None,
        predicted_idle=None,
    )
