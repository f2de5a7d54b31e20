"""Tables of packings (k, d, epsilon) and the published data that ship with repcap.

`PackingTable` is what a law is fitted to: one row a cell, k vectors in dimension d whose largest |cosine| is epsilon.
`load_table` reads one from a CSV file, `from_records` takes records of packings.
The shipped files and their licences are described in `repcap/data/SOURCE.md`.
"""

from __future__ import annotations

import csv
import dataclasses
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from pkgutil import get_data
from typing import Any

import numpy as np
import numpy.typing as npt

from repcap.errors import InputError

Floats = npt.NDArray[np.float64]

MOST_VECTORS = 2.0**53
"""Whole numbers are exact up to here, and no packing has so many vectors."""

COLUMN_NAMES: dict[str, tuple[str, ...]] = {
    "k": ("k", "vectors", "num_vectors", "n_vectors", "count"),
    "d": ("d", "n", "dim", "dimension", "d_model"),
    "epsilon": ("epsilon", "eps", "coherence", "max_cosine", "max_cos"),
}
"""Column -> the headers it may have in a CSV file, case aside; the first that is there counts."""


@dataclasses.dataclass(frozen=True)
class PackingTable:
    """Cells of packings.

    Attributes
    ----------
    k, d, epsilon
        float64 arrays, shape (cells,): number of vectors, dimension, largest |cosine| of the packing.
    source
        where they come from, for messages and records.
    """

    k: Floats
    d: Floats
    epsilon: Floats
    source: str = "table"

    def __post_init__(self) -> None:
        columns = {name: np.asarray(getattr(self, name), dtype=np.float64) for name in ("k", "d", "epsilon")}
        lengths = {column.shape for column in columns.values()}
        if len(lengths) != 1 or any(column.ndim != 1 for column in columns.values()):
            raise InputError(f"{self.source}: k, d and epsilon must be one-dimensional and of one length")
        for name, column in columns.items():
            object.__setattr__(self, name, column)
        self._check("k", lambda x: (x >= 2) & (x <= MOST_VECTORS), "at least 2, and a number of vectors (2^53 at most)")
        self._check("d", lambda x: (x >= 1) & np.isfinite(x), "at least 1")
        self._check("epsilon", lambda x: (x >= 0) & (x <= 1), "between 0 and 1")

    def _check(self, name: str, good: Callable[[Floats], Any], domain: str) -> None:
        column = getattr(self, name)
        bad = np.flatnonzero(~good(column))
        if bad.size:
            row = int(bad[0])
            raise InputError(f"{self.source}: {name} = {column[row]:g} in row {row + 1} of the data must be {domain}")

    def __len__(self) -> int:
        return int(self.k.size)

    @property
    def degenerate(self) -> npt.NDArray[np.bool_]:
        """Cells with k <= d, where an orthonormal set has coherence 0 and epsilon is only an optimiser's residue."""
        return self.k <= self.d

    def take(self, rows: npt.NDArray[Any]) -> PackingTable:
        """The cells that an index or boolean array picks."""
        return PackingTable(self.k[rows], self.d[rows], self.epsilon[rows], self.source)

    def sizes(self) -> list[npt.NDArray[np.intp]]:
        """Rows of each (k, d), in the order in which the sizes first appear.

        Several random starts of one size are no independent evidence: they go together when cells are resampled or
        held out.
        """
        rows: dict[tuple[float, float], list[int]] = {}
        for row, size in enumerate(zip(self.k.tolist(), self.d.tolist(), strict=True)):
            rows.setdefault(size, []).append(row)
        return [np.array(held, dtype=np.intp) for held in rows.values()]

    def ranges(self) -> dict[str, list[float]]:
        """[least, largest] of k, d, k/d and epsilon: the range that a law fitted to these cells interpolates."""
        columns = {"k": self.k, "d": self.d, "k_over_d": self.k / self.d, "epsilon": self.epsilon}
        return (
            {name: [float(column.min()), float(column.max())] for name, column in columns.items()} if len(self) else {}
        )


@dataclasses.dataclass(frozen=True)
class PublishedModel:
    """One row of the published per-model table."""

    model: str
    hub_id: str
    d_model: int
    epsilon: float
    capacity: float | None
    """None where the paper prints "indeterminate"."""
    capacity_text: str
    """As printed, so that its digits can be counted; empty for indeterminate."""

    @property
    def epsilon_null(self) -> float:
        """2/sqrt(d): mean + 2 std of d-dimensional random directions."""
        return 2.0 / math.sqrt(self.d_model)

    @property
    def epsilon_ratio(self) -> float:
        return self.epsilon / self.epsilon_null


