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

import dataclasses
import datetime
import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from repcap._version import __version__
from repcap.errors import InputError, StoreError

SCHEMA_VERSION = 1
APPLICATION_ID = 0x52504341
"""`RPCA`: written into the SQLite header, so that another program's database is recognised as such."""

DEFAULT_PATH = "repcap.sqlite"
BUSY_SECONDS = 30.0
"""How long a writer waits for another writer's transaction."""

Mode = Literal["write", "read"]

_SCHEMA = """
CREATE TABLE results (
    key TEXT PRIMARY KEY NOT NULL,
    unit TEXT NOT NULL,
    kind TEXT NOT NULL,
    record TEXT NOT NULL,
    provenance TEXT NOT NULL,
    created TEXT NOT NULL
);
CREATE INDEX results_unit ON results (unit);
CREATE INDEX results_kind ON results (kind);
CREATE TABLE failures (
    key TEXT PRIMARY KEY NOT NULL,
    kind TEXT NOT NULL,
    label TEXT NOT NULL,
    error TEXT NOT NULL,
    reason TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    first TEXT NOT NULL,
    last TEXT NOT NULL
);
"""


@dataclasses.dataclass(frozen=True)
class Result:
    """One row of a store. `repcap.studies.record` says what the keys of `record` and `provenance` mean."""

    key: str
    unit: str
    kind: str
    record: dict[str, Any]
    provenance: dict[str, Any]
    created: str = ""
    """UTC, ISO 8601; set by the store."""

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


@dataclasses.dataclass(frozen=True)
class Failure:
    """A unit that gave no result, with the reason of its last attempt."""

    key: str
    kind: str
    label: str
    error: str
    """Class of the error, or `WorkerLost`."""
    reason: str
    """One line."""
    attempts: int
    """Runs that tried this unit and failed."""
    first: str
    last: str

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def canonical_json(value: Any) -> str:
    """JSON that is the same text for equal values: sorted keys, no spaces, strict numbers.

    Raises
    ------
    InputError
        if `value` holds something that JSON cannot say (NaN, infinity, an object).
    """
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"not storable as JSON: {error}") from error


