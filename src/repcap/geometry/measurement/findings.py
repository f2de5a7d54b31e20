"""Rows worth naming: without a direction, tiny, equal to another."""

from __future__ import annotations

from repcap.geometry.epsilon.passes import FirstPass
from repcap.geometry.measurement.measurement import RepeatGroup, RowFindings, RowNote
from repcap.matrix import Tokens

LISTED = 1000
"""Rows of each kind that are named; all are counted."""
GROUP_LISTED = 20
TINY = 1e-3
"""A row is called tiny below this part of the median length: often padding or a token that was never trained.
It keeps its direction and is measured."""


def name_dropped(dropped: tuple[tuple[int, str], ...], tokens: Tokens | None) -> tuple[RowNote, ...]:
    """The first 1000 dropped rows with their token texts."""
    return tuple(RowNote(index, reason, _text(tokens, index)) for index, reason in dropped[:LISTED])


def find_rows(first: FirstPass, tokens: Tokens | None) -> RowFindings:
    """Name the rows of a first pass that a reader should know of. O(n)."""
    small = first.norms < TINY * first.norms.median() if first.count else first.padded
    tiny = first.indices[small].tolist()
    groups = tuple(
        RepeatGroup(
            indices=tuple(group[:GROUP_LISTED]),
            tokens=tuple(_text(tokens, index) for index in group[:GROUP_LISTED]),
            size=len(group),
        )
        for group in first.groups[:LISTED]
    )
    lengths = first.norms[small][:LISTED].tolist()
    return RowFindings(
        dropped=name_dropped(first.dropped, tokens),
        dropped_count=len(first.dropped),
        tiny=tuple(
            RowNote(index, f"tiny: length {length:.3g}", _text(tokens, index))
            for index, length in zip(tiny, lengths, strict=False)
        ),
        tiny_count=len(tiny),
        repeats=groups,
        repeat_rows=int(first.repeat.sum()),
        padding_rows=int(first.padded.sum()),
        tokenizer_count=tokens.count if tokens is not None else None,
    )


def _text(tokens: Tokens | None, index: int) -> str | None:
    return tokens.text(index) if tokens is not None else None
