"""A file that another process cuts short while it is read ends in one line, whatever its format: never in SIGBUS."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from repcap import geometry

ROWS = torch.randn(64, 32, generator=torch.Generator().manual_seed(0))


def onnx_file(path: Path) -> None:
    """An initialiser in a graph, by hand: fields of protobuf."""

    def field(number: int, body: bytes) -> bytes:
        sizes, left = b"", len(body)
        while left > 127:
            sizes, left = sizes + bytes([left & 127 | 128]), left >> 7
        return bytes([number << 3 | 2]) + sizes + bytes([left]) + body

    tensor = b"\x08\x40\x08\x20\x10\x01" + field(8, b"w") + field(9, ROWS.numpy().tobytes())
    path.write_bytes(field(7, field(5, tensor)))


WRITERS: dict[str, Callable[[Path], object]] = {
    "a.safetensors": lambda path: save_file({"w": ROWS}, path),
    "a.npy": lambda path: np.save(path, ROWS.numpy()),
    "turned.npy": lambda path: np.save(path, np.asfortranarray(ROWS.numpy())),
    "a.npz": lambda path: np.savez(path, w=ROWS.numpy()),
    "a.bin": lambda path: torch.save({"w": ROWS}, path),
    "turned.pt": lambda path: torch.save({"w": ROWS.T.contiguous().T}, path),
    "a.onnx": onnx_file,
}


def cut(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    """Once the source is open and before its rows are measured, most of the file goes."""
    measure = geometry.measure_matrix

    def first_cut(*args, **options):
        os.truncate(path, 900)
        return measure(*args, **options)

    monkeypatch.setattr(geometry, "measure_matrix", first_cut)


@pytest.mark.parametrize("name", list(WRITERS))
def test_cut_short(name, tmp_path, repcap, monkeypatch) -> None:
    path = tmp_path / name
    WRITERS[name](path)
    assert repcap("measure", path).code == 0
    cut(monkeypatch, path)
    outcome = repcap("measure", path)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == f"repcap: error: {path} ends at byte 900, in the middle of the matrix: fetch it again\n"


@pytest.mark.parametrize("kind", [None, "Q8_0"])
def test_gguf(kind, gguf_file, repcap, monkeypatch) -> None:
    path = gguf_file({"token_embd.weight": ROWS.numpy() if kind is None else (ROWS.numpy(), kind)})
    cut(monkeypatch, path)
    outcome = repcap("measure", path)
    assert outcome.code == 2
    assert outcome.err == f"repcap: error: {path} ends at byte 900, in the middle of the matrix: fetch it again\n"
