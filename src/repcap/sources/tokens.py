"""Row index -> token text, from tokenizer files or GGUF metadata, written as a reader would write it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from tokenizers import Tokenizer

from repcap.errors import SourceError
from repcap.sources.plain_json import parse_json

Coding = Literal["bytelevel", "metaspace", "plain"]
"""How a vocabulary spells its pieces: GPT-2's byte alphabet, sentencepiece's `▁` and `<0x0A>`, or as they are."""


def _byte_alphabet() -> dict[str, int]:
    """Character -> byte of GPT-2's reversible alphabet: printable Latin-1 stands for itself, the rest from U+0100."""
    own = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    rest = [byte for byte in range(256) if byte not in set(own)]
    return {chr(byte): byte for byte in own} | {chr(256 + place): byte for place, byte in enumerate(rest)}


MAX_ID = 1 << 23
"""A file that names a larger id is damaged or hostile: the table would fill the memory."""

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
    """A vocabulary in memory: pieces by id, decoded when asked for. Memory: the pieces (a few MB)."""

    def __init__(self, pieces: Sequence[str | None], coding: Coding, origin: str) -> None:
        self._pieces, self.coding, self.origin = pieces, coding, origin

    @property
    def count(self) -> int:
        """Number of ids: the largest id plus one. Rows at or beyond it are padding."""
        return len(self._pieces)

    def text(self, index: int) -> str | None:
        """Text of the token `index`, or None where the tokenizer has no such id."""
        if not 0 <= index < len(self._pieces):
            return None
        piece = self._pieces[index]
        return None if piece is None else decode_piece(piece, self.coding)


def from_vocab(vocab: dict[str, int], coding: Coding | None, origin: str) -> VocabTokens:
    """Tokens from a piece -> id table; the coding is guessed from the pieces where it is None."""
    largest = max(vocab.values(), default=-1)
    if largest > MAX_ID:
        raise SourceError(f"{origin} is no readable tokenizer (an id of {largest})")
    pieces: list[str | None] = [None] * (largest + 1)
    for piece, index in vocab.items():
        pieces[index] = piece
    return VocabTokens(pieces, coding or guess_coding(vocab), origin)


def guess_coding(pieces: Any) -> Coding:
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
    if decoder is None:
        return None
    state = decoder.__getstate__()
    text = state.decode("utf-8") if isinstance(state, bytes) else str(state)
    if '"ByteLevel"' in text:
        return "bytelevel"
    if "▁" in text or '"Metaspace"' in text or "\\u2581" in text:
        return "metaspace"
    return None


def load_tokenizer_json(path: Path) -> VocabTokens:
    """Tokens from a `tokenizer.json`.

    Raises
    ------
    SourceError
        if the `tokenizers` package cannot read it.
    """
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except BaseException as error:  # the package raises bare Exception, and where its Rust panics not even that
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise SourceError(f"{path} is no readable tokenizer ({error})") from error
    return from_vocab(tokenizer.get_vocab(with_added_tokens=True), _coding_of(tokenizer.decoder), path.name)


def load_vocab_json(path: Path) -> VocabTokens:
    """Tokens from GPT-2's `vocab.json`, piece -> id."""
    try:
        vocab = parse_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise SourceError(f"{path} is no readable vocabulary ({error})") from error
    if not isinstance(vocab, dict) or not all(type(index) is int and 0 <= index <= MAX_ID for index in vocab.values()):
        raise SourceError(f"{path} is no readable vocabulary (expected piece -> id)")
    return from_vocab(vocab, None, path.name)


def load_vocab_txt(path: Path) -> VocabTokens:
    """Tokens from BERT's `vocab.txt`, one piece a line."""
    try:
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
