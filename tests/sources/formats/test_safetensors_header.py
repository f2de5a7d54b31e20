"""The header parser on bytes: every lie gets one line, whatever the bytes are."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repcap.errors import RepcapError, SourceError
from repcap.sources.formats.safetensors_header import MAX_HEADER, header_length, parse_header

GOOD = {"w": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}


def parse(header: object, size: int | None = None, allow: bool = False):
    body = header if isinstance(header, bytes) else json.dumps(header).encode()
    return parse_header(body, size, "f", allow)


@pytest.mark.parametrize("length", [60, 316, 572])
def test_a_header_length_that_begins_like_a_web_page(length) -> None:
    """60 is the code of `<`."""
    body = json.dumps(GOOD, separators=(",", ":")).encode().ljust(length)
    head = len(body).to_bytes(8, "little") + body
    assert head[:1] == b"<"
    assert header_length(head, len(head) + 24, "f") == len(body)


def test_good_header() -> None:
    body = json.dumps({"__metadata__": {"format": "pt"}, **GOOD}).encode()
    found = parse_header(body, 8 + len(body) + 24, "f")
    span = found.tensors["w"]
    assert (span.shape, span.dtype) == ((2, 3), "float32")
    assert (span.start, span.stop) == (8 + len(body), 8 + len(body) + 24)
    assert (found.metadata, found.truncated, found.end) == ({"format": "pt"}, False, span.stop)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 23]}, "contradicts itself"),
        ({"dtype": "F16", "shape": [2, 3], "data_offsets": [0, 24]}, "contradicts itself"),
        ({"dtype": "F32", "shape": [2**63, 2**63], "data_offsets": [0, 24]}, "contradicts itself"),
        ({"dtype": "F32", "shape": [2, 3], "data_offsets": [24, 0]}, "ends before it starts"),
        ({"dtype": "F32", "shape": [2, -3], "data_offsets": [0, 24]}, "damaged header entry"),
        ({"dtype": "F32", "shape": [2, True], "data_offsets": [0, 24]}, "damaged header entry"),
        ({"dtype": "F32", "shape": [2.0, 3], "data_offsets": [0, 24]}, "damaged header entry"),
        ({"dtype": "F32", "shape": "2x3", "data_offsets": [0, 24]}, "damaged header entry"),
        ({"dtype": 3, "shape": [2, 3], "data_offsets": [0, 24]}, "damaged header entry"),
        ({"dtype": "F32", "shape": [2, 3], "data_offsets": [0]}, "damaged header entry"),
        ({"dtype": "F32", "shape": [2, 3]}, "damaged header entry"),
        ([], "no object"),
        (None, "no object"),
    ],
)
def test_bad_entries(entry, words) -> None:
    with pytest.raises(SourceError, match=words):
        parse({"w": entry})


def test_overlap() -> None:
    header = {
        "a": {"dtype": "U8", "shape": [10], "data_offsets": [0, 10]},
        "b": {"dtype": "U8", "shape": [10], "data_offsets": [9, 19]},
    }
    with pytest.raises(SourceError, match="tensors 'a' and 'b' overlap"):
        parse(header)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"3",
        b"{",
        b"null",
        b"\xff" * 8,
        b"[" * 100_000,
        b'{"w":' * 50_000,
        b'{"a":{},"a":{}}',
        b'{"__metadata__": 3}',
    ],
)
def test_bad_json(body) -> None:
    with pytest.raises(SourceError, match="damaged header"):
        parse(body)


def test_huge_integers_do_not_overflow() -> None:
    with pytest.raises(SourceError, match="damaged header"):
        parse(b'{"w":{"dtype":"F32","shape":[' + b"9" * 5000 + b'],"data_offsets":[0,4]}}')


def test_truncated_is_said_or_allowed() -> None:
    with pytest.raises(
        SourceError, match=r"f is truncated: 90 bytes of \d+; fetch it again, or pass --allow-truncated"
    ):
        parse(GOOD, 90)
    assert parse(GOOD, 90, allow=True).truncated


@pytest.mark.parametrize(
    ("head", "size", "words"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid", 130, "is a git-lfs pointer, not the file itself"),
        (b"<!DOCTYPE html>", 5000, "is a web page"),
        (b"", 0, "only 0 bytes long"),
        (b"\x02\0\0", 3, "only 3 bytes long"),
        ((1).to_bytes(8, "little"), 100, "gives? a header of 1 bytes"),
        ((MAX_HEADER + 1).to_bytes(8, "little"), None, "a header of 100000001 bytes"),
        ((2**64 - 1).to_bytes(8, "little"), 100, "a header of 18446744073709551615 bytes"),
        ((1000).to_bytes(8, "little"), 100, "truncated inside its header: 100 bytes, the header alone needs 1008"),
    ],
)
def test_bad_beginnings(head, size, words) -> None:
    with pytest.raises(SourceError, match=words):
        header_length(head, size, "f")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["dtype", "shape", "data_offsets", "w"]), inner, max_size=3)
    ),
    max_leaves=12,
)


@settings(max_examples=300)
@given(
    body=st.binary(max_size=200) | json_values.map(lambda value: json.dumps(value).encode()),
    size=st.none() | st.integers(0, 300),
)
def test_any_bytes_give_a_header_or_an_error_of_ours(body, size) -> None:
    with contextlib.suppress(RepcapError):
        found = parse_header(body, size, "f")
        assert all(8 + len(body) <= span.start <= span.stop for span in found.tensors.values())
        assert size is None or found.end <= size


@settings(max_examples=200)
@given(head=st.binary(max_size=24), size=st.none() | st.integers(0, 2**40))
def test_any_beginning(head, size) -> None:
    with contextlib.suppress(RepcapError):
        length = header_length(head, size, "f")
        assert 2 <= length <= MAX_HEADER
        assert size is None or 8 + length <= size
