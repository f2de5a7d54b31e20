"""`dictionary`: the decoder of a sparse autoencoder as a set of directions: alive and dead, crowded or not, and how its
rows lie against a model's embedding.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from repcap import geometry, sources
from repcap.bracket.interval import bracket
from repcap.errors import VectorsError
from repcap.geometry.epsilon.epsilon import Spread
from repcap.geometry.pairs.tail import Tail
from repcap.laws import law_epsilon
from repcap.laws.limits.bounds import coherence_lower_bound
from repcap.laws.limits.existence import random_coherence
from repcap.matrix import Matrix, ProgressFn, stages
from repcap.numerics import DELTA, THETA, Z_DEFAULT
from repcap.options import Delta, Device, Option, Seed, Theta, Z, verb
from repcap.result import Result
from repcap.studies.measured import Measured, with_capacity

if TYPE_CHECKING:
    from repcap.geometry.readout.linear import AtOnce


TINY = 1e-3
"""A row shorter than this part of the median length is dead, as `repcap measure` calls it tiny."""
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)

Decoder = Annotated[
    str, Option("The decoder, where it is not found by its name.", listed=False, flags=("--matrix",), metavar="NAME")
]
AgainstMatrix = Annotated[
    str, Option("The matrix of the model: embedding, unembedding, or a name.", listed=False, metavar="NAME")
]
Named = Annotated[int, Option("Name so many rows nearest to the embedding.", least=0, why="give 0 or more")]


@dataclasses.dataclass(frozen=True)
class Against:
    """A dictionary's rows against a model's embedding.

    epsilon: the embedding's. rows_within: share of alive rows whose largest |cosine| with an embedding row is at most
    that. largest: quantiles (share, |cosine|) of those; strongest: (row, embedding row, token, |cosine|).
    pairs_within: share of pairs of alive rows with |cosine| <= epsilon; beyond: shares above it and below minus it.
    random: the largest |cosine| that a random direction would have with so many random ones (median).
    budget: directions that must share the space: alive rows and the rows of embedding and unembedding.
    capacity: how many fit at that epsilon, as in `repcap measure`; None where epsilon is not between 0 and 1.
    """

    source: str
    matrix: str
    count: int
    tied: bool | None
    epsilon: float
    class_name: str
    rows_within: float
    largest: tuple[tuple[float, float], ...]
    strongest: tuple[tuple[int, int, str | None, float], ...]
    pairs_within: float
    beyond: Tail
    random: float
    budget: int
    capacity: dict[str, Any] | None

    def to_dict(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "matrix": self.matrix,
            "count": self.count,
            "tied": self.tied,
            "epsilon": self.epsilon,
            "class": self.class_name,
            "rows_within": self.rows_within,
            "largest": [{"share": share, "cosine": cosine} for share, cosine in self.largest],
            "strongest": [
                {"row": row, "embedding_row": other, "token": token, "cosine": cosine}
                for row, other, token, cosine in self.strongest
            ],
            "pairs_within": self.pairs_within,
            "pairs_beyond": self.beyond.to_dict(),
            "random": self.random,
            "budget": self.budget,
            "capacity": self.capacity,
        }


@dataclasses.dataclass(frozen=True, repr=False)
class Dictionary(Result):
    """What a dictionary of directions holds.

    alive: rows with a direction and a length of at least 1/1000 of the median. zero, non_finite, tiny: dead rows.
    coherence: largest |cosine| over all pairs of alive rows; `pair` attains it. coherence_bound: least possible for so
    many lines, proven. coherence_random: of so many random ones (median). law_epsilon: epsilon at which each law has
    room for so many. at_once: how many can be read at once; None of two rows.
    """

    kind = "dictionary"
    tells = True

    measured: Measured
    alive: int
    zero: int
    non_finite: int
    tiny: int
    coherence: float
    pair: tuple[int, int]
    coherence_bound: float
    coherence_random: float
    law_epsilon: dict[str, float]
    at_once: AtOnce | None
    against: Against | None
    notes: tuple[str, ...]

    @property
    def title(self) -> str:
        return self.measured.title

    @property
    def numbers(self) -> str:
        return (
            f"{self.alive} alive, {self.dead} dead, epsilon {self.measured.epsilon:.6f}, "
            f"coherence {self.coherence:.6f} (at least {self.coherence_bound:.6f}, random {self.coherence_random:.6f})"
        )

    @property
    def dead(self) -> int:
        return self.zero + self.non_finite + self.tiny

    @property
    def filled(self) -> dict[str, float] | None:
        """k over capacity: alive rows over the vectors that {explicit, exists, law, upper} have room for at
        the dictionary's own epsilon. None where epsilon is not between 0 and 1.
        """
        capacity = self.measured.capacity
        if capacity is None:
            return None
        return {key: 10.0 ** (math.log10(self.alive) - part["log10_k"]) for key, part in capacity.items()}

    @property
    def reading(self) -> str:
        """The result in words."""
        found = self.measured
        text = (
            f"{self.alive} of {found.info.count} rows are alive; their epsilon is {found.epsilon:.4f} "
            f"({found.epsilon_ratio:.2f} times random directions), and the closest two have |cosine| "
            f"{self.coherence:.4f}, where {self.alive} lines in {found.dim} dimensions have at least "
            f"{self.coherence_bound:.4f}"
        )
        if self.against is not None:
            text += (
                f"; {self.against.rows_within:.1%} of them keep within the embedding's epsilon "
                f"{self.against.epsilon:.4f} of every embedding row, and {self.against.pairs_within:.2%} of their "
                "pairs within it of each other"
            )
        if self.at_once is not None:
            held = f"about {self.at_once.best.most}" if self.at_once.best.most else "not even one"
            text += (
                f". A vector can hold {held} of them at once for a linear readout to tell apart, with at most "
                f"{self.at_once.delta:g} of the idle ones reading above {self.at_once.theta:g}"
            )
        return text + "."

    def values(self) -> dict[str, Any]:
        return {
            **self.measured.values(),
            "alive": self.alive,
            "dead": {
                "rows": self.dead,
                "zero": self.zero,
                "non_finite": self.non_finite,
                "tiny": self.tiny,
            },
            "coherence": self.coherence,
            "coherence_pair": list(self.pair),
            "coherence_bound": self.coherence_bound,
            "coherence_random": self.coherence_random,
            "law_epsilon": self.law_epsilon,
            "filled": self.filled,
            "at_once": self.at_once.to_dict() if self.at_once else None,
            "against": self.against.to_dict() if self.against else None,
            "dictionary_notes": list(self.notes),
        }


@verb
def dictionary(
    source: Any,
    against: Any = None,
    *,
    matrix: Decoder = "embedding",
    against_matrix: AgainstMatrix = "embedding",
    top: Named = 10,
    theta: Theta = THETA,
    delta: Delta = DELTA,
    z: Z = Z_DEFAULT,
    seed: Seed = 0,
    device: Device = "auto",
    on_progress: ProgressFn | None = None,
) -> Dictionary:
    """Measure a dictionary, (k, d), one direction a row; with `against` also against a model's embedding, (n, d).

    Which features a dictionary never uses is not written in its weights: dead here are rows without a direction or with
    almost no length. Rows of length 1 that never fire count as alive.

    Parameters
    ----------
    source, against
        the dictionary, and the model that it was trained on; both as the source of `repcap.measure`.
    matrix, against_matrix : str
        `embedding` finds the decoder of a sparse autoencoder (`W_dec` and its kin) by itself; what to open of the
        model.
    top : int
        rows nearest to the embedding to name.
    theta, delta : float
        as of `repcap.readout`, of the alive rows.
    z, seed, device
        as of `repcap.measure`.

    Raises
    ------
    SourceError, VectorsError, InputError
        if something cannot be read, fewer than two rows are alive, or the widths differ.

    Cost: a measurement, k^2 d operations for all pairs, two float64 passes of k d^2 and 4096 k d for the readout, 2 k n
    d against the embedding. Memory: 1 GiB of unit rows of each at most, blocks; never k x k or k x n.
    """
    with sources.open_source(source, matrix) as opened:
        options = geometry.MeasureOptions(z=z, seed=seed, device=device)
        measuring, reading, aligning, pairing = stages(on_progress, 1, 1, 0 if against is None else 4, 4)
        measured = with_capacity(geometry.measure_matrix(opened, options, on_progress=measuring))
        alive, counts = _alive(opened)
        if alive.sum() < 2:
            raise VectorsError(f"{int(alive.sum())} row of {opened.info.name} is alive: a cosine needs two")
        live = geometry.select_rows(opened.count, (), np.flatnonzero(alive).tolist())
        reader = geometry.plain_reader(opened, device, live)
        at_once = geometry.read_at_once(reader, theta=theta, delta=delta, seed=seed, on_progress=reading)
        part = None
        told: Sequence[str] = ()
        if against is None:
            coherence, pair, _ = _pairs(opened, alive, 1.0, device, pairing)
        else:
            with sources.open_source(against, against_matrix) as embedding:
                part, coherence, pair = _against(opened, alive, embedding, top, z, device, aligning, pairing)
                told = embedding.info.warnings
    return _result(measured, alive, counts, coherence, pair, at_once, part, told)


def _result(
    measured: Measured,
    alive: np.ndarray,
    counts: dict[str, int],
    coherence: float,
    pair: tuple[int, int],
    at_once: AtOnce | None,
    against: Against | None,
    told: Sequence[str],
) -> Dictionary:
    k, d = int(alive.sum()), measured.dim
    notes = [
        "a feature that never fires may have an ordinary row: dead rows are those that the weights themselves show"
    ]
    if k < len(alive) and counts["tiny"]:
        notes.append("tiny rows are in epsilon, which is of all rows with a direction, and not among the alive ones")
    if against is not None and against.class_name == "high":
        notes.append(
            f"the embedding is class high: almost any direction keeps within an epsilon of {against.epsilon:.2f}; "
            "compare the largest |cosine| with that of random directions instead"
        )
    if against is not None:
        notes += (f"{against.source}: {warning}" for warning in told)
    return Dictionary(
        measured=measured,
        alive=k,
        zero=counts["zero"],
        non_finite=counts["non_finite"],
        tiny=counts["tiny"],
        coherence=coherence,
        pair=pair,
        coherence_bound=coherence_lower_bound(k, d).value,
        coherence_random=random_coherence(k, d),
        law_epsilon=law_epsilon(math.log(k), d),
        at_once=at_once,
        against=against,
        notes=tuple(notes),
    )


def _alive(matrix: Matrix) -> tuple[np.ndarray, dict[str, int]]:
    """((k,) bool, number of rows by kind of death). One pass, O(k d); memory one block and 9 bytes a row."""
    length, dropped = geometry.lengths_of(matrix)
    directed = length > 0
    alive = directed & (length >= TINY * np.median(length[directed])) if directed.any() else directed
    zero = sum(reason == geometry.ZERO for _, reason in dropped)
    return alive, {"zero": zero, "non_finite": len(dropped) - zero, "tiny": int(directed.sum() - alive.sum())}


def _pairs(
    matrix: Matrix, alive: np.ndarray, epsilon: float, device: str, on_progress: ProgressFn | None
) -> tuple[float, tuple[int, int], Tail]:
    """(coherence, the pair that attains it, shares of pairs beyond +-epsilon) of the alive rows; exact."""
    wanted = geometry.Wanted(keep=1, epsilon=epsilon)
    counted = geometry.count_pairs(matrix, mask=alive, wanted=wanted, device=device, on_progress=on_progress)
    best = max((*counted.largest, *counted.smallest), key=lambda extreme: abs(extreme.cosine))
    return abs(best.cosine), (best.i, best.j), geometry.measured_tail(counted, epsilon)


def _against(
    matrix: Matrix,
    alive: np.ndarray,
    embedding: Matrix,
    top: int,
    z: float,
    device: str,
    aligning: ProgressFn,
    pairing: ProgressFn,
) -> tuple[Against, float, tuple[int, int]]:
    if matrix.dim != embedding.dim:
        raise VectorsError(
            f"rows of {matrix.dim} columns ({matrix.info.name}) and of {embedding.dim} ({embedding.info.source}) lie "
            "in different spaces: give the model whose residual stream the dictionary was trained on"
        )
    spread = _spread(embedding, z, device)
    rows = np.flatnonzero(alive)
    table = geometry.UnitTable(embedding, device)
    aligned = geometry.largest_alignment(geometry.Subset(matrix, rows), table, aligning)
    cosine = aligned.cosine.astype(np.float64)
    order = np.argsort(-cosine, kind="stable")[:top]
    text = embedding.tokens.text if embedding.tokens is not None else lambda _row: None
    coherence, pair, tail = _pairs(matrix, alive, spread.epsilon, device, pairing)
    separate = embedding.info.tied is False
    part = Against(
        source=embedding.info.source,
        matrix=embedding.info.name,
        count=spread.count,
        tied=embedding.info.tied,
        epsilon=spread.epsilon,
        class_name=spread.class_name,
        rows_within=float((cosine <= spread.epsilon + geometry.ROUNDING).mean()),
        largest=tuple((share, float(np.quantile(cosine, share))) for share in QUANTILES),
        strongest=tuple(
            (int(rows[at]), int(aligned.index[at]), text(int(aligned.index[at])), float(cosine[at])) for at in order
        ),
        pairs_within=1.0 - tail.both,
        beyond=tail,
        random=random_coherence((1.0 + math.sqrt(1.0 + 8.0 * spread.count)) / 2.0, embedding.dim),
        budget=len(rows) + spread.count * (2 if separate else 1),
        capacity=bracket(embedding.dim, spread.epsilon, z).summary() if 0.0 < spread.epsilon < 1.0 else None,
    )
    return part, coherence, pair


def _spread(embedding: Matrix, z: float, device: str) -> Spread:
    """Mean and standard deviation of the embedding's rows."""
    geometry.check_matrix(embedding)
    found = geometry.spread_of(geometry.plain_reader(embedding, device), "all", z)
    if found is None:
        raise VectorsError(f"{embedding.info.source} has fewer than two embedding rows with a direction")
    return found
