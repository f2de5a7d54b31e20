"""Safetensors: one file, wherever it is, by its own header."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from repcap.matrix import Matrix
from repcap.sources.formats.safetensors_header import PREFIX, Header, Span, header_length, parse_header
from repcap.sources.formats.sharded import ShardedCheckpoint, open_shards
from repcap.sources.stored_files import Files, StoredFile


class SafetensorsShard:
    """One safetensors file. Cost of the header: two reads, once."""

    def __init__(self, file: StoredFile, allow_truncated: bool = False) -> None:
        self.file, self.name, self._allow = file, file.name, allow_truncated

    @functools.cached_property
    def header(self) -> Header:
        file = self.file

        def read() -> bytes:
            head = file.read(0, PREFIX)
            return head + file.read(PREFIX, PREFIX + header_length(head, file.size, file.where))

        def parse(body: bytes) -> Header:
            return parse_header(body[PREFIX:], file.size, file.where, self._allow)

        return file.header(read, parse)

    @property
    def spans(self) -> Mapping[str, Span]:
        return self.header.tensors

    @property
    def notes(self) -> tuple[str, ...]:
        if self.header.truncated:
            return (f"{self.name} is truncated: only tensors that are whole can be read",)
        extra = (self.file.size or 0) - self.header.end
        return (f"{self.name} has {extra} bytes after its last tensor",) if extra > 0 else ()

    def open(self, name: str, source: str) -> Matrix:
        return self.file.open_span(self.header.tensors[name], name, source)


def open_files(files: Files) -> ShardedCheckpoint:
    """One file, shards, or an index of them."""
    return open_shards("safetensors", files, lambda file: SafetensorsShard(file, files.allow_truncated))
