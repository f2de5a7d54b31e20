"""The result store: one SQLite file that holds every result once, and why the others failed.

Safe against the death of the process at any moment: write-ahead log, ``synchronous=FULL``, one transaction a unit of
work. What `put` has returned for is on the disk. One process writes (the driver of a survey or a sweep); any number
may read at the same time. The file lives on a local disk: SQLite's write-ahead log does not work over NFS.

Tables::

    results   key (primary), unit, kind, record (JSON), provenance (JSON), created (UTC)
    failures  key (primary; the unit), kind, label, error, reason, attempts, first, last (UTC)

A unit of work (one model, one packing cell) may give several results (embedding and unembedding); they share `unit`
and are written in one transaction. Success removes the unit's failure.
"""

from __future__ import annotations

import datetime
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from repcap._version import __version__
from repcap.errors import StoreError
from repcap.jobs.sqlite_file import APPLICATION_ID, SCHEMA_VERSION, Mode, StoreFile
from repcap.jobs.stored import Failure, Stored, canonical_json, unit_key
from repcap.plain_json import parse_json
from repcap.text import legible

__all__ = [
    "APPLICATION_ID",
    "DEFAULT_PATH",
    "SCHEMA_VERSION",
    "Failure",
    "Store",
    "Stored",
    "canonical_json",
    "unit_key",
]

DEFAULT_PATH = "repcap.sqlite"


_RESULT: dict[str, type] = dict.fromkeys(("key", "unit", "kind", "record", "provenance", "created"), str)
_FAILURE: dict[str, type] = {
    **dict.fromkeys(("key", "kind", "label", "error", "reason", "first", "last"), str),
    "attempts": int,
}
"""Columns of the tables and what they hold."""


def _now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")


