"""Files are whole or absent."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from repcap.errors import InputError
from repcap.files import atomic_path, write_json, write_text


def test_writes_and_replaces(tmp_path):
    target = tmp_path / "a.txt"
    write_text(target, "one")
    write_text(target, "två")
    assert target.read_text(encoding="utf-8") == "två"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_an_error_leaves_the_old_file_and_no_other(tmp_path):
    target = tmp_path / "a.txt"
    target.write_text("old")
    with pytest.raises(RuntimeError, match="in the middle"), atomic_path(target) as temporary:
        temporary.write_text("half")
        raise RuntimeError("in the middle")
    assert target.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_is_said_of_the_file(tmp_path):
    target, full = tmp_path / "a.txt", Path("/dev/full")
    with pytest.raises(OSError, match="No space left") as caught, atomic_path(target), full.open("w") as file:
        file.write("x" * 100_000)
    assert caught.value.filename == str(target)
    assert not list(tmp_path.iterdir())


def test_missing_directory_says_what_to_do(tmp_path):
    with pytest.raises(InputError, match="no such file or directory; give a path in a directory that exists"):
        write_text(tmp_path / "no" / "a.txt", "")


def test_mode_is_that_of_an_ordinary_file(tmp_path):
    ordinary = tmp_path / "ordinary"
    ordinary.write_text("")
    write_text(tmp_path / "ours", "")
    assert stat.S_IMODE((tmp_path / "ours").stat().st_mode) == stat.S_IMODE(ordinary.stat().st_mode)


def test_json_round_trip(tmp_path):
    write_json(tmp_path / "a.json", {"å": [1, None]})
    assert json.loads((tmp_path / "a.json").read_text(encoding="utf-8")) == {"å": [1, None]}
