"""`neighbours`: nearest and most opposed tokens, analogies, word pairs, and an overview of the whole vocabulary."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from repcap import geometry, sources
from repcap.errors import InputError
from repcap.matrix import Matrix, ProgressFn, stages
from repcap.numerics import Z_DEFAULT
from repcap.options import Device, MatrixName, Option, Z, verb
from repcap.verbs.neighbours.neighbourhood import (
    Analogy,
    Cluster,
    Neighbour,
    Neighbourhood,
    Overview,
    PairKind,
    Suspect,
    Tail,
    TokenNeighbours,
)

if TYPE_CHECKING:
    from repcap.geometry.nearest.neighbours import Nearest
    from repcap.geometry.nearest.words import TokenIndex, WordPair

TWIN = 0.995
"""Cosine from which a row and its nearest neighbour are called nearly identical."""
SHOWN = 8
SHIPPED = "shipped"
"""Stands for the word pairs that the package ships."""

Tokens = Annotated[Sequence[str], Option("A word, #row, or '\" exact\"'. May be given again.", flags=("--token",))]
Analogies = Annotated[Sequence[str], Option("Such as 'king - man + woman'. May be given again.", flags=("--analogy",))]
Expected = Annotated[str | None, Option("Give the rank of this word in the analogy.")]
WordPairs = Annotated[
    str | os.PathLike[str] | None, Option("Pairs by kind: a CSV of kind,left,right, or `shipped`.", metavar="FILE")
]
Scan = Annotated[
    bool | None, Option("Scan the whole vocabulary (default: if alone).", flags=("--overview/--no-overview",))
]
Listed = Annotated[int, Option("Rows in each list.", least=1, most=10_000, why="give 1 to 10000")]
Tau = Annotated[int, Option("A primary token is nearest to more than tau others.", least=0)]


@verb
def neighbours(
    source: Any,
    matrix: MatrixName = "embedding",
    *,
    tokens: Tokens = (),
    analogies: Analogies = (),
    expect: Expected = None,
    word_pairs: WordPairs = None,
    overview: Scan = None,
    top: Listed = 10,
    tau: Tau = 20,
    z: Z = Z_DEFAULT,
    device: Device = "auto",
    on_progress: ProgressFn | None = None,
) -> Neighbourhood:
    """Look into the neighbourhood of tokens.

    Parameters
    ----------
    source, matrix, z, device
        as of `repcap.measure`.
    tokens : sequence of str
        words, `#row` or `" exact"`.
    analogies, expect
        such as `king - man + woman`; the word whose rank to give.
    word_pairs : path, optional
        a CSV of kind, left, right, or `shipped` for the list that the package ships.
    overview : bool, optional
        scan the whole vocabulary; by default when nothing else was asked for.
    top, tau : int
        rows in each list; a primary token is nearest to more than `tau` others.

    Raises
    ------
    SourceError, VectorsError, InputError
        if the source cannot be read, a word is no token, or an analogy or pair list cannot be read.

    Cost: a pass for epsilon, one for all queries, n^2 d operations for the overview. Memory: O(n), 1 GiB of unit rows.
    """
    with sources.open_source(source, matrix) as opened:
        scanning = not (tokens or analogies or word_pairs) if overview is None else overview
        words = _words_of(tokens, analogies, expect)
        by_text = bool(word_pairs) or any(not word.startswith("#") for word in words)
        index = geometry.TokenIndex(opened) if by_text or opened.tokens is not None else None
        for word in words:  # a slip of the keyboard shows before the rows are read
            _row(opened, index, word)
        pairs = geometry.load_word_pairs(None if word_pairs == SHIPPED else word_pairs) if word_pairs else []
        asked = len(tokens) + len(analogies) + len(pairs)
        summing, asking, comparing = stages(
            on_progress, (2 if scanning else 1) * opened.dim, 2 * asked, opened.count if scanning else 0
        )
        sums = _sums(opened, z, device, scanning, summing)
        found = Neighbourhood(
            source=opened.info.source,
            matrix=opened.info.name,
            count=opened.count,
            dim=opened.dim,
            epsilon=sums.epsilon,
            tokens=_token_lists(opened, index, tokens, top),
            analogies=tuple(_analogy(opened, index, text, expect, top) for text in analogies),
            word_pairs=_pair_kinds(opened, index, pairs, sums.epsilon),
            overview=_overview(opened, index, sums, tau, top, device, comparing) if scanning else None,
            revision=opened.info.revision,
        )
        if not scanning:
            asking(1, 1)
        return found


@dataclasses.dataclass(frozen=True)
class _Sums:
    epsilon: float
    rows: np.ndarray
    influence: np.ndarray | None
    length: np.ndarray


def _sums(matrix: Matrix, z: float, device: str, influence: bool, on_progress: ProgressFn) -> _Sums:
    """epsilon, and of each row its length over the median and, for one pass more, its influence on epsilon."""
    geometry.check_matrix(matrix)
    reader = geometry.plain_reader(matrix, device)
    first = geometry.first_pass(reader, find_repeats=False)
    needed = 3 if influence else 2
    if first.count < needed:
        raise InputError(f"{matrix.info.title} has {first.count} rows with a direction; {needed} needed")
    on_progress(1, 4)
    moments = first.moments()
    on_progress(2, 4)
    epsilon = geometry.spread(reader, first, "all", z, moments=moments).epsilon
    length = (first.norms / first.norms.median()).numpy()
    if not influence:
        return _Sums(epsilon, first.indices.numpy(), None, length)
    rows, whole, without = geometry.without_each(reader, first, moments, first.indices, z)
    return _Sums(epsilon, rows.numpy(), (whole - without).numpy(), length)


def _words_of(tokens: Sequence[str], analogies: Sequence[str], expect: str | None) -> list[str]:
    """Every word that was asked about."""
    if expect is not None and not analogies:
        raise InputError(f'"{expect}" has no rank without an analogy: give `analogies` with `expect`')
    terms = [term.word for text in analogies for term in geometry.parse_analogy(text)]
    return [*tokens, *terms, *([] if expect is None else [expect])]


def _row(matrix: Matrix, index: TokenIndex | None, word: str) -> int:
    """Row of a word; without a tokenizer of a number such as #123."""
    return geometry.row_number(word, matrix) if index is None else index.find(word)


