"""GGUF on the Hub or at an address: the metadata by ranges, then the tensor."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from repcap.errors import RemoteError
from repcap.matrix import Matrix, MatrixInfo
from repcap.sources.checkpoint import Checkpoint, TensorEntry, as_rows
from repcap.sources.formats.gguf_file import SPLIT, GgufCheckpoint, block_sizes, decoder, type_name
from repcap.sources.formats.gguf_header import MAX_HEADER, GgufHeader, IncompleteHeader, parse_gguf
from repcap.sources.remote.hub_repo import HubRepo
from repcap.sources.remote.remote_checkpoint import Reading
from repcap.sources.remote.remote_file import (
    RangedRows,
    RemoteFile,
    RemoteMatrix,
    cached_tensor,
    identity,
    keep_header,
    kept_header,
)

FIRST_BYTES = 1 << 19


def open_address(text: str, file: RemoteFile, name: str, reading: Reading) -> RemoteGguf:
    """One file at a plain address."""
    return RemoteGguf(text, [file], [name], reading)


def open_hub(text: str, repo: HubRepo, folder: str, files: Sequence[str], reading: Reading) -> Checkpoint:
    """A GGUF file in a folder of a repository, with the other parts where it is split."""
    file = folder + files[0]
    match = SPLIT.match(file)
    stem, total = (match.group(1), match.group(3)) if match else ("", "0")
    names = [f"{stem}-{part:05d}-of-{total}.gguf" for part in range(1, int(total) + 1)] if match else [file]
    present = [name for name in names if name in repo.files]
    local = [repo.cached(name) for name in present]
    if local and all(path is not None for path in local) and local[0] is not None:
        found = GgufCheckpoint(text, local[0], reading.allow_truncated)
        found.revision = repo.commit
        return found
    parts = [repo.remote(name, reading.allow_full_download, reading.on_progress) for name in present]
    lacking = [name for name in names if name not in present]
    return RemoteGguf(text, parts, [Path(name).name for name in present], reading, repo, lacking)


class RemoteGguf(GgufCheckpoint):
    """A GGUF file, or its parts, read by ranges.

    The beginning of each file, up to the end of its tensor list, is kept in the cache under the name `header`; the
    vocabulary in it is read from there. Cost: the header (some MB for a large vocabulary), in pieces that double.
    """

    remote = True

    def __init__(
        self,
        spec: str,
        files: list[RemoteFile],
        names: list[str],
        reading: Reading,
        repo: HubRepo | None = None,
        lacking: list[str] | None = None,
    ) -> None:
        # Headers are files of the cache; the parent class knows each part by its header's path.
        self._parts = {file.folder / "header": (file, name) for file, name in zip(files, names, strict=True)}
        self._sizes: dict[Path, int] = {}
        self._lacking = lacking or []
        self.revision = repo.commit if repo else None
        self.warnings = repo.warnings if repo else ()
        super().__init__(spec, files[0].folder / "header", reading.allow_truncated)
        if self._lacking:
            self.complete = False
            self.missing = f"{len(self._lacking)} parts are missing, the first {self._lacking[0]}"
            self.note(self.missing)

    def _header(self, path: Path) -> GgufHeader:
        file, _ = self._parts[path]
        header, size = _read_header(file, path)
        self._sizes[path] = size
        if header.end > size:
            message = f"{file.where} is truncated: {size} bytes of {header.end}"
            if not self._allow_truncated:
                raise RemoteError(
                    f"{message}; use another copy, or pass --allow-truncated to read the tensors that are whole"
                )
            self.note(message)
        if size - header.end > header.alignment:
            self.note(f"{file.where} has {size - header.end} bytes after its last tensor")
        return header

    def _siblings(self) -> list[Path]:
        return [path for path in self._parts if path != self.path]

    def tensors(self) -> dict[str, TensorEntry]:
        return {
            name: TensorEntry(name, tensor.shape, type_name(tensor.kind), self._parts[path][1])
            for path, header in self._headers.items()
            for name, tensor in header.tensors.items()
        }

    def open(self, name: str) -> Matrix:
        entry = self.entry(name)
        path = next(path for path, header in self._headers.items() if name in header.tensors)
        file, tensor = self._parts[path][0], self._headers[path].tensors[name]
        where = f"{file.where}: tensor {name!r}"
        count, dim = as_rows(entry.shape)
        decode = decoder(tensor.kind, entry.dtype, where)
        if tensor.stop > self._sizes[path]:
            raise RemoteError(f"{where} lies beyond the end of the truncated file: use another copy")
        elements, block = block_sizes()[tensor.kind]
        width = dim // elements * block
        # Quantised blocks are kept as they are: bytes, with the type beside them.
        facts = {"ggml_type": type_name(tensor.kind), "logical_shape": f"{count} x {dim}"}
        kept = cached_tensor(file, name, "U8", (count, width), count * width, **facts)
        info = MatrixInfo(source=self.spec, name=name, count=count, dim=dim, dtype=entry.dtype)
        rows = RangedRows(kept, file.fetch(tensor.start), width, count)
        matrix = RemoteMatrix(rows, decode, info, item_bytes=block if elements == 1 else 0)
        matrix.identity = identity(file, tensor.start, tensor.stop, entry.dtype)
        return matrix


def _read_header(file: RemoteFile, path: Path) -> tuple[GgufHeader, int]:
    """(header, file size), from the cache or by ranges; the bytes are then at `path`."""
    kept = kept_header(path.parent)
    if kept is not None and kept[1] is not None:
        return parse_gguf(kept[0], kept[1], file.where, block_sizes()), kept[1]
    body, wanted = file.read(0, 24), FIRST_BYTES  # 24 bytes: the least that a GGUF file has; they tell its size
    size = file.size
    if size is None:
        raise RemoteError(f"{file.where}: the server does not say how long the file is: its answers cannot be trusted")
    while True:
        wanted = min(wanted, size)
        body += file.read(len(body), wanted) if wanted > len(body) else b""
        try:
            header = parse_gguf(body, size, file.where, block_sizes())
            break
        except IncompleteHeader as short:
            if len(body) >= size or short.needed > min(size, MAX_HEADER):
                raise
            wanted = max(2 * len(body), short.needed)
    keep_header(path.parent, body, size, file.ranges.content)
    return header, size
