"""Row index -> token text, from tokenizer files or GGUF metadata, written as a reader would write it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeGuard

from repcap.errors import SourceError
from repcap.matrix import Tokens
from repcap.plain_json import parse_json

Coding = Literal["bytelevel", "metaspace", "plain"]
"""How a vocabulary spells its pieces: GPT-2's byte alphabet, sentencepiece's `▁` and `<0x0A>`, or as they are."""


def _byte_alphabet() -> dict[str, int]:
    """Character -> byte of GPT-2's reversible alphabet: printable Latin-1 stands for itself, the rest from U+0100."""
    own = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    rest = [byte for byte in range(256) if byte not in set(own)]
    return {chr(byte): byte for byte in own} | {chr(256 + place): byte for place, byte in enumerate(rest)}


MAX_ID = 1 << 23
"""A file that names a larger id is damaged or hostile: the table would fill the memory."""

MAX_BYTES = 1 << 28
"""Of a tokenizer file; the largest known have 35 MB."""

BYTE_OF = _byte_alphabet()
BYTE_PIECE = re.compile(r"^<0x([0-9A-Fa-f]{2})>$")


def decode_piece(piece: str, coding: Coding) -> str:
    r"""Text of one vocabulary piece. Bytes that are no UTF-8 on their own are shown as \xNN.

    >>> decode_piece("Ġcat", "bytelevel"), decode_piece("▁cat", "metaspace"), decode_piece("<0x0A>", "metaspace")
    (' cat', ' cat', '\n')
    """
    if coding == "bytelevel":
        if all(char in BYTE_OF for char in piece):
            return bytes(BYTE_OF[char] for char in piece).decode("utf-8", errors="backslashreplace")
        return piece  # an added token in plain text
    if coding == "metaspace":
        byte = BYTE_PIECE.match(piece)
        if byte:
            return bytes([int(byte.group(1), 16)]).decode("utf-8", errors="backslashreplace")
        return piece.replace("▁", " ")
    return piece


class VocabTokens:
    """A vocabulary in memory: pieces by id, decoded when asked for. Memory: the pieces (a few MB).

    pieces: None where there is no such id. plain: ids whose piece is text as it stands, as added tokens are.
    """

    def __init__(
        self, pieces: Sequence[str | None], coding: Coding, origin: str, plain: frozenset[int] = frozenset()
    ) -> None:
        self._pieces, self.coding, self.origin, self._plain = pieces, coding, origin, plain

    @property
    def count(self) -> int:
        """Number of ids: the largest id plus one. Rows at or beyond it are padding."""
        return len(self._pieces)

    def text(self, index: int) -> str | None:
        """Text of the token `index`, or None where the tokenizer has no such id."""
        if not 0 <= index < len(self._pieces):
            return None
        piece = self._pieces[index]
        if piece is None:
            return None
        text = decode_piece(piece, "plain" if index in self._plain else self.coding)
        return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")  # lone surrogates


class MappedTokens:
    """The tokens of rows that several ids share: row -> the first token of it."""

    def __init__(self, tokens: Tokens, row_of: Sequence[int]) -> None:
        self._tokens, self._first = tokens, dict[int, int]()
        for index, row in enumerate(row_of):
            self._first.setdefault(int(row), index)
        self.count = max(self._first, default=-1) + 1

    def text(self, index: int) -> str | None:
        """Text of the first token of row `index`."""
        token = self._first.get(index)
        return None if token is None else self._tokens.text(token)


def from_vocab(
    vocab: Mapping[str, int], coding: Coding | None, origin: str, added: Mapping[str, int] | None = None
) -> VocabTokens:
    """Tokens from a piece -> id table; the coding is guessed from the pieces where it is None. added: texts."""
    added = added or {}
    largest = max((*vocab.values(), *added.values()), default=-1)
    pieces: list[str | None] = [None] * (largest + 1)
    for table in (vocab, added):
        for piece, index in table.items():
            pieces[index] = piece
    coding = coding or guess_coding(vocab)
    # The pieces of sentencepiece keep their marks where they are added, too: `▁▁` is two spaces.
    plain = frozenset(added.values()) if coding == "bytelevel" else frozenset[int]()
    return VocabTokens(pieces, coding, origin, plain)


