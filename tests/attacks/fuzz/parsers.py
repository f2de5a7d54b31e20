"""The readers of strangers' files: for each a maker of damaged files, and what reads them as a user would."""

from __future__ import annotations

import contextlib
import io
import json
import random
import sqlite3
import struct
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import mutations
import numpy as np
import torch
from safetensors.torch import save

from repcap.errors import RepcapError
from repcap.jobs.store import Store
from repcap.laws.fitting.data import load_table
from repcap.laws.fitting.fit import fit
from repcap.packing.search.resume import Checkpoint
from repcap.packing.vector_files import open_vectors
from repcap.page.page_rows import to_rows
from repcap.page.records import load_records
from repcap.sources import inspect_source, open_source
from repcap.verbs.survey.model_list import read_list
from repcap.verbs.sweep.study import read_cells

Random = random.Random
Files = dict[str, bytes]
EMBED, HEAD = "model.embed_tokens.weight", "lm_head.weight"


class Parser(NamedTuple):
    """make: damaged files by name. read: what may raise a RepcapError, and nothing else."""

    make: Callable[[Random], Files]
    read: Callable[[Path], object]


def read_source(path: Path) -> None:
    """Everything that a user could ask of a source."""
    found = inspect_source(path, allow_truncated=True)
    json.dumps(found.to_dict())
    ask_all(*(partial(_read_matrix, path, name) for name in ("embedding", "unembedding")))
    ask_all(*(partial(_read_matrix, path, item.name) for item in found.tensors[:6]))


def _read_matrix(path: Path, name: str) -> None:
    with open_source(path, name, allow_truncated=True) as matrix:
        if matrix.count and matrix.count * matrix.dim < 1 << 16:
            matrix.read(0, matrix.count)
            matrix.take([0, matrix.count - 1])
        if matrix.tokens is not None:
            for row in (0, 1, matrix.tokens.count - 1):
                (matrix.tokens.text(row) or "").encode()


def ask_all(*asks: Callable[[], object]) -> None:
    """Every one, whatever the others say; then what the first that is refused says."""
    problems = []
    for ask in asks:
        with _kept(problems):
            ask()
    if problems:
        raise problems[0]


@contextlib.contextmanager
def _kept(problems: list[RepcapError]) -> Iterator[None]:
    try:
        yield
    except RepcapError as error:
        problems.append(error)


# Checkpoints


def _tensors() -> dict[str, torch.Tensor]:
    made = {EMBED: torch.ones(12, 4), HEAD: torch.ones(12, 4).bfloat16(), "model.norm.weight": torch.ones(4)}
    made["up.weight"] = torch.zeros(6, 4).to(torch.float8_e4m3fn)
    made["up.weight_scale_inv"] = torch.ones(1, 1)
    return made


SAFETENSORS = save(_tensors())
LENGTH = int.from_bytes(SAFETENSORS[:8], "little")
HEADER = json.loads(SAFETENSORS[8 : 8 + LENGTH])
CONFIG = {
    "tie_word_embeddings": True, "vocab_size": 12, "model_type": "llama", "text_config": {"vocab_size": 12},
    "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}, "d_in": 4, "architectures": ["A"],
}  # fmt: skip


def safetensors(rng: Random) -> Files:
    body = mutations.json_bytes(HEADER, rng) if rng.random() < 0.8 else SAFETENSORS[8 : 8 + LENGTH]
    length = len(body) if rng.random() < 0.9 else rng.choice(mutations.INTS)
    whole = struct.pack("<Q", length) + body + SAFETENSORS[8 + LENGTH :]
    return {"model.safetensors": mutations.raw(whole, rng) if rng.random() < 0.2 else whole}


def config(rng: Random) -> Files:
    return {"model.safetensors": SAFETENSORS, "config.json": mutations.json_bytes(CONFIG, rng)}


def index(rng: Random) -> Files:
    where = {EMBED: "a.safetensors", HEAD: "b.safetensors", "model.norm.weight": "b.safetensors"}
    made = {"metadata": {"total_size": 1}, "weight_map": where}
    files = {"a.safetensors": save({EMBED: torch.ones(12, 4)}), "b.safetensors": save({HEAD: torch.ones(12, 4)})}
    return {**files, "model.safetensors.index.json": mutations.json_bytes(made, rng)}


def _gguf_text(value: str) -> bytes:
    body = value.encode("utf-8", "surrogatepass")
    return struct.pack("<Q", len(body)) + body


