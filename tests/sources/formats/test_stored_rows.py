"""Rows of a file: positioned reads, the fallback without them, several readers at once."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from repcap.errors import SourceError
from repcap.sources.formats.stored_rows import FileRows


@pytest.fixture
def path(tmp_path):
    (tmp_path / "rows.bin").write_bytes(b"head" + bytes(range(240)))
    return tmp_path / "rows.bin"


@pytest.mark.parametrize("positioned", [True, False])
def test_read_and_columns(positioned, path, monkeypatch) -> None:
    if not positioned:
        monkeypatch.delattr(os, "preadv", raising=False)
    expected = np.arange(240, dtype=np.uint8).reshape(40, 6)
    rows = FileRows(path, 4, 6, 40)
    assert np.array_equal(rows.read(0, 40), expected)
    assert np.array_equal(rows.read(39, 40), expected[39:])
    assert np.array_equal(rows.columns(2, 5), expected[:, 2:5])
    assert rows.read(0, 1).flags.writeable
    rows.close()
    with pytest.raises(ValueError, match="closed"):
        rows.read(0, 1)


@pytest.mark.parametrize("positioned", [True, False])
def test_threads_share_one(positioned, path, monkeypatch) -> None:
    if not positioned:
        monkeypatch.delattr(os, "preadv", raising=False)
    rows = FileRows(path, 4, 6, 40)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda place: rows.read(place % 40, place % 40 + 1), range(400)))
    assert all(int(row[0, 0]) == place % 40 * 6 for place, row in enumerate(found))


@pytest.mark.parametrize("positioned", [True, False])
def test_file_that_ends_early(positioned, path, monkeypatch) -> None:
    if not positioned:
        monkeypatch.delattr(os, "preadv", raising=False)
    with pytest.raises(SourceError) as caught:
        FileRows(path, 4, 6, 41).read(38, 41)
    assert str(caught.value) == f"{path} ends at byte 244, in the middle of the matrix: fetch it again"