def _named(matrix: Matrix, row: int) -> str | None:
    return matrix.tokens.text(row) if matrix.tokens is not None else None


def _listed(matrix: Matrix, rows: Sequence[int], cosines: Sequence[float]) -> tuple[Neighbour, ...]:
    return tuple(Neighbour(int(r), _named(matrix, int(r)), float(c)) for r, c in zip(rows, cosines, strict=True))


def _token_lists(
    matrix: Matrix, index: TokenIndex | None, words: Sequence[str], top: int
) -> tuple[TokenNeighbours, ...]:
    if not words:
        return ()
    rows = [_row(matrix, index, word) for word in words]
    queries = geometry.unit_of(matrix, rows)
    own = [frozenset({row}) for row in rows]
    nearest = geometry.ranked(matrix, queries, top, exclude=own)
    opposed = geometry.ranked(matrix, queries, top, exclude=own, opposed=True)
    return tuple(
        TokenNeighbours(
            row,
            _named(matrix, row),
            _listed(matrix, near.indices, near.cosines),
            _listed(matrix, far.indices, far.cosines),
        )
        for row, near, far in zip(rows, nearest, opposed, strict=True)
    )


def _analogy(matrix: Matrix, index: TokenIndex | None, text: str, expect: str | None, top: int) -> Analogy:
    terms = geometry.parse_analogy(text)
    rows = [_row(matrix, index, term.word) for term in terms]
    query = geometry.signed_sum(matrix, rows, [term.sign for term in terms])
    if float(query.norm()) < 1e-9:
        raise InputError(f'the words of "{text}" cancel out: nothing is nearest to that')
    exclude = frozenset(rows) if index is None else index.forms_of(rows)
    found = geometry.ranked(matrix, query[None], top, exclude=[exclude])[0]
    rank = None
    if expect is not None:
        wanted = _row(matrix, index, expect)
        if wanted in exclude:
            raise InputError(f'"{expect}" is a form of a word of "{text}", which do not count')
        rank = geometry.rank_of(matrix, query, wanted, exclude)
    return Analogy(text, _listed(matrix, found.indices, found.cosines), len(exclude), expect, rank)