def gguf(rng: Random) -> Files:
    """Fields one after another; one or two of them are changed."""
    fields: list[bytes] = [b"GGUF", struct.pack("<I", 3), struct.pack("<Q", 2), struct.pack("<Q", 5)]
    for key, kind, value in (
        ("general.architecture", 8, _gguf_text("llama")),
        ("llama.vocab_size", 4, struct.pack("<I", 12)),
        ("split.count", 2, struct.pack("<H", 1)),
        ("tokenizer.ggml.model", 8, _gguf_text("gpt2")),
    ):
        fields += [_gguf_text(key), struct.pack("<I", kind), value]
    pieces = [_gguf_text(f"t{place}") for place in range(12)]
    fields += [_gguf_text("tokenizer.ggml.tokens"), struct.pack("<I", 9), struct.pack("<IQ", 8, 12), *pieces]
    for name, at, kind, width in (("token_embd.weight", 0, 0, 32), ("output.weight", 12 * 32 * 4, 8, 32)):
        fields += [_gguf_text(name), struct.pack("<I", 2), struct.pack("<QQ", width, 12)]
        fields += [struct.pack("<I", kind), struct.pack("<Q", at)]
    for _ in range(rng.randint(1, 3)):
        place = rng.randrange(len(fields))
        action = rng.randrange(4)
        if action == 0:
            fields[place] = rng.choice(mutations.INTS).to_bytes(8, "little")[: len(fields[place])]
        elif action == 1:
            del fields[place]
        elif action == 2:
            fields.insert(place, fields[rng.randrange(len(fields))])
        else:
            fields[place] = mutations.raw(fields[place], rng)
    head = b"".join(fields)
    whole = head + bytes(-len(head) % 32) + np.ones(12 * 32, "f4").tobytes() + bytes(12 * 34)
    return {"model.gguf": mutations.raw(whole, rng) if rng.random() < 0.1 else whole}


def _zipped(members: dict[str, bytes], compress: bool = False) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED) as archive:
        for name, body in members.items():
            archive.writestr(name, body)
    return out.getvalue()


