"""What is kept of remote tensors: spans against sets of bytes, files that fill up range by range."""

from __future__ import annotations

import itertools
import math
import pickle
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repcap.errors import RemoteError, SourceError
from repcap.sources.remote.cache import TensorFile, file_name, tensor_header
from repcap.sources.remote.journal import Spans
from repcap.sources.remote.patience import Patience, retry_after
from repcap.sources.remote.ranges import RangesRefused, check_url, version_of
from repcap.sources.remote.transfer import Plan

span = st.tuples(st.integers(0, 60), st.integers(0, 60)).map(sorted).map(tuple)


@given(st.lists(span, max_size=12), span)
def test_spans_are_sets_of_bytes(added: list[tuple[int, int]], asked: tuple[int, int]) -> None:
    spans, wanted = Spans(), set()
    for start, stop in added:
        spans.add(start, stop)
        wanted |= set(range(start, stop))
    held = list(spans)
    assert {byte for start, stop in held for byte in range(start, stop)} == wanted
    assert all(a[1] < b[0] for a, b in itertools.pairwise(held))  # in order, and merged where they touch
    assert spans.total == len(wanted)
    gaps = spans.gaps(*asked)
    assert [byte for start, stop in gaps for byte in range(start, stop)] == sorted(set(range(*asked)) - wanted)
    assert spans.covers(*asked) == (set(range(*asked)) <= wanted)


@given(st.lists(span, min_size=1, max_size=6), st.integers(1, 9), st.integers(1, 30))
def test_chunks_cover_their_spans_once(spans: list[tuple[int, int]], workers: int, size: int) -> None:
    chunks = Plan(workers, size, 2 * size).chunks(spans)
    wanted = [byte for start, stop in spans for byte in range(start, stop)]
    assert [byte for start, stop in chunks for byte in range(start, stop)] == wanted
    assert all(0 < stop - start <= 2 * size for start, stop in chunks)


@given(st.text(max_size=300), st.text(max_size=300))
def test_file_names(one: str, other: str) -> None:
    name = file_name(one)
    assert (name == file_name(other)) == (one == other)
    assert len(name.encode()) <= 255
    assert not set(name) & set('/\\:*?"<>|\0')
    assert name not in (".", "..")


DATA = bytes(range(256)) * 40


class Far:
    """What a remote file is to a `TensorFile`; counts what it sends."""

    def __init__(self, fail_after: int | None = None) -> None:
        self.sent: list[tuple[int, int]] = []
        self.fail_after = fail_after

    def __call__(self, spans, write, commit) -> None:  # type: ignore[no-untyped-def]
        for start, stop in spans:
            for at in range(start, stop, 100):
                if self.fail_after is not None and sum(b - a for a, b in self.sent) >= self.fail_after:
                    raise ConnectionError("cut")
                end = min(at + 100, stop)
                write(at, DATA[at:end])
                commit(at, end)
                self.sent.append((at, end))


def tensor_file(tmp_path: Path, name: str = "w") -> TensorFile:
    header = tensor_header(name, "U8", (len(DATA),), len(DATA), {})
    return TensorFile(tmp_path / "w.safetensors", header, len(DATA))


def content(file: TensorFile) -> bytes:
    return file.where.read_bytes()[file.offset :]


def test_fills_up_and_becomes_a_safetensors_file(tmp_path: Path) -> None:
    from safetensors.numpy import load_file

    file, far = tensor_file(tmp_path), Far()
    file.fill([(100, 200), (150, 400), (5000, 5001)], far)
    assert sum(b - a for a, b in far.sent) == 301
    assert not file.complete
    assert content(file)[100:400] == DATA[100:400]
    again = tensor_file(tmp_path)
    assert again.missing([(0, 500)]) == [(0, 100), (400, 500)]
    again.fill([(0, len(DATA))], far)
    assert sum(b - a for a, b in far.sent) == len(DATA)
    assert again.complete
    assert load_file(again.path)["w"].tobytes() == DATA
    assert {path.suffix for path in tmp_path.iterdir()} - {".lock"} == {".safetensors", ".journal"}
    tensor_file(tmp_path).fill([(0, len(DATA))], Far(fail_after=0))  # nothing is missing, nothing is asked for


def test_what_came_before_a_failure_stays(tmp_path: Path) -> None:
    far = Far(fail_after=1000)
    with pytest.raises(ConnectionError):
        tensor_file(tmp_path).fill([(0, len(DATA))], far)
    assert tensor_file(tmp_path).missing([(0, len(DATA))]) == [(1000, len(DATA))]


