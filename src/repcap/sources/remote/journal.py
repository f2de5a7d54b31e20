"""Which bytes are safely in a file of the cache, piece by piece, each with a checksum."""

from __future__ import annotations

import bisect
import contextlib
import re
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from repcap.files import write_text

Span = tuple[int, int]
"""Bytes start..stop-1."""

PIECE = 1 << 20
"""No record is longer: so much is read again, once, before any byte of it is believed."""

LINE = re.compile(r"([0-9]{1,18}) ([0-9]{1,18}) ([0-9a-f]{8})")


class Spans:
    """A set of bytes as disjoint spans in order."""

    def __init__(self, spans: Iterable[Span] = ()) -> None:
        self._starts: list[int] = []
        self._stops: list[int] = []
        for start, stop in spans:
            self.add(start, stop)

    def add(self, start: int, stop: int) -> None:
        """Union with start..stop-1. Cost: O(log spans), and the spans that it swallows."""
        if start >= stop:
            return
        first = bisect.bisect_left(self._stops, start)
        last = bisect.bisect_right(self._starts, stop)
        if first < last:
            start, stop = min(start, self._starts[first]), max(stop, self._stops[last - 1])
        self._starts[first:last] = [start]
        self._stops[first:last] = [stop]

    def gaps(self, start: int, stop: int) -> list[Span]:
        """What start..stop-1 lacks, in order."""
        found, at = [], start
        for index in range(bisect.bisect_right(self._stops, start), len(self._starts)):
            if self._starts[index] >= stop:
                break
            if self._starts[index] > at:
                found.append((at, self._starts[index]))
            at = self._stops[index]
        if at < stop:
            found.append((at, stop))
        return found

    def covers(self, start: int, stop: int) -> bool:
        return not self.gaps(start, stop)

    def __iter__(self) -> Iterator[Span]:
        return iter(list(zip(self._starts, self._stops, strict=True)))

    @property
    def total(self) -> int:
        return sum(self._stops) - sum(self._starts)


class Record(NamedTuple):
    """Bytes start..stop-1 were written, and this is their CRC-32."""

    start: int
    stop: int
    crc: int


class Journal:
    """The records of one file of `nbytes` bytes of data, in memory and at `path`, one a line.

    A record that is read back is doubted until its bytes have been looked at: somebody may have written into the file
    since. The lines are appended after their bytes are on the disk, so a journal never says too much, and a last line
    that was torn when the machine stopped is left out.
    """

    def __init__(self, path: Path, nbytes: int) -> None:
        self.path, self.nbytes = path, nbytes
        self._sure: set[Record] = set()
        self.keep([])

    def keep(self, records: Iterable[Record]) -> None:
        """Have these, and no others."""
        self.records = sorted(records)
        self._doubted = [record for record in self.records if record not in self._sure]

    def load(self) -> None:
        """What the file says; nothing where it is not there."""
        found = []
        with contextlib.suppress(OSError):
            for line in self.path.read_text(encoding="ascii", errors="replace").split("\n")[:-1]:
                said = LINE.fullmatch(line)
                if said and 0 < int(said[2]) - int(said[1]) <= PIECE and int(said[2]) <= self.nbytes:
                    found.append(Record(int(said[1]), int(said[2]), int(said[3], 16)))
        self.keep(found)

    def save(self) -> None:
        """Write the file anew."""
        write_text(self.path, "".join(map(_line, self.records)))

    def add(self, written: Iterable[Span], data: BinaryIO, offset: int) -> None:
        """Record spans that are on the disk: `data` is the file, `offset` where its data begin."""
        new = [
            Record(at, stop, crc)
            for start, end in written
            for at in range(start, end, PIECE)
            if (crc := _crc(data, offset, at, stop := min(at + PIECE, end))) is not None
        ]
        with self.path.open("a", encoding="ascii") as lines:
            lines.writelines(map(_line, new))
        self._sure.update(new)
        self.keep([*self.records, *new])

    def doubtful(self, wanted: Iterable[Span]) -> list[Record]:
        """Records that share a byte with `wanted` and have not been looked at. Cost: nothing once all have been."""
        found: dict[Record, None] = {}
        for start, stop in Spans(wanted) if self._doubted else ():
            at = bisect.bisect_left(self._doubted, (start - PIECE,))
            while at < len(self._doubted) and self._doubted[at].start < stop:
                if self._doubted[at].stop > start:
                    found[self._doubted[at]] = None
                at += 1
        return list(found)

    def check(self, doubtful: Iterable[Record], data: BinaryIO, offset: int) -> bool:
        """Look at records; those whose bytes are not what they were are taken out. Returns whether all were right."""
        wrong: set[Record] = set()
        for record in doubtful:
            right = _crc(data, offset, record.start, record.stop) == record.crc
            (self._sure if right else wrong).add(record)
        self.keep(record for record in self.records if record not in wrong)
        return not wrong


def _line(record: Record) -> str:
    return f"{record.start} {record.stop} {record.crc:08x}\n"


def _crc(data: BinaryIO, offset: int, start: int, stop: int) -> int | None:
    """CRC-32 of bytes start..stop-1 of the data; None where the file ends before."""
    data.seek(offset + start)
    body = data.read(stop - start)
    return zlib.crc32(body) if len(body) == stop - start else None