def unit_key(kind: str, identity: Any, options: Mapping[str, Any]) -> str:
    """Name of a unit of work: 128 bits of SHA-256 over (kind, identity of the source, options), as 32 hex digits.

    The order of options does not matter. Both must be JSON values.

    >>> unit_key("pack", {"k": 6, "d": 3}, {"steps": 10}) == unit_key("pack", {"d": 3, "k": 6}, {"steps": 10})
    True
    """
    text = canonical_json([kind, identity, dict(options)])
    return hashlib.sha256(text.encode()).hexdigest()[:32]


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
        self.path = Path(path)
        self.mode = mode
        self._check_path()
        with self._explained():
            self._db = self._connect()
            try:
                self._prepare()
            except BaseException:
                self._db.close()
                raise

    # Opening

    def _check_path(self) -> None:
        if self.path.is_dir():
            raise StoreError(f"{self.path} is a directory: give the path of a store file")
        if self.mode == "read" and not self.path.exists():
            raise StoreError(f"no result store at {self.path}: give the path of one (--store)")
        if not self.path.parent.exists():
            raise StoreError(f"cannot make {self.path}: there is no directory {self.path.parent}")

    def _connect(self) -> sqlite3.Connection:
        if self.mode == "write":
            db = sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None)
        else:
            db = self._connect_read_only()
        db.row_factory = sqlite3.Row
        return db

    def _connect_read_only(self) -> sqlite3.Connection:
        address = self.path.resolve().as_uri()
        db = sqlite3.connect(f"{address}?mode=ro", uri=True, timeout=BUSY_SECONDS, isolation_level=None)
        try:
            db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.OperationalError as error:
            db.close()
            log = self.path.with_name(f"{self.path.name}-wal")
            if ("unable to open" not in str(error) and "readonly" not in str(error)) or log.exists():
                raise
            # A store in a directory that we may not write, with nothing in its write-ahead log.
            db = sqlite3.connect(f"{address}?immutable=1", uri=True, isolation_level=None)
        return db

    def _pragma(self, name: str) -> Any:
        return self._db.execute(f"PRAGMA {name}").fetchone()[0]

    def _prepare(self) -> None:
        tables = self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        application, version = self._pragma("application_id"), self._pragma("user_version")
        if (tables or application) and application != APPLICATION_ID:
            raise StoreError(f"{self.path} is an SQLite database of another program, not a repcap result store")
        if version > SCHEMA_VERSION:
            raise StoreError(
                f"{self.path} has store schema {version}, this repcap knows {SCHEMA_VERSION}: upgrade repcap"
            )
        if self.mode == "read":
            if not tables:
                raise StoreError(f"{self.path} is empty: no survey or sweep has been stored there")
            return
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=FULL")
        if not tables:
            self._create()

    def _create(self) -> None:
        with self._transaction():
            # Another process may have been faster: the lock is ours only now.
            if self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                return
            for statement in _SCHEMA.split(";"):
                self._db.execute(statement)
            self._db.execute(f"PRAGMA application_id={APPLICATION_ID}")
            self._db.execute(f"PRAGMA user_version={SCHEMA_VERSION}")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """SQLite's errors as one line that says what to do."""
        try:
            yield
        except sqlite3.Error as error:
            text = str(error)
            if "not a database" in text:
                raise StoreError(f"{self.path} is not a repcap result store: it is no SQLite file") from error
            if "malformed" in text or "disk I/O" in text:
                raise StoreError(
                    f"{self.path} is damaged ({text}): restore a copy, or move it away and run again"
                ) from error
            if "locked" in text or "busy" in text:
                raise StoreError(
                    f"{self.path} is being written by another process: wait for it, or use another --store"
                ) from error
            raise StoreError(f"{self.path}: {text}") from error

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        if self.mode == "read":
            raise StoreError(f"{self.path} was opened for reading only")
        with self._explained():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

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
        result = Result(key, unit or key, kind, dict(record), dict(provenance or {}))
        return bool(self.put_all([result], replace=replace))

    def put_all(self, results: Sequence[Result], *, replace: bool = False) -> int:
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
        written = 0
        with self._transaction():
            for unit in units if replace else ():
                self._db.execute("DELETE FROM results WHERE unit = ?", (unit,))
            for row in rows:
                written += self._db.execute("INSERT OR IGNORE INTO results VALUES (?, ?, ?, ?, ?, ?)", row).rowcount
            for unit in units:
                self._db.execute("DELETE FROM failures WHERE key = ?", (unit,))
        return written

    def put_failure(self, key: str, kind: str, label: str, error: str, reason: str) -> None:
        """Note that the unit `key` failed. The next run tries it again; attempts are counted."""
        now = _now()
        line = " ".join(reason.split())
        with self._transaction():
            self._db.execute(
                "INSERT INTO failures VALUES (?, ?, ?, ?, ?, 1, ?, ?) ON CONFLICT (key) DO UPDATE SET "
                "label = excluded.label, error = excluded.error, reason = excluded.reason, "
                "attempts = attempts + 1, last = excluded.last",
                (key, kind, label, error, line, now, now),
            )

    def delete(self, keys: Sequence[str]) -> int:
        """Remove results and failures with these full keys; returns how many rows went."""
        gone = 0
        with self._transaction():
            for key in keys:
                gone += self._db.execute("DELETE FROM results WHERE key = ?", (key,)).rowcount
                gone += self._db.execute("DELETE FROM failures WHERE key = ?", (key,)).rowcount
        return gone

    # Reading

    def has(self, key: str) -> bool:
        """Whether a result of this key, or of this unit, is stored."""
        with self._explained():
            row = self._db.execute("SELECT 1 FROM results WHERE key = ? OR unit = ? LIMIT 1", (key, key)).fetchone()
        return row is not None

    def get(self, key: str) -> Result:
        """The result with this key.

        Raises
        ------
        StoreError
            if there is none.
        """
        with self._explained():
            row = self._db.execute("SELECT * FROM results WHERE key = ?", (key,)).fetchone()
        if row is None:
            raise StoreError(f"{self.path} has no result with key {key}: see repcap results list")
        return self._result(row)

    def find(self, prefix: str) -> list[str]:
        """Full keys of results and failures that begin with `prefix`, sorted."""
        # Not LIKE: its wildcards would have to be escaped.
        query = (
            "SELECT key FROM (SELECT key FROM results UNION SELECT key FROM failures) "
            "WHERE substr(key, 1, ?) = ? ORDER BY key"
        )
        with self._explained():
            return [row["key"] for row in self._db.execute(query, (len(prefix), prefix))]

    def records(self, kind: str | None = None) -> Iterator[Result]:
        """Results of one kind (None: all), in the order in which they were stored."""
        query = "SELECT * FROM results" + ("" if kind is None else " WHERE kind = ?") + " ORDER BY rowid"
        with self._explained():
            for row in self._db.execute(query, () if kind is None else (kind,)):
                yield self._result(row)

    def failures(self, kind: str | None = None) -> list[Failure]:
        """Units that failed and have not succeeded since, oldest first."""
        query = "SELECT * FROM failures" + ("" if kind is None else " WHERE kind = ?") + " ORDER BY first, rowid"
        with self._explained():
            return [Failure(**row) for row in self._db.execute(query, () if kind is None else (kind,))]

    def count(self, kind: str | None = None) -> int:
        """How many results of this kind (None: of any) there are."""
        query = "SELECT count(*) FROM results" + ("" if kind is None else " WHERE kind = ?")
        with self._explained():
            return int(self._db.execute(query, () if kind is None else (kind,)).fetchone()[0])

    def kinds(self) -> dict[str, int]:
        """Kind -> number of results."""
        with self._explained():
            return dict(self._db.execute("SELECT kind, count(*) FROM results GROUP BY kind ORDER BY kind").fetchall())

    def check(self) -> None:
        """SQLite's own full check of the file, and that every record is JSON. Reads the whole file.

        Raises
        ------
        StoreError
            with what is wrong.
        """
        with self._explained():
            lines = [row[0] for row in self._db.execute("PRAGMA integrity_check")]
        if lines != ["ok"]:
            raise StoreError(f"{self.path} is damaged: {'; '.join(lines[:3])}")
        for _ in self.records():
            pass

    def _result(self, row: sqlite3.Row) -> Result:
        try:
            record, provenance = json.loads(row["record"]), json.loads(row["provenance"])
        except ValueError as error:
            raise StoreError(f"{self.path}: the record with key {row['key']} is not JSON: {error}") from error
        return Result(row["key"], row["unit"], row["kind"], record, provenance, row["created"])

    def close(self) -> None:
        """Close the file; SQLite folds its write-ahead log into it."""
        self._db.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
