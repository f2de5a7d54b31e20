"""Packings as a table, wherever they lie: arrays, a file, a shipped table or a result store."""

from __future__ import annotations

import os
from pathlib import Path

from repcap.jobs.store import Store
from repcap.laws.fitting.data import PackingTable, from_records
from repcap.laws.fitting.fit import TableLike, as_table

STORES = (".sqlite", ".sqlite3", ".db")
"""Suffixes of a result store."""


def packings(data: TableLike) -> PackingTable:
    """What `repcap.laws.fitting.fit.as_table` takes, and a result store: its records of kind `pack`.

    Raises
    ------
    InputError, StoreError
        no such file, no result store, none with packings, or a value outside its domain.
    """
    if isinstance(data, (str, os.PathLike)) and Path(data).suffix.lower() in STORES:
        with Store(data, "read") as store:
            return from_records((result.record for result in store.records("pack")), str(data))
    return as_table(data)