@pytest.mark.parametrize(
    "torn",
    [
        *("", "17", "1000 20", "1000 2000 0", "x y z\n", "9 99999999 00000000\n", "-5 7 00000000\n", "600 700\n"),
        *("900 800 00000000\n", f"1 {'9' * 5000} 00000000\n"),
    ],
)
def test_a_torn_journal_never_says_too_much(tmp_path: Path, torn: str) -> None:
    """A last line without its end is one that was being written when the machine stopped."""
    with pytest.raises(ConnectionError):
        tensor_file(tmp_path).fill([(0, len(DATA))], Far(fail_after=500))
    journal = tensor_file(tmp_path).journal
    journal.write_text(journal.read_text() + torn)
    file = tensor_file(tmp_path)
    assert file.missing([(0, len(DATA))]) == [(500, len(DATA))]
    file.fill([(0, len(DATA))], Far())
    assert content(file) == DATA


@pytest.mark.parametrize("damage", ["journal", "part", "header", "length", "final"])
def test_what_does_not_belong_together_is_made_anew(tmp_path: Path, damage: str) -> None:
    file = tensor_file(tmp_path)
    with pytest.raises(ConnectionError):
        file.fill([(0, len(DATA))], Far(fail_after=500))
    if damage in ("journal", "part"):
        (file.journal if damage == "journal" else file.part).unlink()
    elif damage == "header":  # the part of another version of the file
        file = tensor_file(tmp_path, "another")
    elif damage == "length":
        with file.part.open("r+b") as opened:
            opened.truncate(600)
    else:
        file.path.write_bytes(b"nonsense")
    wanted = 500 if damage == "final" else 0  # the part itself is untouched
    file = tensor_file(tmp_path, "another" if damage == "header" else "w")
    assert file.missing([(0, len(DATA))]) == [(wanted, len(DATA))]
    file.fill([(0, len(DATA))], Far())
    assert content(file) == DATA
    assert file.path.exists()