def _unzipped(body: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(body)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _saved(value: Any, **options: Any) -> bytes:
    out = io.BytesIO()
    torch.save(value, out, **options)
    return out.getvalue()


PICKLES = [
    _saved({EMBED: torch.ones(12, 4), HEAD: torch.ones(12, 4).half()}),
    _saved({"state_dict": {"W_dec": torch.ones(6, 4), "b_dec": torch.zeros(4)}, "step": 3}),
    _saved({EMBED: torch.ones(12, 4)}, _use_new_zipfile_serialization=False),
]


def torch_file(rng: Random) -> Files:
    body = rng.choice(PICKLES)
    if body[:2] == b"PK" and rng.random() < 0.8:
        members = _unzipped(body)
        name = rng.choice(list(members))
        members[name] = mutations.raw(members[name], rng)
        return {"pytorch_model.bin": _zipped(members, rng.random() < 0.05)}
    return {"pytorch_model.bin": mutations.raw(body, rng)}


def _message(*fields: tuple[int, bytes | int]) -> bytes:
    """A message of protobuf."""
    out = bytearray()
    for number, value in fields:
        kind, rest = (0, value) if isinstance(value, int) else (2, len(value))
        for item in (number << 3 | kind, rest):
            while item > 127:
                out.append(item & 127 | 128)
                item >>= 7
            out.append(item)
        out += value if isinstance(value, bytes) else b""
    return bytes(out)


def onnx(rng: Random) -> Files:
    """A graph with two weights, one of them in a file beside it."""
    kept: list[tuple[int, bytes | int]] = [(1, 12), (1, 4), (2, 1), (8, EMBED.encode()), (9, bytes(12 * 4 * 4))]
    where = [("location", "data"), ("offset", "0"), ("length", "96")]
    pairs = [(13, _message((1, key.encode()), (2, value.encode()))) for key, value in where]
    beside: list[tuple[int, bytes | int]] = [(1, 12), (1, 4), (2, 10), (8, HEAD.encode()), (14, 1), *pairs]
    for tensor in (kept, beside):
        if rng.random() < 0.6:
            place = rng.randrange(len(tensor))
            number, value = tensor[place]
            odd = mutations.raw(value, rng) if isinstance(value, bytes) else rng.choice(mutations.INTS)
            tensor[place] = (rng.choice((number, number, 1, 2, 4, 8, 9, 13)), odd)
    graph = _message((1, b"\x22\x00"), (5, _message(*kept)), (5, _message(*beside)), (2, b"g"))
    body = _message((1, 9), (7, graph))
    return {"model.onnx": mutations.raw(body, rng) if rng.random() < 0.3 else body, "data": bytes(96)}


def arrays(rng: Random) -> Files:
    out = io.BytesIO()
    kind = rng.choice(["f4", "f8", ">f4", "i2", "c8", "?", "U3", "f2"])
    np.save(out, np.asfortranarray(np.ones((5, 4), kind)) if rng.random() < 0.3 else np.ones((5, 4), kind))
    body = out.getvalue()
    if rng.random() < 0.5:  # the header is a Python literal
        literal = mutations.text(body[10:128].decode("latin-1"), rng).ljust(118)[:118]
        body = body[:10] + literal + body[128:]
    body = mutations.raw(body, rng) if rng.random() < 0.5 else body
    if rng.random() < 0.5:
        return {"w.npy": body}
    archive = _zipped({"W_dec.npy": body, "b_dec.npy": body[:200]}, rng.random() < 0.5)
    return {"w.npz": mutations.raw(archive, rng) if rng.random() < 0.5 else archive}


TOKENIZER = {
    "version": "1.0",
    "added_tokens": [{"id": 11, "content": "<s>", "special": True}],
    "normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAA"},
    "decoder": {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "}]},
    "model": {"type": "BPE", "vocab": {"Ġcat": 0, "<0x0A>": 1, "é": 2}, "merges": ["a b"]},
}
UNIGRAM = {**TOKENIZER, "model": {"type": "Unigram", "vocab": [["▁a", -1.0], ["b", -2.0]], "unk_id": 0}}


def tokenizer(rng: Random) -> Files:
    name = rng.choice(["tokenizer.json", "tokenizer.json", "vocab.json", "vocab.txt", "added_tokens.json"])
    files = {"model.safetensors": SAFETENSORS}
    if name == "tokenizer.json":
        return {**files, name: mutations.json_bytes(rng.choice([TOKENIZER, UNIGRAM]), rng)}
    if name == "vocab.txt":
        return {**files, name: mutations.raw("[PAD]\nthe\n##ing\né\n".encode(), rng)}
    vocab = {"Ġcat": 0, "b": 1}
    made = mutations.json_bytes(vocab, rng)
    return (
        {**files, name: made}
        if name == "vocab.json"
        else {**files, "vocab.json": json.dumps(vocab).encode(), name: made}
    )


# Lists, records, stores

MODELS = (
    "models:\n  - org/a\n  - source: org/b\n    name: B\n    matrix: embedding\n    rows: 100\n"
    "    options: {z: 2, seed: 1}\n"
    "defaults: {family: x, options: {z: 2.0}}\n",
    "- &a {source: x, options: {z: 2}}\n- {<<: *a, source: y}\n- z\n",
)
CELLS = (
    "cells: [{k: 8, d: 4}, {k: 9, d: 4, seed: 2}]\noptions: {steps: 10, restarts: 2, method: optimise}\n",
    "grid: {ratio: [1.5, 2], d: [4, 8], seeds: 2}\n",
    "grid: {k: [8, 16], d: [4], seeds: 1}\n",
)
RECORD = {
    "name": "A", "source": "hf://a/b", "matrix": "embedding", "role": "embedding", "dim": 64, "epsilon": 0.2,
    "epsilon_null": 0.25, "epsilon_ratio": 0.8, "class": "high", "z": 2, "count": 100, "mean": 0.1, "std": 0.1,
    "epsilon_se": 0.01, "tied": True, "effective_dim": 3.3, "dropped_count": 0, "dtype": "float32", "revision": None,
    "variants": [{"rows": "x", "epsilon": 0.1, "epsilon_ratio": 1}], "seconds": 1.0, "kind": "measure",
    "histogram": {"edges": [-1, 0, 1], "counts": [3, 4]},
    "estimate": {"rows": 5, "population": 9, "low": 0.1, "high": 0.3},
    "provenance": {"revision": "abc", "options": {"z": 2}},
}  # fmt: skip


def models(rng: Random) -> Files:
    return {"m.yaml": mutations.text(rng.choice(MODELS), rng)}


def cells(rng: Random) -> Files:
    return {"c.yaml": mutations.text(rng.choice(CELLS), rng)}


def records(rng: Random) -> Files:
    return {"r.json": mutations.json_bytes(rng.choice([RECORD, [RECORD, RECORD], {"records": [RECORD]}]), rng)}


def read_records(path: Path) -> None:
    rows, skipped = to_rows(load_records(path / "r.json"))
    json.dumps([row.to_dict() for row in rows], allow_nan=False, ensure_ascii=False).encode()
    "\n".join(skipped).encode()


def csv(rng: Random) -> Files:
    kinds = ["100", "64", "0.5", "1e308", "-1", "0", "nan", "inf", "", "1e-320", "x", "2", "9" * 400, "1,5", "٣"]
    sep = rng.choice(",;\t")
    lines = [
        sep.join(rng.choice([["k", "d", "epsilon"], ["K ", "dim ", "eps"], ["k", "d"], ["k", "k", "d", "coherence"]]))
    ]
    for place in range(rng.randint(0, 12)):
        row = [str(32 << place % 5), str(16 << place % 3), f"{0.1 + place / 20:.2f}"]
        if rng.random() < 0.3:
            row[rng.randrange(3)] = rng.choice(kinds)
        lines.append(sep.join(row))
    body = "\n".join(lines).encode()
    return {"c.csv": mutations.raw(body, rng) if rng.random() < 0.3 else body}


def _database(rng: Random) -> bytes:
    """A store whose rows hold values of any type."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.sqlite"
        with Store(path) as store:
            for place in range(3):
                store.put(f"k{place}", "measure", {**RECORD, "name": f"m{place}"}, {"seed": 1})
            store.put_failure("f", "measure", "l", "E", "r")
        values: list[Any] = [
            None,
            1,
            2.5,
            b"\xff\xfe",
            "x",
            "[1]",
            "{",
            mutations.json_bytes(RECORD, rng).decode("utf-8", "replace"),
            "NaN",
        ]
        with contextlib.closing(sqlite3.connect(path)) as db, contextlib.suppress(sqlite3.Error, UnicodeEncodeError):
            for table, columns in (
                ("results", ("key", "unit", "kind", "record", "provenance", "created")),
                ("failures", ("key", "kind", "label", "error", "reason", "attempts", "first", "last")),
            ):
                if rng.random() < 0.6:
                    value = rng.choice(values)
                    db.execute(f"UPDATE {table} SET {rng.choice(columns)} = ?", (value,))
            if rng.random() < 0.3:
                db.execute("UPDATE results SET record = CAST(X'ff87' AS TEXT)")
            if rng.random() < 0.2:
                db.execute("ALTER TABLE failures RENAME COLUMN attempts TO attemptw")
            db.commit()
            db.execute("PRAGMA journal_mode=DELETE")
        return path.read_bytes()


def store(rng: Random) -> Files:
    body = _database(rng)
    return {"s.sqlite": mutations.raw(body, rng) if rng.random() < 0.4 else body}


def read_store(path: Path) -> None:
    with Store(path / "s.sqlite", mode="read") as opened:
        ask_all(opened.kinds, opened.failures, opened.check, lambda: list(opened.records()), lambda: opened.get("k1"))
    load_records(path / "s.sqlite")


STATE = {"restart": 1, "steps": 5, "seconds": 1.5, "coherence": 0.5, "label": "x", "numbers": {"step": 3, "lr": 0.1}}
IDENTITY = {"k": 6, "d": 3}


def packing(rng: Random) -> Files:
    state = mutations.json_bytes(STATE, rng).decode("utf-8", "backslashreplace")
    metadata = {"search": json.dumps(IDENTITY, sort_keys=True), "state": state, "vectors": "x", "coherence": state}
    tensors = {"best": torch.ones(6, 3), "vectors": torch.ones(6, 3), "descent.x": torch.ones(6, 3)}
    body = save(tensors, metadata)
    return {"v.safetensors": mutations.raw(body, rng) if rng.random() < 0.4 else body}


def read_packing(path: Path) -> None:
    file = path / "v.safetensors"
    ask_all(Checkpoint(file, IDENTITY).load, lambda: open_vectors(file))


PARSERS: dict[str, Parser] = {
    "safetensors": Parser(safetensors, read_source),
    "config": Parser(config, read_source),
    "index": Parser(index, read_source),
    "gguf": Parser(gguf, read_source),
    "torch": Parser(torch_file, read_source),
    "onnx": Parser(onnx, read_source),
    "arrays": Parser(arrays, read_source),
    "tokenizer": Parser(tokenizer, read_source),
    "models": Parser(models, lambda path: read_list(path / "m.yaml")),
    "cells": Parser(cells, lambda path: read_cells(path / "c.yaml")),
    "records": Parser(records, read_records),
    "csv": Parser(csv, lambda path: fit(load_table(path / "c.csv"))),
    "store": Parser(store, read_store),
    "packing": Parser(packing, read_packing),
}
