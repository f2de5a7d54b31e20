"""A file that another process cuts short while it is read ends in one line, whatever its format: never in SIGBUS."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from repcap import geometry
from repcap.errors import SourceError
from repcap.sources.opening import open_checkpoint

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


OLD, PACKED = "old.bin", "packed.npz"


def whole(name: str) -> bytes:
    """A pickle of before PyTorch 1.6, or an archive with compressed members."""
    out = io.BytesIO()
    if name == OLD:
        torch.save({"w": ROWS}, out, _use_new_zipfile_serialization=False)
    else:
        np.savez_compressed(out, w=ROWS.numpy())
    return out.getvalue()


@pytest.mark.parametrize("name", [OLD, PACKED])
@pytest.mark.parametrize("share", [0.0, 0.02, 0.1, 0.5, 0.9, 0.999])
def test_what_cannot_be_read_in_parts(name, share, tmp_path, repcap) -> None:
    """Cut at any place: one line that names the file."""
    body = whole(name)
    path = tmp_path / name
    path.write_bytes(body)
    assert repcap("measure", path).code == 0
    path.write_bytes(body[: int(share * len(body))])
    outcome = repcap("measure", path)
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (2, "", 1)
    assert outcome.err.startswith(f"repcap: error: {path} is not a")


@pytest.mark.parametrize("left", [700, 3000])
def test_a_compressed_archive_between_its_directory_and_its_rows(left, tmp_path) -> None:
    path = tmp_path / PACKED
    path.write_bytes(whole(PACKED))
    found = open_checkpoint(path)
    os.truncate(path, left)
    with pytest.raises(SourceError, match=r"packed\.npz: array 'w' cannot be unpacked \(.*\): save it again$"):
        found.open("w")


@pytest.mark.parametrize("name", ["a.safetensors", "a.bin", "a.npz", "turned.npy"])
def test_in_another_process(name, tmp_path) -> None:
    """The very thing: a process that reads, another that cuts; a mapped file would end the first with SIGBUS."""
    path = tmp_path / name
    WRITERS[name](path)
    reader = (
        "import sys\nfrom repcap.cli import run\nfrom repcap import geometry\nmeasure = geometry.measure_matrix\n"
        "def wait(*args, **options):\n    print('open', flush=True)\n    sys.stdin.readline()\n"
        "    return measure(*args, **options)\n"
        f"geometry.measure_matrix = wait\nsys.exit(run(['measure', {str(path)!r}]))"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", reader], **pipes) as process:
        assert process.stdout.readline() == "open\n"
        os.truncate(path, 900)
        out, err = process.communicate("go\n", timeout=60)
    assert (process.returncode, out) == (2, "")
    assert err == f"repcap: error: {path} ends at byte 900, in the middle of the matrix: fetch it again\n"


@pytest.mark.parametrize("kind", [None, "Q8_0"])
def test_gguf(kind, gguf_file, repcap, monkeypatch) -> None:
    path = gguf_file({"token_embd.weight": ROWS.numpy() if kind is None else (ROWS.numpy(), kind)})
    cut(monkeypatch, path)
    outcome = repcap("measure", path)
    assert outcome.code == 2
    assert outcome.err == f"repcap: error: {path} ends at byte 900, in the middle of the matrix: fetch it again\n"
