"""How many rows of a matrix can be active at once and still be told apart by a linear readout."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import torch

from repcap.errors import VectorsError
from repcap.geometry.epsilon.passes import first_pass
from repcap.geometry.readout.alarms import ROWS, Simulated, alarm_curve, simulate_alarms
from repcap.geometry.readout.leverage import Leverages, leverages, pseudo_inverse, welch_interference
from repcap.geometry.rows.reader import RowReader
from repcap.matrix import ProgressFn
from repcap.numerics import finite

DIRECT, BEST = "direct", "best linear"


@dataclasses.dataclass(frozen=True)
class LinearReadout:
    """What one readout makes of the rows.

    interference: mean over the rows of q, the mean square that an idle row reads of one active row. effective_dim: 1 /
    that mean: random directions of so many dimensions would do the same. median_dim: the same of the median row; None
    for the direct readout, whose rows are not told apart here. alarms: (s, share of idle rows beyond the threshold).
    most: s_max, the most active rows with a share of at most delta. simulated: the same from random draws.
    """

    name: str
    interference: float
    median_dim: float | None
    alarms: tuple[tuple[int, float], ...]
    most: int
    simulated: tuple[Simulated, ...] = ()

    @property
    def effective_dim(self) -> float | None:
        """None where nothing interferes: every row is read exactly."""
        return 1.0 / self.interference if self.interference > 0.0 else None

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "interference": self.interference,
            "effective_dim": self.effective_dim,
            "median_dim": None if self.median_dim is None else finite(self.median_dim),
            "alarms": [{"active": active, "rate": rate} for active, rate in self.alarms],
            "s_max": self.most,
            "simulated": [dataclasses.asdict(one) for one in self.simulated],
        }


@dataclasses.dataclass(frozen=True, eq=False)
class ReadRows:
    """The two readouts, and the leverages that the second follows from. welch: least interference of so many rows."""

    direct: LinearReadout
    best: LinearReadout
    leverages: Leverages
    welch: float
    dropped: int


@dataclasses.dataclass(frozen=True)
class AtOnce:
    """How many rows one vector holds and a linear readout tells apart, as `repcap readout` finds it.

    direct, best: along the rows themselves, and with the weights of least interference. welch_dim: the most that their
    effective dimension can be; None where nothing need interfere.
    """

    theta: float
    delta: float
    direct: LinearReadout
    best: LinearReadout
    welch_dim: float | None

    def to_dict(self) -> dict[str, Any]:
        sides = {"direct": self.direct.to_dict(), "best": self.best.to_dict()}
        return {"theta": self.theta, "delta": self.delta, **sides, "welch_dim": self.welch_dim}


def read_rows(
    reader: RowReader,
    *,
    theta: float,
    delta: float,
    active: Sequence[int],
    draws: int = 0,
    seed: int = 0,
    on_progress: ProgressFn | None = None,
) -> ReadRows:
    """Interference, false alarms and s_max of the direct and of the best linear readout of the rows, (n, d).

    theta: an idle row alarms where it reads more than this of an active one. draws: random states to simulate for each
    s of `active`, 0 for none. on_progress: called with (rows read, rows to read) over all passes.

    Cost: two float64 passes, n d^2 operations each, and 4 x 1024 n d for the weights of up to 1024 rows; a simulation
    4 draws n d for each s. Memory: two (d, d) float64 matrices, blocks of rows, 1024 x 8192 counts; never n x n.

    Raises
    ------
    VectorsError
        if fewer than three rows have a direction.
    """
    passes = 4 + 2 * len(active) * (draws > 0)
    reader = dataclasses.replace(reader, on_rows=_rows_of(passes * reader.count, on_progress))
    wide = reader.replaced(dtype=torch.float64)
    first = first_pass(wide, find_repeats=False)
    if first.count < 3:
        raise VectorsError(f"{first.count} rows with a direction ({reader.matrix.info.title}): a readout needs three")
    reader, wide = reader.replaced(rows=first.indices), wide.replaced(rows=first.indices)
    moments = first.moments()
    inverse, rank = pseudo_inverse(moments.G)
    found = leverages(wide, inverse, rank)
    pick = torch.randperm(first.count, generator=torch.Generator().manual_seed(seed))[:ROWS].sort()[0]
    own = found.indices[pick]
    units = torch.cat([block.units.clone() for block in wide.replaced(rows=own).units()])
    q = found.interference
    asked = [s for s in active if s < first.count]
    sides = []
    for name, weights, mean, median, solved in (
        (DIRECT, units, moments.second, None, None),
        (BEST, (units @ inverse) / found.leverage[pick][:, None], float(q.mean()), float(q.median()), inverse),
    ):
        curve = alarm_curve(reader, weights.float(), own, theta)
        side = LinearReadout(
            name=name,
            interference=mean,
            median_dim=None if not median else 1.0 / median,
            alarms=tuple((s, curve.rate(s)) for s in asked),
            most=curve.most(delta),
            simulated=tuple(
                simulate_alarms(reader, solved, found.indices, s, draws, theta, seed) for s in asked if draws
            ),
        )
        sides.append(side)
    welch = welch_interference(first.count, reader.dim)
    return ReadRows(sides[0], sides[1], found, welch, len(first.dropped))


def read_at_once(
    reader: RowReader, *, theta: float, delta: float, seed: int = 0, on_progress: ProgressFn | None = None
) -> AtOnce | None:
    """`read_rows` without the curves and the rows one by one; None of fewer than three rows. The same cost."""
    if reader.count < 3:
        return None
    found = read_rows(reader, theta=theta, delta=delta, active=(), seed=seed, on_progress=on_progress)
    return AtOnce(theta, delta, found.direct, found.best, 1.0 / found.welch if found.welch > 0.0 else None)


def _rows_of(total: int, on_progress: ProgressFn | None) -> Callable[[int], None] | None:
    """Adds up the rows of all passes."""
    if on_progress is None:
        return None
    done = 0

    def on_rows(count: int) -> None:
        nonlocal done
        done = min(done + count, total)
        on_progress(done, total)

    return on_rows
