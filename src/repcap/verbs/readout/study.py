"""`readout`: how many tokens (or features) one vector can hold and still be told apart by a linear readout."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

from repcap import geometry, sources
from repcap.matrix import ProgressFn
from repcap.numerics import DELTA, THETA
from repcap.options import Delta, Device, ExcludeIds, MatrixName, Option, Seed, Theta, Top, parse_ids, verb
from repcap.result import Result

if TYPE_CHECKING:
    from repcap.geometry.readout.linear import LinearReadout

Draws = Annotated[int, Option("Also draw so many random states for each s, and read them.", least=0, most=100_000)]
Active = Annotated[Sequence[int], Option("Numbers of active rows to show.", least=1, read=parse_ids, metavar="S,S")]
ACTIVE = (1, 2, 4, 8, 16, 32)


@dataclasses.dataclass(frozen=True)
class ReadToken:
    """A row and 1 / q_i: how many dimensions of random directions would read it as well."""

    index: int
    effective_dim: float | None
    token: str | None = None


@dataclasses.dataclass(frozen=True, repr=False)
class Readouts(Result):
    """The direct and the best linear readout of `count` rows in `dim` dimensions.

    rank: dimensions that the rows span. welch_dim: the most that an effective dimension can be; None where n <= d.
    worst, best_read: rows that are read with the most, and with the least, interference.
    """

    kind = "readout"

    source: str
    matrix: str
    role: str
    revision: str | None
    count: int
    dropped: int
    dim: int
    rank: int
    theta: float
    delta: float
    direct: LinearReadout
    best: LinearReadout
    welch_dim: float | None
    worst: tuple[ReadToken, ...]
    best_read: tuple[ReadToken, ...]

    @property
    def title(self) -> str:
        return f"{self.matrix} of {self.source}, {self.count} x {self.dim}"

    @property
    def numbers(self) -> str:
        shown = [f"{side.effective_dim:.1f}" if side.effective_dim else "-" for side in (self.direct, self.best)]
        return f"effective dimension {shown[0]} direct, {shown[1]} best linear; s_max {self.best.most}"

    @property
    def reading(self) -> str:
        what = "tokens" if self.role in ("embedding", "unembedding") else "rows"
        asked = f"at most {self.delta:g} of the idle ones reading above {self.theta:g}"
        if self.best.most == 0:
            return f"Not even one of these {self.count} {what} can be read out of a vector with {asked}."
        return (
            f"A vector can hold about {self.best.most} of these {self.count} {what} at once, and the best linear "
            f"readout tells them apart, with {asked}; reading along the rows themselves, {self.direct.most or 'none'}."
        )

    def values(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "matrix": self.matrix,
            "role": self.role,
            "revision": self.revision,
            "count": self.count,
            "dropped_count": self.dropped,
            "dim": self.dim,
            "rank": self.rank,
            "theta": self.theta,
            "delta": self.delta,
            "s_max": self.best.most,
            "effective_dim": self.best.effective_dim,
            "welch_dim": self.welch_dim,
            "direct": self.direct.to_dict(),
            "best": self.best.to_dict(),
            "worst": [dataclasses.asdict(row) for row in self.worst],
            "best_read": [dataclasses.asdict(row) for row in self.best_read],
        }


@verb
def readout(
    source: Any,
    matrix: MatrixName = "embedding",
    *,
    theta: Theta = THETA,
    delta: Delta = DELTA,
    active: Active = ACTIVE,
    simulate: Draws = 0,
    top: Top = 5,
    exclude_ids: ExcludeIds = (),
    seed: Seed = 0,
    device: Device = "auto",
    on_progress: ProgressFn | None = None,
) -> Readouts:
    """How many rows of `matrix` can be active at once and still be told apart by a linear readout.

    A state holds s rows with random signs, x = sum a_j u_j. Row i is read as w_i . x, by w_i = u_i (direct) or by the
    w_i of least interference (best linear). Formulas: `repcap.geometry.readout.leverage`, `.alarms`, docs/readout.md.

    Parameters
    ----------
    source, matrix
        as of `repcap.measure`; of a sparse autoencoder the decoder.
    theta, delta : float
        an idle row alarms where it reads more than theta; s_max is the most active rows with a share of alarms of at
        most delta.
    active : sequence of int
        numbers of active rows to show false alarms of.
    simulate : int
        draw so many random states for each of them, too.
    top : int
        rows that are read worst and best to name.
    exclude_ids, seed, device
        row numbers to leave out; of the rows whose weights are looked at, and of the draws; where reading begins.
    on_progress : callable, optional
        called with (rows done, rows to do) over all passes.

    Raises
    ------
    SourceError, VectorsError, InputError
        for what cannot be read or asked for.

    Cost: two float64 passes, n d^2 operations each, 4096 n d for the weights of 1024 rows. Memory: two (d, d) matrices.
    """
    with sources.open_source(source, matrix) as opened:
        geometry.check_matrix(opened)
        rows = geometry.select_rows(opened.count, exclude_ids or ())
        found = geometry.read_rows(
            geometry.plain_reader(opened, device, rows),
            theta=theta,
            delta=delta,
            active=active,
            draws=simulate,
            seed=seed,
            on_progress=on_progress,
        )
        q = found.leverages.interference
        order = q.argsort(descending=True, stable=True)
        text = opened.tokens.text if opened.tokens is not None else lambda _index: None

        def named(position: int) -> ReadToken:
            index = int(found.leverages.indices[position])
            return ReadToken(index, 1.0 / float(q[position]) if q[position] > 0 else None, text(index))

        return Readouts(
            source=opened.info.source,
            matrix=opened.info.name,
            role=opened.info.role,
            revision=opened.info.revision,
            count=found.leverages.count,
            dropped=found.dropped,
            dim=opened.dim,
            rank=found.leverages.rank,
            theta=theta,
            delta=delta,
            direct=found.direct,
            best=found.best,
            welch_dim=1.0 / found.welch if found.welch > 0 else None,
            worst=tuple(named(int(at)) for at in order[:top]),
            best_read=tuple(named(int(at)) for at in order.flip(0)[:top]),
        )
