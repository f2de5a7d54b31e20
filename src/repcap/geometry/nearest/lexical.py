"""Which tokens are forms of one word: letter case, leading space, plural. Text in, text out."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*", re.UNICODE)


def canonical(text: str | None) -> str | None:
    """The form that lexical variants share, or None for a token that is no word of at least two letters.

    Case and surrounding white space are dropped, and the endings of the English plural (cats, boxes, cities). The rule
    knows no words, so it errs at times (`glass` keeps its s; `does` and `doe` become one).

    >>> canonical(" Cats"), canonical("cities"), canonical("glass"), canonical("<s>")
    ('cat', 'city', 'glass', None)
    """
    if text is None:
        return None
    word = text.strip().casefold()
    if len(word) < 2 or not _WORD.fullmatch(word):
        return None
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(("ches", "shes", "sses", "xes", "zes")):
        return word[:-2]
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def variant_groups(texts: Iterable[str | None]) -> np.ndarray:
    """(n,) int64: rows with the same canonical form share a number; -1 for rows that are no word."""
    numbers: dict[str, int] = {}
    groups = []
    for text in texts:
        form = canonical(text)
        groups.append(-1 if form is None else numbers.setdefault(form, len(numbers)))
    return np.asarray(groups, dtype=np.int64)
