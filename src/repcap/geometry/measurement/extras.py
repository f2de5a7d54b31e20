"""What is measured beside epsilon: its standard error, the spectrum, what is left without a common part."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import torch

from repcap.geometry.epsilon import centre, gram
from repcap.geometry.epsilon.common_direction import Common, common_part
from repcap.geometry.epsilon.epsilon import Spread
from repcap.geometry.epsilon.influence import Influence, rank_influence
from repcap.geometry.epsilon.jackknife import EXTRA_ROWS, EXTRA_WORK, standard_error, without_each
from repcap.geometry.epsilon.moments import Moments
from repcap.geometry.epsilon.passes import FirstPass, first_pass
from repcap.geometry.epsilon.spectrum import EXACT_DIM, Spectrum, leading_spectrum, participation_ratio, spectrum
from repcap.geometry.epsilon.spread import spread, spread_of
from repcap.geometry.rows.reader import RowReader


@dataclasses.dataclass(frozen=True)
class Subject:
    """The rows that were read, and what is known of them after the first pass.

    moments: of all rows, or None where `first.held` has the rows themselves.
    """

    reader: RowReader
    first: FirstPass
    moments: Moments | None
    z: float
    seed: int

    @property
    def affordable(self) -> bool:
        """Whether one more pass over all rows is cheap."""
        return affordable(self.first.count, self.reader.dim)

    def rows(self, forced: bool) -> torch.Tensor:
        """Row numbers for an extra: all rows, or 8192 random ones where all are dear and were not asked for."""
        indices = self.first.indices
        if forced or self.affordable or len(indices) <= EXTRA_ROWS:
            return indices
        generator = torch.Generator().manual_seed(self.seed)
        return indices[torch.randperm(len(indices), generator=generator)[:EXTRA_ROWS].sort()[0]]


def affordable(count: int, dim: int) -> bool:
    """Whether one more pass over so many rows is cheap."""
    return count * dim**2 <= EXTRA_WORK


@dataclasses.dataclass(frozen=True)
class Uncertainty:
    """se: jackknife standard error of epsilon, None where n < 3. rows: rows it was computed from."""

    se: float | None
    rows: int
    influence: Influence | None = None


def uncertainty(subject: Subject, top: int) -> Uncertainty:
    """Standard error of epsilon, and the `top` rows at either end of the influence on it."""
    first = subject.first
    if first.count < 3:
        return Uncertainty(None, 0)
    indices, epsilon, without = without_each(
        subject.reader, first, subject.moments, subject.rows(forced=top > 0), subject.z
    )
    se = standard_error(without, first.count)
    if not top:
        return Uncertainty(se, len(indices))
    return Uncertainty(se, len(indices), rank_influence(indices, without, epsilon, top, subject.reader.matrix.tokens))


def spectrum_of(subject: Subject, *, leading: bool) -> Spectrum:
    """Spectrum of G: all of it where min(n, d) <= 1536, else only the largest eigenvalue if `leading`, else none."""
    first, sums = subject.first, subject.moments
    if first.held is not None:
        C = gram.cosines(first.held)
        if len(C) <= EXACT_DIM:
            return spectrum(C, first.count, subject.reader.dim)
        return Spectrum(participation_ratio(first.count, float(C.square().sum())))
    assert sums is not None
    if sums.dim <= EXACT_DIM:
        return spectrum(sums.G, sums.count, sums.dim)
    if leading:
        return leading_spectrum(sums.G, sums.count, 1)
    return Spectrum(participation_ratio(sums.count, float(sums.G.flatten() @ sums.G.flatten())))


def removed(subject: Subject, centred: bool, top: int) -> tuple[list[Spread], list[str]]:
    """epsilon after removing the mean row (if `centred`), the `top` strongest directions (if > 0), and both.

    One exact pass over all rows each; both together take two. Also what is left of nothing, in words.
    """
    reader, first, z = subject.reader, subject.first, subject.z
    variants: list[Spread | None] = []
    notes = []
    if centred:
        centred_rows = centre.centred_reader(reader, first)
        again = first_pass(centred_rows, find_repeats=False)
        if again.count < 2:
            notes.append("without their mean fewer than two rows are left: the rows are equal")
        else:
            variants.append(spread(centred_rows, again, "centred", z))
            if top:
                variants.append(spread_of(centre.without_top(centred_rows, again, top), f"centred, top {top}", z))
    if top:
        variants.append(spread_of(centre.without_top(reader, first, top), f"top {top}", z))
    return [variant for variant in variants if variant is not None], notes


def common_direction(subject: Subject, whole: Spread, known: list[Spread], share: float) -> tuple[list[Spread], Common]:
    """For class `high`: the variants `centred` and `top 1` that are not among `known`, and what they say in words.

    From all rows where that is cheap, else from 8192 random ones, which the variants then say.
    """
    rows = subject.rows(forced=False)
    sampled = len(rows) < subject.first.count
    changes: dict[str, Callable[[], RowReader]] = {
        "centred": lambda: centre.centred_reader(subject.reader, subject.first),
        "top 1": lambda: centre.without_top(subject.reader, subject.first, 1),
    }
    by_label = {variant.rows: variant for variant in known}
    added = []
    for label, change in changes.items():
        if label in by_label:
            continue
        found = spread_of(change().replaced(rows=rows), label, subject.z)
        if found is not None:
            by_label[label] = dataclasses.replace(found, sampled=sampled)
            added.append(by_label[label])
    return added, common_part(whole, by_label.get("centred"), by_label.get("top 1"), share)
