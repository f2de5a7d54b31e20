"""What tools/reliability.py disturbs: long commands of repcap, their inputs, and readers of what they leave behind.

The readers are written anew (sqlite3, csv, json, struct): nothing of repcap judges repcap.
"""

from __future__ import annotations

import csv
import hashlib
import json
import shutil
import sqlite3
import struct
import tempfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

TIMES = {"seconds", "search_seconds", "elapsed", "fingerprint"}
"""Keys that differ between two runs of the same work; the fingerprint of a file holds its time."""
Rows = dict[str, str]
"""Key -> content without times."""


@dataclass(frozen=True)
class Program:
    """argv: words after `repcap`, {out} stands for the file. again: words that only the second run has.

    read: rows of the file, or an exception where it is damaged. ending: of the file's name.
    """

    name: str
    argv: tuple[str, ...]
    read: Callable[[Path], Rows]
    ending: str
    again: tuple[str, ...] = ()

    def words(self, out: Path, second: bool = False) -> list[str]:
        return [word.format(out=out) for word in (*self.argv, *(self.again if second else ()))]


def make_inputs(folder: Path, models: int, cells: int) -> None:
    """Checkpoints with seeded rows in safetensors, written by hand, a list of them and a grid."""
    for step in range(models):
        rng = np.random.default_rng(step)
        rows = (rng.normal(size=(300, 32)) + rng.normal(size=32)).astype("<f4").tobytes()
        head = {"model.embed_tokens.weight": {"dtype": "F32", "shape": [300, 32], "data_offsets": [0, len(rows)]}}
        text = json.dumps(head).encode()
        place = folder / "run" / f"checkpoint-{step}"
        place.mkdir(parents=True)
        (place / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + rows)
        config = {"model_type": "llama", "hidden_size": 32, "vocab_size": 300, "tie_word_embeddings": True}
        (place / "config.json").write_text(json.dumps(config))
    (folder / "models.txt").write_text("".join(f"run/checkpoint-{step}\n" for step in range(models)))
    cells_ = [{"k": 12 + cell // 4, "d": 4, "seed": cell % 4} for cell in range(cells)]
    (folder / "cells.yaml").write_text(json.dumps({"cells": cells_, "options": {"steps": 20}}))


def programs(rows: int) -> list[Program]:
    """The commands that work long and go on where they stopped."""
    return [
        Program("survey", ("survey", "models.txt", "--engine", "local:2", "--store", "{out}"), store_rows, ".sqlite"),
        Program("track", ("track", "run", "--store", "{out}"), store_rows, ".sqlite"),
        Program("sweep", ("sweep", "cells.yaml", "--engine", "inline", "--store", "{out}"), store_rows, ".sqlite"),
        Program("table", ("table", "--d", f"2..{10 * rows}", "--eps", "0.3", "--out", "{out}"), csv_rows, ".csv"),
        Program("table, Parquet", ("table", "--d", f"2..{10 * rows}", "--eps", "0.3", "--out", "{out}"), parquet_rows,
                ".parquet"),
        Program("pack", ("pack", "200", "10", "--no-constructions", "--symmetry", "1", "--steps", "300", "--restarts",
                         "1", "--out", "{out}"), vector_rows, ".safetensors", ("--resume",)),
    ]  # fmt: skip


def plain(value: Any) -> Any:
    """A record without what differs from run to run."""
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items() if name not in TIMES}
    return value


def store_rows(path: Path) -> Rows:
    """Results of a store and of its write-ahead log, read from a copy: SQLite would fold the log in."""
    return {key: value for key, (value, _) in store_table(path).items()}


def store_table(path: Path) -> dict[str, tuple[str, str]]:
    """Key -> (content, when it was stored)."""
    if not path.exists():
        return {}
    with tempfile.TemporaryDirectory() as made:
        copy = Path(made) / "copy.sqlite"
        for ending in ("", "-wal"):
            if (file := path.with_name(path.name + ending)).exists():
                shutil.copy(file, f"{copy}{ending}")
        with closing(sqlite3.connect(copy)) as db:
            if not db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                return {}  # made, and stopped before anything was in it
            found = db.execute("PRAGMA integrity_check").fetchall()
            if found != [("ok",)]:
                raise ValueError(f"SQLite finds damage: {found[0]}")
            rows = db.execute("SELECT key, unit, kind, record, provenance, created FROM results").fetchall()
    return {
        key: (json.dumps([unit, kind, plain(json.loads(record)), plain(json.loads(origin))], sort_keys=True), created)
        for key, unit, kind, record, origin, created in rows
    }


def csv_rows(path: Path) -> Rows:
    if not path.exists():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        lines = list(csv.reader(file, strict=True))
    if any(len(line) != len(lines[0]) for line in lines):
        raise ValueError("a row has another number of columns")
    rows = [dict(zip(lines[0], line, strict=True)) for line in lines[1:]]
    return {f"{row['d']} {row['epsilon']}": json.dumps(row, sort_keys=True) for row in rows}


def parquet_rows(path: Path) -> Rows:
    from pyarrow import parquet

    rows = parquet.read_table(path).to_pylist() if path.exists() else []
    return {f"{row['d']} {row['epsilon']}": json.dumps(row, sort_keys=True) for row in rows}


def vector_rows(path: Path) -> Rows:
    """One row: the hash of the vectors in the finished file. The numbers of a checkpoint are read as well."""
    checkpoint_steps(path)
    if not path.exists():
        return {}
    held, body = _safetensors(path)
    (name,) = (name for name in held if name != "__metadata__")
    return {f"{name} {held[name]['shape']}": hashlib.sha256(body).hexdigest()}


def vector_coherence(path: Path) -> float:
    """max |cos| of the vectors in the file, by forming all of them."""
    held, body = _safetensors(path)
    (one,) = (one for name, one in held.items() if name != "__metadata__")
    rows = np.frombuffer(body, {"F32": "<f4", "F64": "<f8"}[one["dtype"]]).reshape(one["shape"]).astype(np.float64)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return float(np.abs(rows @ rows.T - np.eye(len(rows))).max())


def checkpoint_steps(path: Path) -> int | None:
    """Steps of the search whose state lies beside `path`; None where there is no state."""
    checkpoint = path.with_name(f"{path.name}.checkpoint")
    if not checkpoint.exists():
        return None
    held, _ = _safetensors(checkpoint)
    state = json.loads(held["__metadata__"]["state"])
    return int(state["steps"]) + int(state["numbers"].get("step", 0))


def _safetensors(path: Path) -> tuple[dict[str, Any], bytes]:
    """(header, bytes after it); ValueError unless the tensors fill the file to its last byte."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    held = json.loads(data[8 : 8 + length])
    body = data[8 + length :]
    ends = [one["data_offsets"][1] for name, one in held.items() if name != "__metadata__"]
    if max(ends, default=0) != len(body):
        raise ValueError("the file ends elsewhere than its header says")
    return held, body
