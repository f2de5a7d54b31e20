"""The SQLite file under a store: whose it is, which schema it has, how it is opened, and its errors in words."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from repcap.errors import StoreError

SCHEMA_VERSION = 1
APPLICATION_ID = 0x52504341
"""`RPCA`: written into the SQLite header, so that another program's database is recognised as such."""

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


class StoreFile:
    """An open store file: a connection whose every error is a StoreError, and transactions."""

    def __init__(self, path: str | os.PathLike[str], mode: Mode) -> None:
        self.path = Path(path)
        self.mode = mode
        self._check_path()
        with self.explained():
            self.db = self._connect()
            try:
                self._prepare()
            except BaseException:
                self.db.close()
                raise

    def _check_path(self) -> None:
        if self.path.is_dir():
            raise StoreError(f"{self.path} is a directory: give the path of a store file")
        if self.path.exists() and not self.path.is_file():
            raise StoreError(f"{self.path} is no regular file: give the path of a store file")
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
        db.text_factory = lambda raw: raw.decode("utf-8", "backslashreplace")  # a damaged file need not hold UTF-8
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

    def pragma(self, name: str) -> Any:
        """The value of one of SQLite's settings."""
        return self.db.execute(f"PRAGMA {name}").fetchone()[0]

    def _prepare(self) -> None:
        tables = self.db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        application, version = self.pragma("application_id"), self.pragma("user_version")
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
        self._write_ahead()
        self.db.execute("PRAGMA synchronous=FULL")
        if not tables:
            self._create()

    def _write_ahead(self) -> None:
        """Turn on the write-ahead log. SQLite does not wait by itself where another process is doing the same."""
        patience = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                self.db.execute("PRAGMA journal_mode=WAL")
            except sqlite3.OperationalError as error:  # noqa: PERF203 - it waits for a disk
                if "locked" not in str(error) or time.monotonic() > patience:
                    raise
                time.sleep(0.02)
            else:
                return

    def _create(self) -> None:
        with self.transaction():
            # Another process may have been faster: the lock is ours only now.
            if self.db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                return
            for statement in _SCHEMA.split(";"):
                self.db.execute(statement)
            self.db.execute(f"PRAGMA application_id={APPLICATION_ID}")
            self.db.execute(f"PRAGMA user_version={SCHEMA_VERSION}")

    @contextmanager
    def explained(self) -> Iterator[None]:
        """SQLite's errors as one line that says what to do."""
        try:
            yield
        except UnicodeDecodeError as error:  # of a message that quotes the file
            raise StoreError(
                f"{self.path} is damaged (text that is no UTF-8): restore a copy, or move it away and run again"
            ) from error
        except sqlite3.Error as error:
            text = str(error)
            if "not a database" in text:
                raise StoreError(f"{self.path} is not a repcap result store: it is no SQLite file") from error
            if "is full" in text:
                raise StoreError(
                    f"{self.path}: the disk is full; free some of it and run again, what was stored is kept"
                ) from error
            if "disk I/O" in text:
                raise StoreError(
                    f"{self.path} cannot be read or written ({text}): check the disk, its quota and the limit on the "
                    "size of files, then run again; what was stored is kept"
                ) from error
            if "readonly" in text or "unable to open" in text:
                raise StoreError(
                    f"{self.path} or its directory may not be written: change the permissions, or use another --store"
                ) from error
            if "malformed" in text:
                raise StoreError(
                    f"{self.path} is damaged ({text}): restore a copy, or move it away and run again"
                ) from error
            if "locked" in text or "busy" in text:
                raise StoreError(
                    f"{self.path} is being written by another process: wait for it, or use another --store"
                ) from error
            raise StoreError(f"{self.path}: {text}") from error

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All that the block writes, or nothing; on the disk when the block has ended."""
        if self.mode == "read":
            raise StoreError(f"{self.path} was opened for reading only")
        with self.explained():
            self.db.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                if self.db.in_transaction:
                    self.db.execute("ROLLBACK")
                raise
            self.db.execute("COMMIT")
