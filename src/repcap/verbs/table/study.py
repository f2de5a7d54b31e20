"""`table`: for each dimension the best known set of lines and the proven limit, in a file that a run goes on with."""

from __future__ import annotations

import dataclasses
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

from repcap._version import __version__
from repcap.bracket.known import at_epsilon, at_k
from repcap.constructions.certificate import certificate
from repcap.domain import check_eps, check_log_k, scalar_d
from repcap.errors import InputError
from repcap.files import check_directory, held_directory, write_json
from repcap.numerics import format_power
from repcap.options import Option, Refresh, verb
from repcap.result import Result
from repcap.studies.row_files import check_rows_path, read_rows, write_rows
from repcap.text import flattened

MOST = 1_000_000
"""Rows of a table."""
CHUNK, PAUSE = 512, 5.0
"""The file is written after so many new rows, or after so many seconds: no more is lost where the run is killed."""

Row = dict[str, Any]


@dataclasses.dataclass(frozen=True, repr=False)
class LineTable(Result):
    """The best known set and the proven limit, one row a dimension and a value that was asked for."""

    kind = "table"

    asked: str
    """`epsilon` or `k`: what the rows are for, beside d."""
    lines: tuple[Row, ...]
    """By the value and d; the entries of `repcap.bracket.known`: `rows` of the record."""
    computed: int
    """Rows that were not in the file before."""
    path: str | None
    certificates: str | None

    @property
    def title(self) -> str:
        dims = sorted({row["d"] for row in self.lines})
        span = f"d = {dims[0]}" if len(dims) == 1 else f"{len(dims)} dimensions from {dims[0]} to {dims[-1]}"
        asked = sorted({row[self.asked] for row in self.lines})
        more = "" if len(asked) == 1 else f" and {len(asked) - 1} more"
        return f"{span}, {self.asked} = {asked[0]:.6g}{more}"

    @property
    def numbers(self) -> str:
        return f"{len(self.lines)} rows, {self.computed} computed now"

    @property
    def reading(self) -> str:
        ends = [
            (row["explicit"], row["exists"], row["upper" if self.asked == "epsilon" else "lower"]) for row in self.lines
        ]
        exact = sum(end["exact"] for *_, end in ends)
        key, sign = ("log10_k", 1.0) if self.asked == "epsilon" else ("epsilon", -1.0)
        mine = [found["coherence"] if key == "epsilon" else found[key] for found, *_ in ends]
        ahead = sum(sign * (own - other[key]) >= 0.0 for own, (_, other, _) in zip(mine, ends, strict=True))
        said = (
            f"In {ahead} of {len(ends)} rows the explicit set is no worse than what random coding proves; in {exact} "
        )
        said += "no set is better."
        if self.asked == "epsilon":
            widest, row = max(
                (end["log10_k"] - max(a["log10_k"], b["log10_k"]), r) for r, (a, b, end) in enumerate(ends)
            )
            said += f" The limits are furthest apart at d = {self.lines[row]['d']}: a factor of {format_power(widest)}."
        return said

    def values(self) -> dict[str, Any]:
        return {
            "asked": self.asked,
            "computed": self.computed,
            "path": self.path,
            "certificates": self.certificates,
            "rows": list(self.lines),
        }

    def rows(self) -> list[Row]:
        """One flat row a line of the table: the columns of the file."""
        return [flattened(row) for row in self.lines]


Numbers = Annotated[
    float | Iterable[float] | None, Option("The best sets for each of these.", write=lambda value: value, listed=False)
]


@verb
def table(
    d: Annotated[int | Iterable[int], Option("Dimensions.", write=lambda value: value, listed=False)],
    *,
    eps: Numbers = None,
    k: Numbers = None,
    out: Annotated[
        str | os.PathLike[str] | None,
        Option("File of the table, .csv or .parquet; made, or gone on with.", metavar="FILE", silent=True),
    ] = None,
    certificates: Annotated[
        str | os.PathLike[str] | None, Option("Write a certificate of each row here.", metavar="DIR", silent=True)
    ] = None,
    refresh: Refresh = False,
    on_progress: Callable[[int, int], None] | None = None,
) -> LineTable:
    """The best known set of lines in R^d and the proven limit, for every d and every value of `eps` or of `k`.

    d: one or more dimensions. eps: accepted |cosine|, in (0, 1): how many lines? k: numbers of lines: how near to
    orthogonal can they be? Give one of the two. out: the table as a file; rows that it holds, of this version of
    repcap, are not computed again, and rows of it that are not asked for stay. It is written after every 512 new rows
    or 5 seconds, as a whole. certificates: a directory; one JSON file a row, checked by tools/check_certificate.py.

    Time: 1 to 15 ms a row for eps, 20 to 100 ms for k. Memory: the rows, about 1 kB each.

    Raises
    ------
    DomainError
        if a number is outside its domain.
    InputError
        if not one of eps and k is given, `out` is no table of this kind or cannot be written, or more than 10^6 rows
        are asked for.
    MissingExtraError
        for Parquet without pyarrow.
    """
    asked, points = _points(d, eps, k)
    file = None if out is None else _File(out, asked)
    held = {} if file is None else file.rows
    folder = None if certificates is None else _folder(certificates)
    stale = {point for point in points if refresh or held.get(point, {}).get("repcap_version") != __version__}
    todo = [point for point in points if point in stale or not _certified(held[point], folder)]
    written, done, since = 0, 0, time.monotonic()
    try:
        for point in todo:
            row = _known(asked, *point) if point in stale else held[point]
            held[point] = row if folder is None else {**row, "certificate": _certify(row, asked, folder)}
            done += 1
            if file is not None and (done - written >= CHUNK or time.monotonic() - since > PAUSE):
                file.write()
                written, since = done, time.monotonic()
            if on_progress is not None:
                on_progress(done, len(todo))
    finally:
        if file is not None and held and (written < done or file.stamp is None):
            file.write()
    return LineTable(
        asked=asked,
        lines=tuple(held[point] for point in points),
        computed=len(stale),
        path=None if out is None else str(out),
        certificates=None if folder is None else str(folder),
    )