def _shipped(name: str) -> list[dict[str, str]]:
    found = get_data("repcap.data", name)  # importlib.resources takes twice as long to import as all laws
    assert found is not None
    return list(csv.DictReader(found.decode().splitlines()))


@cache
def published_models() -> tuple[PublishedModel, ...]:
    """The 45 rows of Table 1 of A. Guha, arXiv 2606.02765 (CC BY 4.0), in its order."""
    return tuple(
        PublishedModel(
            row["model"],
            row["hub_id"],
            int(row["d_model"]),
            float(row["epsilon"]),
            float(row["capacity"]) if row["capacity"] else None,
            row["capacity"],
        )
        for row in _shipped("table1_models.csv")
    )


@cache
def optimized_packing() -> PackingTable:
    """The published optimised packings: 166 cells, six of them with k <= d (A. Guha, MIT licence)."""
    return _from_rows(_shipped("optimized_packing.csv"), "published optimised packings")


@cache
def random_packing() -> PackingTable:
    """The published random packings: 256 cells, the least of 1000 draws in float16 (A. Guha, MIT licence)."""
    return _from_rows(_shipped("random_packing.csv"), "published random packings")


BUILT_IN: dict[str, Callable[[], PackingTable]] = {"optimized": optimized_packing, "random": random_packing}
"""Names that `load_table` takes in place of a path."""


def _headers(given: Iterable[str], source: str) -> dict[str, str]:
    by_name = {header.strip().lower(): header for header in given if header is not None}
    found = {}
    for column, names in COLUMN_NAMES.items():
        header = next((by_name[name] for name in names if name in by_name), None)
        if header is None:
            have = ", ".join(by_name) or "none"
            raise InputError(f"{source}: no column for {column} (one of {', '.join(names)}); the columns are: {have}")
        found[column] = header
    return found


def _from_rows(rows: Sequence[dict[str, Any]], source: str) -> PackingTable:
    if not rows:
        raise InputError(f"{source} holds no rows: give a table with the columns k, d, epsilon")
    headers = _headers(rows[0], source)
    values: dict[str, list[float]] = {column: [] for column in headers}
    for position, row in enumerate(rows, start=1):
        if None in row:  # `100,16,0,35`, say: a decimal comma would be read as epsilon = 0
            raise InputError(f"{source}: row {position} of the data has more fields than the header")
        for column, header in headers.items():
            text = row.get(header)
            try:
                values[column].append(float(text))  # type: ignore[arg-type]
            except (TypeError, ValueError) as error:
                raise InputError(f"{source}: {header} = {text!r} in row {position} of the data is no number") from error
    return PackingTable(np.array(values["k"]), np.array(values["d"]), np.array(values["epsilon"]), source)


def _read_csv(path: Path) -> PackingTable:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            sample = file.read(4096)
            file.seek(0)
            first = sample.partition("\n")[0]
            delimiter = next((mark for mark in ("\t", ";", ",") if mark in first), ",")
            return _from_rows(list(csv.DictReader(file, delimiter=delimiter)), str(path))
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} is no CSV text: {error}; give a table with the columns k, d, epsilon") from error


def from_records(records: Iterable[Mapping[str, Any]], source: str) -> PackingTable:
    """The packings among result records, those with k, d and coherence, by d and k.

    Raises
    ------
    InputError
        if there is none.
    """
    rows = [{name: record.get(name) for name in ("k", "d", "coherence")} for record in records]
    rows = [row for row in rows if None not in row.values()]
    if not rows:
        raise InputError(f"{source} holds no packings: fill it with `repcap sweep` first")
    return _from_rows(sorted(rows, key=lambda row: (row["d"], row["k"])), source)


SUFFIXES = (".csv", ".tsv", ".txt")
"""Of files that are read as CSV, the separator aside."""


def load_table(path: str | os.PathLike[str]) -> PackingTable:
    """Read a table of packings.

    Parameters
    ----------
    path
        a CSV file with columns k, d, epsilon (other usual headers are known, see `COLUMN_NAMES`; comma, semicolon or
        tab), or the name of a shipped table: `optimized`, `random`.

    Raises
    ------
    InputError
        no such file, unknown suffix, missing column, or a value outside its domain; the message names the row.
    """
    if str(path) in BUILT_IN:
        return BUILT_IN[str(path)]()
    file = Path(path)
    if file.suffix.lower() not in SUFFIXES:
        known = ", ".join(SUFFIXES)
        raise InputError(f"cannot read {file}: use a file that ends in {known}, or one of {', '.join(BUILT_IN)}")
    if not file.is_file():
        raise InputError(f"no file {file}: give a CSV with the columns k, d, epsilon, or one of {', '.join(BUILT_IN)}")
    return _read_csv(file)
