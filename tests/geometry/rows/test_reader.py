"""Choosing rows, and reading exactly those."""

from __future__ import annotations

import threading

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from repcap.errors import InputError
from repcap.geometry.rows.reader import RowReader, default_block_rows, select_rows
from repcap.matrix import TensorMatrix


def reader_of(matrix: TensorMatrix, rows: torch.Tensor, block: int) -> RowReader:
    return RowReader(matrix, rows, torch.device("cpu"), torch.float32, block)


@given(
    picks=st.sets(st.integers(0, 99), min_size=1),
    block=st.integers(1, 40),
    contiguous=st.booleans(),
)
def test_reads_the_chosen_rows_and_no_others(picks, block, contiguous):
    stored = torch.arange(300.0).view(100, 3)
    matrix = TensorMatrix(stored)
    matrix.contiguous = contiguous
    rows = torch.tensor(sorted(picks))
    read = list(reader_of(matrix, rows, block).stored())
    assert torch.equal(torch.cat([indices for indices, _ in read]), rows)
    assert torch.equal(torch.cat([found for _, found in read]), stored[rows])
    assert max(len(indices) for indices, _ in read) <= block
    if contiguous:  # no gaps are read
        assert matrix.bytes_read == stored[rows].numel() * 4


@given(exclude=st.sets(st.integers(0, 29)), only=st.sets(st.integers(0, 29)), size=st.none() | st.integers(1, 30))
def test_selection_is_set_arithmetic(exclude, only, size):
    want = (set(only) or set(range(30))) - exclude
    want &= set(range(30 if size is None else size))
    assert select_rows(30, exclude, only, size).tolist() == sorted(want)


@pytest.mark.parametrize("wrong", [30, -1, 2.5, True])
def test_ids_out_of_range_are_refused(wrong):
    for option in ("exclude_ids", "only_ids"):
        with pytest.raises(InputError, match=r"is no row of the matrix; rows are 0..29"):
            select_rows(30, **{option: [3, wrong]})


def test_an_error_while_reading_comes_through_and_leaves_no_thread():
    class Broken(TensorMatrix):
        def read(self, start, stop):
            if start >= 20:
                raise OSError("the disk is gone")
            return super().read(start, stop)

    before = threading.active_count()
    read = []
    with pytest.raises(OSError, match="the disk is gone"):
        read.extend(reader_of(Broken(torch.ones((50, 3))), torch.arange(50), 10).stored())
    assert threading.active_count() == before


def test_one_thread_reads_at_a_time():
    busy = threading.Lock()

    class Single(TensorMatrix):
        def read(self, start, stop):
            assert busy.acquire(blocking=False), "two reads at once"
            try:
                return super().read(start, stop)
            finally:
                busy.release()

    reader = reader_of(Single(torch.ones((400, 3))), torch.arange(400), 10)
    for _ in reader.stored():
        reader.unit(3)


def test_blocks_stay_in_memory_bounds():
    assert default_block_rows(4096) * 4096 * 4 == 64 << 20
    assert 1000 < default_block_rows(8) <= 8192
    assert default_block_rows(10**9) == 1
