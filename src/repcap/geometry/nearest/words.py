"""From words to rows: finding a token by its text, analogies, and lists of word pairs."""

from __future__ import annotations

import csv
import dataclasses
import io
import os
import re
from importlib import resources
from pathlib import Path

from repcap.errors import InputError
from repcap.geometry.nearest.lexical import canonical
from repcap.matrix import Matrix

_TERM = re.compile(r"\s*([+-]?)\s*(\"[^\"]*\"|[^\s+\"-][^\s+]*)\s*")


def row_number(word: str, matrix: Matrix) -> int:
    """The row of `matrix` that `#123` names.

    Raises
    ------
    InputError
        if it is written otherwise, or there is no such row.
    """
    if not (word.startswith("#") and word[1:].isdecimal()):
        raise InputError(f"{word!r} names no row: write #123, or give a model with a tokenizer beside it")
    if int(word[1:]) >= matrix.count:
        raise InputError(f"row {word[1:]} is not in 0..{matrix.count - 1} of {matrix.info.name}")
    return int(word[1:])


class TokenIndex:
    """Token text to row number. Memory: one string a row."""

    def __init__(self, matrix: Matrix) -> None:
        if matrix.tokens is None:
            raise InputError(
                f"{matrix.info.source} has no tokenizer beside it, so words cannot be found: name rows as #123"
            )
        self._matrix = matrix
        self.texts = [matrix.tokens.text(row) for row in range(min(matrix.count, matrix.tokens.count))]
        self.texts += [None] * (matrix.count - len(self.texts))
        self._rows: dict[str, int] = {}
        for row, text in enumerate(self.texts):
            if text is not None:
                self._rows.setdefault(text, row)
        self._forms = [canonical(text) for text in self.texts]

    def find(self, word: str) -> int:
        """Row of a word: `#123` is row 123, `" cat"` in quotes is that text exactly; else ` cat`, then `cat`.

        The form with a leading space is taken first, since that is the whole word where it stands in a sentence.

        Raises
        ------
        InputError
            if no token reads so; the message names forms that there are.
        """
        if word.startswith("#") and word[1:].isdecimal():
            return row_number(word, self._matrix)
        if len(word) > 1 and word[0] == word[-1] == '"':
            exact = word[1:-1]
            if exact in self._rows:
                return self._rows[exact]
            raise InputError(f"no token reads exactly {word}{self._hint(exact)}")
        for text in (f" {word}", word):
            if text in self._rows:
                return self._rows[text]
        self._refuse_beyond(word)
        raise InputError(f'no single token reads "{word}"{self._hint(word)}')

    def _refuse_beyond(self, word: str) -> None:
        """Say so where the word is a token that the matrix has no row for."""
        tokens, count = self._matrix.tokens, self._matrix.count
        for row in range(count, tokens.count if tokens is not None else 0):
            if tokens is not None and tokens.text(row) in (word, f" {word}"):
                raise InputError(f'"{word}" is token {row}, and {self._matrix.info.name} has {count} rows: it has none')

    def has(self, word: str) -> bool:
        """Whether `find` would find it."""
        try:
            self.find(word)
        except InputError:
            return False
        return True

    def _hint(self, word: str) -> str:
        form = canonical(word)
        near = [text for text, other in zip(self.texts, self._forms, strict=True) if form and other == form]
        if not near:
            stem = word.strip().casefold()[:4]
            near = [text for text in self.texts if stem and text and text.strip().casefold().startswith(stem)]
        shown = ", ".join(f'"{text}"' for text in near[:5])
        return f"; there are {shown}" if shown else "; it is cut into several tokens"

    def forms_of(self, rows: list[int]) -> frozenset[int]:
        """These rows and all whose text is another form (case, plural, leading space) of one of them."""
        wanted = {self._forms[row] for row in rows} - {None}
        return frozenset(rows) | {row for row, form in enumerate(self._forms) if form in wanted}


@dataclasses.dataclass(frozen=True)
class Term:
    """One word of an analogy and its sign."""

    sign: int
    word: str


def parse_analogy(text: str) -> list[Term]:
    """`king - man + woman` as terms.

    >>> [(term.sign, term.word) for term in parse_analogy("king - man + woman")]
    [(1, 'king'), (-1, 'man'), (1, 'woman')]

    Raises
    ------
    InputError
        if it is no sum of words.
    """
    terms: list[Term] = []
    at = 0
    while at < len(text):
        match = _TERM.match(text, at)
        if match is None or (terms and not match.group(1)):
            raise InputError(f'"{text}" is no analogy: write it as "king - man + woman"')
        terms.append(Term(-1 if match.group(1) == "-" else 1, match.group(2)))
        at = match.end()
    if len(terms) < 2:
        raise InputError(f'"{text}" is no analogy: write it as "king - man + woman"')
    return terms


@dataclasses.dataclass(frozen=True)
class WordPair:
    kind: str
    left: str
    right: str


def load_word_pairs(path: str | os.PathLike[str] | None = None) -> list[WordPair]:
    """Pairs from a CSV with the columns kind, left, right; None: the list that the package ships.

    Raises
    ------
    InputError
        if the file cannot be read or lacks a column.
    """
    source = resources.files("repcap.data") / "word_pairs.csv" if path is None else Path(path)
    try:
        rows = list(csv.DictReader(io.StringIO(source.read_bytes().decode("utf-8"), newline="")))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"cannot read word pairs from {source}: {reason.lower()}") from error
    pairs = []
    for number, row in enumerate(rows, start=2):
        if not all(row.get(key) for key in ("kind", "left", "right")):
            raise InputError(f"{source}, line {number}: word pairs need the columns kind, left, right")
        pairs.append(WordPair(row["kind"], row["left"], row["right"]))
    if not pairs:
        raise InputError(f"{source} holds no word pairs: it needs the columns kind, left, right")
    return pairs
