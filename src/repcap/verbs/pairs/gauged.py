"""Pairs counted in each gauge, here, from a sample or over an engine: one sweep a gauge, one bar for all."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import numpy as np

from repcap import geometry, sources
from repcap.errors import InputError, RepcapError
from repcap.geometry.pairs.histogram import PairCounts, Wanted
from repcap.geometry.pairs.tail import GAUGES
from repcap.jobs.engine import Fault, Unit, parse_engine, run
from repcap.matrix import Matrix, ProgressFn
from repcap.options import Option
from repcap.sources.spec import parse_spec


def _shares(text: str) -> tuple[float, ...]:
    """`0.0455,1e-3` as numbers."""
    try:
        return tuple(float(piece) for piece in text.split(","))
    except ValueError:
        raise InputError(f"{text!r} is no list of shares: write them as 0.0455,1e-3") from None


def _names(text: str) -> tuple[str, ...]:
    return tuple(piece.strip() for piece in text.split(","))


Alpha = Annotated[
    Sequence[float],
    Option("Shares of pairs whose |cosine| to give: eps_alpha and d_alpha.", above=0.0, below=1.0, read=_shares,
           metavar="A,A"),
]  # fmt: skip
Gauge = Annotated[
    Sequence[str],
    Option("The tail also of the rows centred, without their strongest direction, whitened.", choices=GAUGES,
           read=_names, metavar="stored,centred,top1,whitened"),
]  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Sweep:
    """What is counted of the rows in one gauge. change: of the rows, None for the rows as stored."""

    change: Any
    wanted: Wanted


@dataclasses.dataclass(frozen=True)
class Lot:
    """What a worker counts: these pairs of panels of `matrix` in `source`, which it opens itself."""

    source: str
    matrix: str
    sweep: Sweep
    panels: tuple[tuple[int, int], ...]
    mask: np.ndarray | None
    panel: int
    device: str


def sweep_here(
    matrix: Matrix, sweeps: Sequence[Sweep], count: Callable[..., PairCounts], on_progress: ProgressFn | None
) -> list[PairCounts]:
    """What `count` (`count_pairs`, `sample_pairs`) finds in each gauge, in this process."""

    def part(position: int) -> ProgressFn | None:
        """One of the equal parts of a bar that runs once from 0 to 100 %."""
        if on_progress is None:
            return None
        return lambda done, total: on_progress(position * total + done, len(sweeps) * total)

    return [
        count(geometry.changed(matrix, sweep.change), wanted=sweep.wanted, on_progress=part(position))
        for position, sweep in enumerate(sweeps)
    ]


def pinned(source: str, opened: Matrix) -> str:
    """The source for workers, who open it later: of a Hub repository the commit that is open here."""
    spec = parse_spec(source)
    if spec.scheme != "hub" or opened.info.revision is None:
        return source
    folder = f"/{spec.folder}" if spec.folder else ""
    tensor = f"::{spec.tensor}" if spec.tensor else ""
    return f"hf://{spec.location}@{opened.info.revision}{folder}{tensor}"


def count_lot(lot: Lot) -> dict[str, Any]:
    """Worker: count one lot of panel pairs. Returns the counts as plain lists."""
    with sources.open_source(lot.source, lot.matrix) as opened:
        return geometry.count_panels(
            geometry.changed(opened, lot.sweep.change),
            [geometry.PanelPair(*pair) for pair in lot.panels],
            mask=lot.mask,
            wanted=lot.sweep.wanted,
            panel=lot.panel,
            device=lot.device,
        ).to_dict()


def sweep_engine(
    whole: Lot, sweeps: Sequence[Sweep], count: int, engine: str, on_progress: ProgressFn | None
) -> list[PairCounts]:
    """Share the panel pairs of `count` rows in every gauge out over an engine. whole: a lot without panels yet."""
    chosen = geometry.panel_pairs(count, whole.panel)
    lots = min(len(chosen), max(16, 8 * parse_engine(engine).workers))
    every = lots * len(sweeps)
    units = []
    for number in range(every):
        position, first = divmod(number, lots)
        panels = tuple((pair.first, pair.second) for pair in chosen[first::lots])
        lot = dataclasses.replace(whole, sweep=sweeps[position], panels=panels)
        units.append(Unit(str(number), lot, f"lot {number + 1} of {every}", len(panels)))
    totals = [PairCounts.empty(sweep.wanted) for sweep in sweeps]
    faults: list[Fault] = []
    done = 0

    def on_result(unit: Unit, value: dict[str, Any]) -> None:
        nonlocal done
        position, done = int(unit.key) // lots, done + 1
        totals[position] = totals[position] + PairCounts.from_dict(value)
        if on_progress is not None:
            on_progress(done, every)

    run(units, count_lot, engine, on_result=on_result, on_failure=lambda _unit, fault: faults.append(fault))
    if faults:
        raise RepcapError(f"{len(faults)} of {every} lots of pairs failed; the first: {faults[0].reason}")
    return totals