def guess_coding(pieces: Iterable[str]) -> Coding:
    """The coding that the marks for a leading space betray."""
    marks = {"Ġ": 0, "▁": 0}
    for piece in pieces:
        if piece[:1] in marks:
            marks[piece[:1]] += 1
    if not any(marks.values()):
        return "plain"
    return "bytelevel" if marks["Ġ"] >= marks["▁"] else "metaspace"


def _coding_of(decoder: Any) -> Coding | None:
    """The coding that a tokenizer's decoder undoes, from its own description."""
    found: set[str] = set()
    left = [decoder]
    while left:
        part = left.pop()
        if isinstance(part, dict):
            left += part.values()
        elif isinstance(part, list):
            left += part
        elif isinstance(part, str):
            found.add(part)
    if "ByteLevel" in found:
        return "bytelevel"
    return "metaspace" if "Metaspace" in found or any("▁" in part for part in found) else None


def _is_table(value: Any) -> TypeGuard[dict[str, int]]:
    """Whether it is piece -> id, as far as it will be used."""
    return isinstance(value, dict) and all(type(index) is int and 0 <= index <= MAX_ID for index in value.values())


def _read(path: Path, what: str) -> Any:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ValueError(f"{path.stat().st_size} bytes")
        return parse_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise SourceError(f"{path} is no readable {what} ({error})") from error


def load_tokenizer_json(path: Path) -> VocabTokens:
    """Tokens from a `tokenizer.json`: its vocabulary and its added tokens. No tokenizer is built.

    Raises
    ------
    SourceError
        if it holds no vocabulary.
    """
    found = _read(path, "tokenizer")
    model = found.get("model") if isinstance(found, dict) else None
    vocab = model.get("vocab") if isinstance(model, dict) else None
    if isinstance(vocab, list):  # Unigram: [piece, score], the id is the place
        pieces = [item[0] for item in vocab if isinstance(item, list) and item and isinstance(item[0], str)]
        vocab = {piece: index for index, piece in enumerate(pieces)} if len(pieces) == len(vocab) else None
    if not _is_table(vocab):
        raise SourceError(f"{path} is no readable tokenizer (no vocabulary of piece -> id)")
    items = found.get("added_tokens") or []
    items = items if isinstance(items, list) else [items]
    named = [(item.get("content"), item.get("id")) for item in items if isinstance(item, dict)]
    added: Any = {content: index for content, index in named if isinstance(content, str)}
    told = len(named) == len(items) and all(isinstance(content, str) for content, _ in named)
    if not told or not _is_table(added):
        raise SourceError(f"{path} is no readable tokenizer (added_tokens is no list of content and id)")
    return from_vocab(vocab, _coding_of(found.get("decoder")), path.name, added)


def load_vocab_json(path: Path) -> VocabTokens:
    """Tokens from GPT-2's `vocab.json`, piece -> id, with `added_tokens.json` where it lies beside."""
    vocab = _read(path, "vocabulary")
    beside = path.with_name("added_tokens.json")
    added = _read(beside, "vocabulary") if beside.is_file() else {}
    for table, where in ((vocab, path), (added, beside)):
        if not _is_table(table):
            raise SourceError(f"{where} is no readable vocabulary (expected piece -> id)")
    return from_vocab(vocab, None, path.name, added)


def load_vocab_txt(path: Path) -> VocabTokens:
    """Tokens from BERT's `vocab.txt`, one piece a line."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ValueError(f"{path.stat().st_size} bytes")
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, ValueError) as error:
        raise SourceError(f"{path} is no readable vocabulary ({error})") from error
    return VocabTokens(lines[:-1] if lines and not lines[-1] else lines, "plain", path.name)


LOADERS = (
    ("tokenizer.json", load_tokenizer_json),
    ("vocab.json", load_vocab_json),
    ("vocab.txt", load_vocab_txt),
)


def find_tokens(folder: Path) -> tuple[VocabTokens | None, tuple[str, ...]]:
    """The tokenizer in a directory, and a warning for each tokenizer file that could not be read."""
    warnings: list[str] = []
    for name, load in LOADERS:
        path = folder / name
        if path.is_file():
            try:
                return load(path), tuple(warnings)
            except SourceError as error:
                warnings.append(f"no token texts: {error}")
    return None, tuple(warnings)