def _pair_kinds(
    matrix: Matrix, index: TokenIndex | None, pairs: Sequence[WordPair], epsilon: float
) -> tuple[PairKind, ...]:
    if not pairs:
        return ()
    assert index is not None
    kinds = []
    for kind in dict.fromkeys(pair.kind for pair in pairs):
        listed = [pair for pair in pairs if pair.kind == kind]
        known = [pair for pair in listed if index.has(pair.left) and index.has(pair.right)]
        rows = [index.find(word) for pair in known for word in (pair.left, pair.right)]
        unit = geometry.unit_of(matrix, rows)
        cosines = (unit[0::2] * unit[1::2]).sum(dim=1).tolist() if rows else []
        mean = sum(cosines) / len(cosines) if cosines else float("nan")
        above = sum(c > epsilon for c in cosines) / len(cosines) if cosines else float("nan")
        names = tuple((pair.left, pair.right) for pair in known)
        kinds.append(PairKind(kind, tuple(cosines), names, mean, above, len(listed) - len(known)))
    return tuple(kinds)


def _overview(
    matrix: Matrix,
    index: TokenIndex | None,
    sums: _Sums,
    tau: int,
    top: int,
    device: str,
    on_progress: ProgressFn | None,
) -> Overview:
    found = geometry.nearest_rows(matrix, epsilon=sums.epsilon, device=device, on_progress=on_progress)
    clusters = found.clusters(tau)
    twins = found.twins(TWIN)
    listed = np.flatnonzero((found.index >= 0) & (found.cosine >= TWIN))
    near = found.cosine[found.index >= 0]
    return Overview(
        tau=tau,
        primary_count=len(clusters),
        primary=tuple(_cluster(matrix, found, row, members) for row, members in clusters[:top]),
        tail=None if index is None else _tail(matrix, index, found),
        twin_groups=tuple(tuple(group.tolist()) for group in twins),
        suspects=_suspects(matrix, found, sums, listed, 2 * top),
        suspect_count=len(listed),
        nearest_quantiles=tuple((q, float(np.quantile(near, q))) for q in (0.05, 0.25, 0.5, 0.75, 0.95)),
    )


def _cluster(matrix: Matrix, found: Nearest, row: int, members: np.ndarray) -> Cluster:
    closest = members[(-found.cosine[members]).argsort(kind="stable")][:SHOWN]
    return Cluster(row, _named(matrix, row), len(members), _listed(matrix, closest, found.cosine[closest]))


def _tail(matrix: Matrix, index: TokenIndex, found: Nearest) -> Tail:
    _, _, cosines = geometry.cosines_within(matrix, geometry.variant_groups(index.texts))
    usable = int((found.index >= 0).sum())
    return Tail(found.beyond, usable * (usable - 1) // 2, int((cosines > found.epsilon).sum()), len(cosines))


def _suspects(matrix: Matrix, found: Nearest, sums: _Sums, listed: np.ndarray, most: int) -> tuple[Suspect, ...]:
    """Nearly identical rows, those of least influence first: an untrained row is near to many and pulls on nothing."""
    assert sums.influence is not None
    place = {int(row): position for position, row in enumerate(sums.rows)}
    at = np.asarray([place[int(row)] for row in listed], dtype=np.int64)
    order = np.argsort(np.abs(sums.influence[at]), kind="stable")[:most]
    return tuple(
        Suspect(
            row=int(listed[i]),
            token=_named(matrix, int(listed[i])),
            twin=int(found.index[listed[i]]),
            twin_token=_named(matrix, int(found.index[listed[i]])),
            cosine=float(found.cosine[listed[i]]),
            influence=float(sums.influence[at[i]]),
            length=float(sums.length[at[i]]),
        )
        for i in order
    )