def test_a_whole_file_of_something_else_is_not_read(tmp_path: Path) -> None:
    """Rows are read from the part while it fills up, though a file stands where the whole one will."""
    file = tensor_file(tmp_path)
    other = tensor_header("w", "U8", (2, len(DATA) // 2), len(DATA), {})
    file.path.write_bytes(other + bytes(len(DATA)))
    file.fill([(100, 300)], Far())
    assert content(file)[100:300] == DATA[100:300]
    again = tensor_file(tmp_path)
    assert content(again)[100:300] == DATA[100:300]
    again.fill([(0, len(DATA))], Far())
    assert content(again) == DATA
    assert again.where == again.path


def test_a_journal_line_of_other_bytes(tmp_path: Path) -> None:
    """It is believed only as far as its checksum goes."""
    with pytest.raises(ConnectionError):
        tensor_file(tmp_path).fill([(0, len(DATA))], Far(fail_after=500))
    journal = tensor_file(tmp_path).journal
    journal.write_text(journal.read_text() + "700 900 deadbeef\n")
    file, far = tensor_file(tmp_path), Far()
    file.fill([(600, 800)], far)
    assert content(file)[600:800] == DATA[600:800]
    assert far.sent == [(600, 700), (700, 800)]


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("at", [0, 150, 799])
def test_bytes_that_were_changed_come_again(tmp_path: Path, whole: bool, at: int) -> None:
    """Size and header are as they were. Only the piece that was changed is fetched, and only when it is wanted."""
    first, stop = tensor_file(tmp_path), len(DATA) if whole else 800
    for start in range(0, stop, 100):  # each a piece of its own
        first.fill([(start, min(start + 100, stop))], Far())
    with first.where.open("r+b") as opened:
        opened.seek(first.offset + at)
        opened.write(bytes([DATA[at] ^ 1]))
    again, far = tensor_file(tmp_path), Far()
    assert again.complete is whole
    away = 300  # a piece that is as it was
    again.fill([(away, away + 100)], far)
    assert far.sent == []
    again.fill([(0, 800)], far)
    piece = at // 100 * 100
    assert far.sent == [(piece, piece + 100)]
    assert content(again)[:800] == DATA[:800]
    assert again.where == (again.path if whole else again.part)
    final = tensor_file(tmp_path)
    final.fill([(0, 800)], Far(fail_after=0))  # nothing is asked for any more


def test_changed_bytes_without_a_network(tmp_path: Path) -> None:
    def fetch(spans, write, commit) -> None:  # type: ignore[no-untyped-def]
        raise RemoteError("org/model: the server cannot be reached")

    file = tensor_file(tmp_path)
    file.fill([(0, len(DATA))], Far())
    file.path.write_bytes(file.path.read_bytes()[:-1] + b"?")
    with pytest.raises(RemoteError, match=r"cannot be reached; it has to be fetched again, as .* was changed"):
        tensor_file(tmp_path).fill([(0, len(DATA))], fetch)
    again = tensor_file(tmp_path)
    again.fill([(0, len(DATA))], Far())
    assert content(again) == DATA


def test_a_whole_file_without_its_journal_is_not_believed(tmp_path: Path) -> None:
    file = tensor_file(tmp_path)
    file.fill([(0, len(DATA))], Far())
    file.path.write_bytes(file.path.read_bytes()[: file.offset] + bytes(len(DATA)))
    file.journal.unlink()
    again = tensor_file(tmp_path)
    assert not again.complete
    again.fill([(0, len(DATA))], Far())
    assert content(again) == DATA


def test_a_directory_in_the_way(tmp_path: Path) -> None:
    file = tensor_file(tmp_path)
    file.path.mkdir()
    with pytest.raises(SourceError, match=r"cannot write .*is a directory"):
        file.fill([(0, len(DATA))], Far())


def test_a_full_disk_keeps_what_there_is(tmp_path: Path) -> None:
    import errno

    def fetch(spans, write, commit) -> None:  # type: ignore[no-untyped-def]
        write(0, DATA[:300])
        commit(0, 300)
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(SourceError, match=r"cannot write .*no space left on device; what was fetched is kept"):
        tensor_file(tmp_path).fill([(0, len(DATA))], fetch)
    assert tensor_file(tmp_path).missing([(0, 400)]) == [(300, 400)]


def test_threads_share_a_file(tmp_path: Path) -> None:
    file, far = tensor_file(tmp_path), Far()
    spans = [(start, min(start + 1500, len(DATA))) for start in range(0, len(DATA), 1000)]
    threads = [threading.Thread(target=file.fill, args=([one], far)) for one in spans]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert file.complete
    assert content(file) == DATA
    assert sum(b - a for a, b in far.sent) == len(DATA)  # nothing twice


def test_headers_are_aligned() -> None:
    for name in ("w", "ww", "ünï", "x" * 77):
        header = tensor_header(name, "BF16", (3, 4), 24, {"file": "org/name/f"})
        assert len(header) % 8 == 0
        assert int.from_bytes(header[:8], "little") == len(header) - 8


# Small things of the range reader


@pytest.mark.parametrize(
    ("value", "least", "most"),
    [
        ("7", 7, 7),
        ("", None, None),
        ("soon", None, None),
        ("\xb2", None, None),  # a digit, but no number
        ("9" * 500, math.inf, math.inf),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0, 0),
        ("Mon, 01 Jan 0001 00:00:00 -0000", 0, 0),
    ],
)
def test_retry_after(value: str, least: float | None, most: float | None) -> None:
    found = retry_after({"retry-after": value} if value else {})
    assert found is None if least is None or most is None else found is not None and least <= found <= most


def test_waits_grow_and_stay_bounded() -> None:
    patience = Patience(first_wait=1.0, longest_wait=8.0)
    for failures, longest in ((1, 1.0), (2, 2.0), (3, 4.0), (4, 8.0), (20, 8.0)):
        assert 0.75 * longest <= patience.wait(failures) <= longest


def test_versions() -> None:
    assert version_of('"a"', None, 5) != version_of('"b"', None, 5)
    assert version_of('"a"', "Monday", 5) == version_of('"a"', "Tuesday", 5)  # a file touched, not changed
    assert version_of(None, "Monday", 5) != version_of(None, "Monday", 6)
    assert version_of(None, "Monday", None) is None
    assert version_of(None, None, 5) is None


def test_addresses() -> None:
    for good in ("https://host/x.safetensors", "http://127.0.0.1:1/x", "http://localhost/x", "http://[::1]:2/x"):
        check_url(good)
    for bad, words in (
        ("http://host/x", "plain http"),
        ("https://user:pass@host/x", "no user name or password"),
        ("https:///x", "not an address"),
        ("https://host:port/x", "not an address"),
        ("https://[::1/x", "not an address"),
    ):
        with pytest.raises(RemoteError, match=words) as error:
            check_url(bad)
        assert "pass@" not in str(error.value)


def test_a_refusal_travels_between_processes() -> None:
    refusal = RangesRefused("org/name/file", {"content-length": "2000000", "etag": '"x"'})
    again = pickle.loads(pickle.dumps(refusal))
    assert (str(again), again.size, again.version) == (str(refusal), 2_000_000, refusal.version)