class Store:
    """Results in one SQLite file.

    path: the file; made if it is missing, unless `mode` is "read".
    mode: "write" (default) or "read": reading works from a read-only directory too.

    Use it as a context manager, in the thread that opened it. Cost: a `put` waits for the disk (a few ms); `has` and
    `get` are index look-ups; `records` streams, one record in memory at a time.

    Raises
    ------
    StoreError
        if the file is missing (mode "read"), is no store of repcap, is damaged, was written by a newer repcap, is
        locked by another writer for more than 30 s, or cannot be written (disk full, no permission).
    """

    def __init__(self, path: str | os.PathLike[str], mode: Mode = "write") -> None:
        self._file = StoreFile(path, mode)
        self._db = self._file.db

    @property
    def path(self) -> Path:
        return self._file.path

    # Writing

    def put(
        self,
        key: str,
        kind: str,
        record: Mapping[str, Any],
        provenance: Mapping[str, Any] | None = None,
        *,
        unit: str | None = None,
        replace: bool = False,
    ) -> bool:
        """Store one result and forget its unit's failure; True if it is new (or was replaced).

        A key that is there already is left as it is, unless `replace`. Numbers must be finite; put None elsewhere.
        """
        result = Stored(key, unit or key, kind, dict(record), dict(provenance or {}))
        return bool(self.put_all([result], replace=replace))

    def put_all(self, results: Sequence[Stored], *, replace: bool = False) -> int:
        """Store the results of one unit in one transaction: all of them or none. Returns how many are new.

        With `replace`, what the unit had before is removed in the same transaction.
        """
        now = _now()
        rows = [
            (
                item.key,
                item.unit,
                item.kind,
                canonical_json(item.record),
                canonical_json({"repcap_version": __version__, **item.provenance}),
                item.created or now,
            )
            for item in results
        ]
        units = sorted({item.unit for item in results})
        insert = "INSERT INTO results VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO NOTHING"
        written = 0
        with self._file.transaction():
            for unit in units if replace else ():
                self._db.execute("DELETE FROM results WHERE unit = ?", (unit,))
            for row in rows:
                written += self._db.execute(insert, row).rowcount
            for unit in units:
                self._db.execute("DELETE FROM failures WHERE key = ?", (unit,))
        return written

    def put_failure(self, key: str, kind: str, label: str, error: str, reason: str) -> None:
        """Note that the unit `key` failed. The next run tries it again; attempts are counted."""
        now = _now()
        line = " ".join(reason.split())
        with self._file.transaction():
            self._db.execute(
                "INSERT INTO failures VALUES (?, ?, ?, ?, ?, 1, ?, ?) ON CONFLICT (key) DO UPDATE SET "
                "label = excluded.label, error = excluded.error, reason = excluded.reason, "
                "attempts = attempts + 1, last = excluded.last",
                (key, kind, legible(label), error, legible(line), now, now),
            )

    def delete(self, keys: Sequence[str]) -> int:
        """Remove results and failures with these full keys; returns how many rows went."""
        gone = 0
        with self._file.transaction():
            for key in keys:
                gone += self._db.execute("DELETE FROM results WHERE key = ?", (key,)).rowcount
                gone += self._db.execute("DELETE FROM failures WHERE key = ?", (key,)).rowcount
        return gone

    # Reading

    def has(self, key: str) -> bool:
        """Whether a result of this key, or of this unit, is stored."""
        with self._file.explained():
            row = self._db.execute("SELECT 1 FROM results WHERE key = ? OR unit = ? LIMIT 1", (key, key)).fetchone()
        return row is not None

    def get(self, key: str) -> Stored:
        """The result with this key.

        Raises
        ------
        StoreError
            if there is none.
        """
        with self._file.explained():
            row = self._db.execute("SELECT * FROM results WHERE key = ?", (key,)).fetchone()
        if row is None:
            raise StoreError(f"{self.path} has no result with key {key}: see repcap results list")
        return self._result(row)

    def unit(self, unit: str) -> list[Stored]:
        """The results of one unit of work, in the order in which they were stored; empty if there are none."""
        with self._file.explained():
            rows = self._db.execute("SELECT * FROM results WHERE unit = ? ORDER BY rowid", (unit,)).fetchall()
        return [self._result(row) for row in rows]

    def find(self, prefix: str) -> list[str]:
        """Full keys of results and failures that begin with `prefix`, sorted."""
        # Not LIKE: its wildcards would have to be escaped.
        query = (
            "SELECT key FROM (SELECT key FROM results UNION SELECT key FROM failures) "
            "WHERE substr(key, 1, ?) = ? ORDER BY key"
        )
        with self._file.explained():
            return [row["key"] for row in self._db.execute(query, (len(prefix), prefix))]

    def records(self, kind: str | None = None) -> Iterator[Stored]:
        """Results of one kind (None: all), in the order in which they were stored."""
        query = "SELECT * FROM results" + ("" if kind is None else " WHERE kind = ?") + " ORDER BY rowid"
        with self._file.explained():
            for row in self._db.execute(query, () if kind is None else (kind,)):
                yield self._result(row)

    def failures(self, kind: str | None = None) -> list[Failure]:
        """Units that failed and have not succeeded since, oldest first."""
        query = "SELECT * FROM failures" + ("" if kind is None else " WHERE kind = ?") + " ORDER BY first, rowid"
        with self._file.explained():
            rows = self._db.execute(query, () if kind is None else (kind,)).fetchall()
        return [Failure(**self._typed(row, _FAILURE)) for row in rows]

    def count(self, kind: str | None = None) -> int:
        """How many results of this kind (None: of any) there are."""
        query = "SELECT count(*) FROM results" + ("" if kind is None else " WHERE kind = ?")
        with self._file.explained():
            return int(self._db.execute(query, () if kind is None else (kind,)).fetchone()[0])

    def kinds(self) -> dict[str, int]:
        """Kind -> number of results."""
        with self._file.explained():
            return dict(self._db.execute("SELECT kind, count(*) FROM results GROUP BY kind ORDER BY kind").fetchall())

    def check(self) -> None:
        """SQLite's own full check of the file, and that every record is JSON. Reads the whole file.

        Raises
        ------
        StoreError
            with what is wrong.
        """
        with self._file.explained():
            lines = [row[0] for row in self._db.execute("PRAGMA integrity_check")]
        if lines != ["ok"]:
            raise StoreError(f"{self.path} is damaged: {'; '.join(' '.join(str(line).split()) for line in lines[:3])}")
        for _ in self.records():
            pass

    def _result(self, row: sqlite3.Row) -> Stored:
        held = self._typed(row, _RESULT)
        try:
            record, provenance = (parse_json(held[name].encode(), finite=True) for name in ("record", "provenance"))
        except ValueError as error:
            raise StoreError(f"{self.path}: the record with key {held['key']} is not JSON: {error}") from error
        if not isinstance(record, dict) or not isinstance(provenance, dict):
            raise StoreError(f"{self.path}: the record with key {held['key']} is no JSON object: delete it")
        return Stored(**{**held, "record": record, "provenance": provenance})

    def _typed(self, row: sqlite3.Row, kinds: Mapping[str, type]) -> dict[str, Any]:
        """The columns of a row. SQLite lets any value stand in any column, and a damaged file has others.

        Raises
        ------
        StoreError
            if one is missing or of another type.
        """
        held = dict(row)
        for name, kind in kinds.items():
            if not isinstance(held.get(name), kind):
                raise StoreError(f"{self.path} is damaged (a row has no {name}): restore a copy, or move it away")
        return {name: held[name] for name in kinds}

    def close(self) -> None:
        """Close the file; SQLite folds its write-ahead log into it."""
        self._db.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
