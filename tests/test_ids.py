"""Lists of row numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repcap.errors import InputError
from repcap.options import parse_ids


@given(st.sets(st.integers(0, 10_000), max_size=30))
def test_round_trip(ids):
    assert parse_ids(",".join(map(str, ids))) == tuple(sorted(ids))


def test_ranges_and_files(tmp_path):
    path = tmp_path / "ids.txt"
    path.write_text("7\n1-3, 2\n")
    assert parse_ids(f"@{path}") == (1, 2, 3, 7)
    assert parse_ids("") == ()


@pytest.mark.parametrize("text", ["-1", "1-", "a", "1.5", "3-1", "0-99999999999", "²"])
def test_bad(text):
    with pytest.raises(InputError, match="is no"):
        parse_ids(text)


def test_missing_file(tmp_path):
    with pytest.raises(InputError, match=r"cannot read the row numbers in .*: no such file"):
        parse_ids(f"@{tmp_path / 'none'}")