Point = tuple[int, float]
"""(d, what was asked for)."""


def _points(d: Any, eps: Any, k: Any) -> tuple[str, list[Point]]:
    if (eps is None) == (k is None):
        raise InputError("give one of `eps` and `k`: what each row is for, beside `d`")
    dims = sorted({scalar_d(one) for one in _listed(d)})
    given = _listed(eps if k is None else k)
    if k is None:
        values = sorted({float(check_eps(one)) for one in given})
    else:
        for one in given:
            check_log_k(one)
        values = sorted({_plain(one) for one in given})
    if not 1 <= len(dims) * len(values) <= MOST:
        raise InputError(f"{len(dims) * len(values)} rows; give 1 to {MOST}")
    return ("epsilon" if k is None else "k"), [(one, value) for value in values for one in dims]


def _listed(value: Any) -> Iterable[Any]:
    return value if isinstance(value, Iterable) else (value,)


def _plain(k: float) -> float:
    """A whole number as an int where a column of 64 bits holds it."""
    return int(k) if k == int(k) and k < 1 << 63 else float(k)


def _known(asked: str, d: int, value: float) -> Row:
    found = at_epsilon(d, value) if asked == "epsilon" else at_k(d, value)
    return {**found, "repcap_version": __version__}


# Certificates -----------------------------------------------------------------------------------------------------


def _folder(path: str | os.PathLike[str]) -> Path:
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the directory {folder}: {(error.strerror or str(error)).lower()}") from error
    return folder


def _certify(row: Row, asked: str, folder: Path) -> str | None:
    """Name of the certificate of a row, written into the folder; None where the row has no set (one line repeated)."""
    found = row["explicit"]
    if found["coherence"] >= 1.0:
        return None
    if asked == "epsilon":
        eps, limit = row["epsilon"], {"epsilon": row["epsilon"]}
    else:
        eps, limit = max(found["coherence"], 1e-300), {"k": row["k"], "epsilon": row["lower"]["epsilon"]}
    name = f"d{row['d']}-{asked}{row[asked]:.12g}.json"
    write_json(folder / name, certificate(row["d"], eps, limit=limit))
    return name


def _certified(row: Row, folder: Path | None) -> bool:
    name = row.get("certificate")
    return folder is None or row["explicit"]["coherence"] >= 1.0 or (name is not None and (folder / name).is_file())


# The file ---------------------------------------------------------------------------------------------------------


class _File:
    """The rows of the file, by their points; none where it is not there yet."""

    def __init__(self, path: str | os.PathLike[str], asked: str) -> None:
        check_rows_path(path)
        check_directory(path)
        self.path, self.asked = Path(path), asked
        self.rows: dict[Point, Row] = {}
        self.stamp: object = None
        """Of the file as it was last read or written."""
        self._take_in()

    def write(self) -> None:
        """All rows, by what was asked for and d; those too that another run has written meanwhile."""
        with held_directory(self.path):
            self._take_in()
            rows = [flattened(self.rows[point]) for point in sorted(self.rows, key=lambda point: (point[1], point[0]))]
            write_rows(list(dict.fromkeys(name for row in rows for name in row)), rows, self.path)
            self.stamp = self._stamp()

    def _take_in(self) -> None:
        """Rows of the file that we do not have, if it is another one than the last time."""
        if (stamp := self._stamp()) == self.stamp or stamp is None:
            return
        names, rows = read_rows(self.path)
        needed = {"d", self.asked, "explicit.coherence", "explicit.parts", "repcap_version"}
        if not needed <= set(names):
            raise InputError(
                f"{self.path} is no table of d and {self.asked} that repcap table wrote; give another file"
            )
        try:
            there = {(row["d"], row[self.asked]): row for row in map(_nested, rows)}
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            advice = "restore a copy, move it away and run again, or give another file"
            raise InputError(f"{self.path} holds a row that repcap table did not write: {advice}") from error
        self.rows |= {point: row for point, row in there.items() if point not in self.rows}
        self.stamp = stamp

    def _stamp(self) -> object:
        with suppress(OSError):
            found = self.path.stat()
            return found.st_ino, found.st_mtime_ns, found.st_size
        return None


def _nested(flat: Mapping[str, Any]) -> Row:
    row: Row = {}
    for name, value in flat.items():
        first, _, second = name.partition(".")
        if name == "explicit.parts":
            value = json.loads(value)
        elif flat["repcap_version"] == __version__ and not _possible(name, value):
            raise ValueError(name)
        if second:
            row.setdefault(first, {})[second] = value
        elif value is not None or name != "certificate":
            row[name] = value
    return {**row, "repcap_version": str(row["repcap_version"])}


def _possible(name: str, value: Any) -> bool:
    """Whether a column can hold this value: a damaged file has others."""
    if value is None:
        return name in ("explicit.k", "certificate")
    text = name in ("certificate", "repcap_version") or name.endswith(".name")
    return isinstance(value, str) == text and not (text and not value.isprintable())
