"""Orthogonal matching pursuit: sparse decoding, which asks which s rows together explain a state.

A linear readout looks at each row alone. The pursuit takes the row of the largest |u_i . r|, r what is left of the
state, fits all rows taken so far by least squares, and goes on with what that leaves; after s steps it stops. It finds
every set of s rows if s < (1 + 1/mu)/2, mu the coherence (J. Tropp, IEEE Trans. Inform. Theory 50 (2004), thm. A and
3.5); at random sets it finds far more than that. Least squares by orthogonalising: with q_1 .. q_j the taken rows made
orthonormal, r = x - sum_j (q_j . x) q_j.
"""

from __future__ import annotations

import torch

OPERATIONS = 4e11
"""Most of one number of active rows: of more, the pursuit decodes fewer of the states."""
_BASES = 1 << 26
"""Numbers in the bases that are held at once."""


def affordable(trials: int, active: int, count: int, dim: int) -> int:
    """States that may be decoded for OPERATIONS, at least one and at most `trials`."""
    return min(trials, max(1, int(OPERATIONS // (2.0 * active * count * dim))))


def pursue(
    unit: torch.Tensor, state: torch.Tensor, active: int, block: int = 8192
) -> tuple[torch.Tensor, torch.Tensor]:
    """(rows taken, their least squares values), each (trials, s), of the (trials, d) states; `unit` is (k, d).

    2 s k d + 4 s^2 d operations a state. Memory: 256 MiB of bases at most (of one state at least), trials x block.
    """
    parts = [_pursue(unit, part, active, block) for part in state.split(max(1, _BASES // (active * state.shape[1])))]
    taken, values = (torch.cat(found) for found in zip(*parts, strict=True))
    return taken, values


def _pursue(unit: torch.Tensor, state: torch.Tensor, active: int, block: int) -> tuple[torch.Tensor, torch.Tensor]:
    trials, dim = state.shape
    rest = state.clone()
    basis = state.new_zeros((trials, active, dim))
    taken = torch.full((trials, active), -1, dtype=torch.int64, device=state.device)
    every = torch.arange(trials, device=state.device)
    for step in range(active):
        best = state.new_full((trials,), -1.0)
        for first in range(0, len(unit), block):
            size = (rest @ unit[first : first + block].mT).abs_()
            row, column = ((taken >= first) & (taken < first + block)).nonzero(as_tuple=True)
            size[row, taken[row, column] - first] = -1.0  # a row is taken once
            largest, at = size.max(dim=1)
            better = largest > best
            best = torch.where(better, largest, best)
            taken[:, step] = torch.where(better, at + first, taken[:, step])
        new = unit[taken[:, step]].clone()
        for _ in range(2):  # twice is enough against rounding (W. Kahan; B. Parlett)
            new -= torch.einsum("tj,tjd->td", torch.einsum("tjd,td->tj", basis[:, :step], new), basis[:, :step])
        length = torch.linalg.vector_norm(new, dim=1, keepdim=True)
        new = torch.where(length > 1e-5, new / length.clamp_min(1e-30), 0.0)  # nothing new where it depends on others
        basis[every, step] = new
        rest = rest - (new * rest).sum(1, keepdim=True) * new
    chosen = unit[taken].cpu().double().mT  # (trials, d, s); on the cpu: an accelerator has no solver for repeated rows
    values = torch.linalg.lstsq(chosen, state.cpu().double()[:, :, None], driver="gelsd").solution[:, :, 0]
    return taken, values.to(state.dtype).to(state.device)
