"""Measure one matrix: the exact pass, then what it gives reason to look at."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable
from typing import Any, TypedDict

import torch

from repcap.devices import resolve_device
from repcap.errors import InputError, VectorsError
from repcap.geometry.epsilon.epsilon import Spread, check_z, null_note
from repcap.geometry.epsilon.passes import FirstPass, first_pass
from repcap.geometry.epsilon.sample import Estimate, estimate, keep_rows, plan_blocks
from repcap.geometry.epsilon.spread import spread
from repcap.geometry.measurement import extras
from repcap.geometry.measurement.findings import find_rows
from repcap.geometry.measurement.measurement import Measurement
from repcap.geometry.rows.reader import RowReader, check_matrix, default_block_rows, select_rows
from repcap.geometry.rows.unit_rows import NON_FINITE, ZERO, compute_dtype
from repcap.matrix import Matrix, MatrixInfo, ProgressFn
from repcap.numerics import Z_DEFAULT, check_seed, whole


class MeasureKeywords(TypedDict, total=False):
    """What callers may hand on to `measure_matrix`, for type checkers and editors."""

    z: float
    device: str | torch.device
    dtype: str
    block_rows: int | None
    seed: int
    influence: int
    centre: bool
    remove_top: int
    exclude_ids: Iterable[int] | None
    only_ids: Iterable[int] | None
    vocab_size: int | None


@dataclasses.dataclass(frozen=True)
class MeasureOptions:
    """What was asked for, as `measure_matrix` takes it; goes into every record."""

    z: float = Z_DEFAULT
    dtype: str = "float32"
    block_rows: int | None = None
    rows: int | None = None
    seed: int = 0
    influence: int = 0
    centre: bool = False
    remove_top: int = 0
    excluded: int = 0
    only: int = 0
    vocab_size: int | None = None

    def checked(self) -> MeasureOptions:
        """The same in plain Python numbers; DomainError or InputError for a value that means nothing."""
        compute_dtype(self.dtype)
        plain: dict[str, Any] = {}
        for name in ("block_rows", "rows", "seed", "influence", "remove_top", "vocab_size"):
            value = getattr(self, name)
            plain[name] = None if value is None else whole(f"--{name.replace('_', '-')}", value)
        check_seed(self.seed)
        if self.block_rows is not None and self.block_rows < 1:
            raise InputError(f"--block-rows {self.block_rows}: a block holds at least one row")
        if self.influence < 0:
            raise InputError(f"--influence {self.influence}: give how many rows to list, 0 for none")
        if self.remove_top < 0:
            raise InputError(f"--remove-top {self.remove_top}: give how many directions to remove, 0 for none")
        if self.rows is not None and self.influence:
            raise InputError("--influence needs all rows: leave --rows out")
        return dataclasses.replace(self, z=check_z(self.z), **plain)

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


class _Progress:
    """Rows done and rows to do, over all passes."""

    def __init__(self, on_progress: ProgressFn | None) -> None:
        self._report = on_progress
        self.done = self.total = 0

    def expect(self, rows: int) -> None:
        self.total += rows

    def tick(self, rows: int) -> None:
        self.done += rows
        self.total = max(self.total, self.done)
        if self._report is not None:
            self._report(self.done, self.total)

    def finish(self) -> None:
        """Say that all is done, also where fewer rows were read than expected."""
        if self._report is not None and self.done < self.total:
            self._report(self.total, self.total)


def measure_matrix(
    matrix: Matrix,
    *,
    z: float = Z_DEFAULT,
    device: str | torch.device = "auto",
    dtype: str = "float32",
    block_rows: int | None = None,
    rows: int | None = None,
    seed: int = 0,
    influence: int = 0,
    centre: bool = False,
    remove_top: int = 0,
    exclude_ids: Iterable[int] | None = (),
    only_ids: Iterable[int] | None = (),
    vocab_size: int | None = None,
    on_progress: ProgressFn | None = None,
) -> Measurement:
    """Mean and standard deviation of the cosines over all pairs of rows, exactly, and what follows from them.

    Parameters
    ----------
    matrix : Matrix
        (n, d), n >= 2 rows that have a direction. Rows that are zero or not finite are left out and named.
    z : float
        epsilon = mean + z std.
    device : `auto`, `cpu`, `cuda`, `cuda:N`, `mps`
    dtype : `float32` or `float64`
        of the products; sums are float64. Against float64 over all pairs epsilon is within 1e-6, or 1e-12.
    block_rows : int, optional
        rows in memory at once; by default 64 MiB of them.
    rows, seed : int
        estimate from so many random rows instead (`Measurement.estimate` holds the interval).
    influence : int
        how many rows to list that raise, and that lower, epsilon most.
    centre, remove_top :
        also measure after removing the mean row; after removing the so many strongest directions; after both.
    exclude_ids, only_ids, vocab_size :
        row numbers to leave out, to measure alone, and the number of leading rows to measure.
    on_progress : callable, optional
        called with (rows done, rows to do) over all passes.

    Returns
    -------
    Measurement

    Raises
    ------
    VectorsError
        fewer than two rows with a direction; complex or integer values; no rows or columns.
    InputError, DomainError
        an option outside its range.

    Cost: n d^2 flops for the first pass (reading, unit rows, upper half of G), as much again for the standard error,
    and 2 passes more for class `high`, for `centre` and for `remove_top`. Where n d^2 > 2.5e11 and nothing of that was
    asked for, the standard error and the check of class `high` come from 8192 random rows. Memory: G and one or two
    copies (8 d^2 bytes each), three blocks of rows, about 200 bytes a row; never n x n.
    """
    started, bytes_before = time.perf_counter(), matrix.bytes_read
    excluded, only = _listed(exclude_ids, "--exclude-ids"), _listed(only_ids, "--only-ids")
    options = MeasureOptions(
        z, dtype, block_rows, rows, seed, influence, centre, remove_top, len(excluded), len(only), vocab_size
    ).checked()
    check_matrix(matrix)
    progress = _Progress(on_progress)
    reader = RowReader(
        matrix=matrix,
        rows=select_rows(matrix.count, excluded, only, options.vocab_size),
        device=resolve_device(device),
        dtype=compute_dtype(dtype),
        block_rows=options.block_rows or default_block_rows(matrix.dim),
        on_rows=progress.tick,
    )
    sampled = options.rows is not None and options.rows < reader.count
    result = _from_sample(reader, options, progress) if sampled else _from_all(reader, options, progress)
    progress.finish()
    return dataclasses.replace(
        result, seconds=time.perf_counter() - started, bytes_read=matrix.bytes_read - bytes_before
    )


def _listed(ids: Iterable[int] | None, option: str) -> list[int]:
    try:
        return [] if ids is None else list(ids)
    except TypeError:
        raise InputError(f"{option} {ids!r}: give row numbers, such as [3, 5]") from None


def _from_all(reader: RowReader, options: MeasureOptions, progress: _Progress) -> Measurement:
    """Every row: exact."""
    tokens = reader.matrix.tokens
    progress.expect(reader.count)
    first = first_pass(reader, tokens.count if tokens is not None else None)
    _need_two(first.count, first.dropped, reader.matrix.info)
    moments = None if first.held is not None else first.moments()
    whole = spread(reader, first, "all", options.z, moments=moments)
    subject = extras.Subject(reader, first, moments, options.z, options.seed)
    progress.expect(_expected_rows(subject, options, whole))
    return _measurement(subject, options, whole, _other_rows(reader, first, options.z), None)


def _from_sample(reader: RowReader, options: MeasureOptions, progress: _Progress) -> Measurement:
    """Some rows: an estimate with an interval."""
    assert options.rows is not None
    blocks = plan_blocks(reader.rows, options.rows, reader.matrix.contiguous, options.seed)
    progress.expect(4 * len(blocks.rows))
    kept = keep_rows(reader, blocks)
    found, _ = estimate(kept, blocks, options.z)
    sampled = kept.replaced(rows=blocks.rows)
    first = first_pass(sampled, find_repeats=False)
    _need_two(first.count, first.dropped, reader.matrix.info)
    moments = None if first.held is not None else first.moments()
    whole = Spread("sample", first.count, reader.dim, found.mean, found.std, options.z, len(first.dropped), True)
    return _measurement(extras.Subject(sampled, first, moments, options.z, options.seed), options, whole, [], found)


def _need_two(count: int, dropped: tuple[tuple[int, str], ...], info: MatrixInfo) -> None:
    """Two directions make a pair.

    Raises
    ------
    VectorsError
        if there are fewer; the message says why rows were left out.
    """
    if count >= 2:
        return
    reasons = ", ".join(
        f"{sum(reason == why for _, reason in dropped)} {why}"
        for why in (ZERO, NON_FINITE)
        if any(reason == why for _, reason in dropped)
    )
    left_out = f" ({reasons} left out)" if reasons else ""
    rows = f"{count} row{'' if count == 1 else 's'} with a direction{left_out}"
    raise VectorsError(f"{rows}: a cosine needs two ({info.title})")


def _expected_rows(subject: extras.Subject, options: MeasureOptions, whole: Spread) -> int:
    """Rows that the extras will read."""
    n, extra = subject.first.count, len(subject.rows(forced=False))
    passes = 2 * bool(options.centre and options.remove_top) + bool(options.centre) + bool(options.remove_top)
    common = 2 * extra if whole.class_name == "high" else 0
    return (n if options.influence else extra) + passes * n + common


def _other_rows(reader: RowReader, first: FirstPass, z: float) -> list[Spread]:
    """epsilon without padding, without repeats, and without both, where there are any and two rows are left."""
    padded, repeated = bool(first.padded.any()), bool(first.repeat.any())
    found = []
    for label, there, padding, repeats in (
        ("tokenizer", padded, False, True),
        ("distinct", repeated, True, False),
        ("tokenizer, distinct", padded and repeated, False, False),
    ):
        if there and int(first.mask(padding=padding, repeats=repeats).sum()) >= 2:
            found.append(spread(reader, first, label, z, padding=padding, repeats=repeats))
    return found


def _measurement(
    subject: extras.Subject,
    options: MeasureOptions,
    whole: Spread,
    variants: list[Spread],
    estimate: Estimate | None,
) -> Measurement:
    """Put together what is known and compute the extras. Time and bytes are filled in by the caller."""
    high = whole.class_name == "high"
    errors = (
        extras.Uncertainty(estimate.se, estimate.rows) if estimate else extras.uncertainty(subject, options.influence)
    )
    spectrum = extras.spectrum_of(subject, leading=high)
    removed, emptied = extras.removed(subject, options.centre, options.remove_top)
    variants = variants + removed
    common = None
    if high and subject.first.count > 2 and whole.dim > 1 and spectrum.top_share is not None:
        added, common = extras.common_direction(subject, whole, variants, spectrum.top_share)
        variants = variants + added
    matrix = subject.reader.matrix
    return Measurement(
        info=matrix.info,
        spread=whole,
        epsilon_se=errors.se,
        se_rows=errors.rows,
        variants=tuple(variants),
        spectrum=spectrum,
        common=common,
        influence=errors.influence,
        estimate=estimate,
        findings=find_rows(subject.first, matrix.tokens),
        notes=(*_notes(whole, estimate), *emptied),
        options=options.to_dict(),
        device=str(subject.reader.device),
        seconds=0.0,
        bytes_read=0,
    )


def _notes(whole: Spread, estimate: Estimate | None) -> tuple[str, ...]:
    """What a reader should know before quoting the numbers."""
    notes = []
    if whole.dim == 1:
        notes.append("d = 1: every cosine is 1 or -1; epsilon says nothing about room for directions")
    elif (note := null_note(whole.dim)) is not None:
        notes.append(note)
    if whole.z != Z_DEFAULT:
        notes.append(f"z = {whole.z:g}: the class is still that of mean + 2 std, for which its borders are published")
    if estimate is not None:
        notes.append(
            f"an estimate from {estimate.rows} of {estimate.population} rows: epsilon of all rows lies in "
            f"{estimate.low:.4f} to {estimate.high:.4f} (95 % interval)"
        )
    return tuple(notes)
