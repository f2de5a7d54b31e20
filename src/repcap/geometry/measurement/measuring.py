"""Measure one matrix: the exact pass, then what it gives reason to look at."""

from __future__ import annotations

import dataclasses
import time

from repcap.devices import resolve_device
from repcap.errors import OptionError, VectorsError
from repcap.geometry.epsilon.drift import LEAST, drift
from repcap.geometry.epsilon.epsilon import Spread, null_note
from repcap.geometry.epsilon.jackknife import EXTRA_ROWS
from repcap.geometry.epsilon.passes import FirstPass, first_pass
from repcap.geometry.epsilon.sample import Estimate, estimate, keep_rows, plan_blocks
from repcap.geometry.epsilon.spectrum import Spectrum
from repcap.geometry.epsilon.spread import spread
from repcap.geometry.measurement import extras
from repcap.geometry.measurement.findings import find_rows
from repcap.geometry.measurement.measurement import Measurement
from repcap.geometry.readout.leverage import ReadoutLimits, rank_of, readout_limits
from repcap.geometry.rows.reader import RowReader, check_matrix, default_block_rows, select_rows
from repcap.geometry.rows.unit_rows import NON_FINITE, ZERO, compute_dtype
from repcap.matrix import Matrix, MatrixInfo, ProgressFn
from repcap.numerics import Z_DEFAULT
from repcap.options import (
    BlockRows,
    Centre,
    Device,
    Dtype,
    ExcludeIds,
    Influence,
    OnlyIds,
    RemoveTop,
    Rows,
    Seed,
    VocabSize,
    Z,
    check,
    recorded,
)


@dataclasses.dataclass(frozen=True)
class MeasureOptions:
    """What `measure_matrix` may be told; `repcap.options` says what each means.

    Raises
    ------
    OptionError, DomainError
        for a value that means nothing.
    """

    z: Z = Z_DEFAULT
    device: Device = "auto"
    dtype: Dtype = "float32"
    block_rows: BlockRows = None
    rows: Rows = None
    seed: Seed = 0
    influence: Influence = 0
    centre: Centre = False
    remove_top: RemoveTop = 0
    exclude_ids: ExcludeIds = ()
    only_ids: OnlyIds = ()
    vocab_size: VocabSize = None

    def __post_init__(self) -> None:
        for name, value in check(type(self), vars(self)).items():
            object.__setattr__(self, name, () if value is None and name.endswith("_ids") else value)
        if self.rows is not None and self.influence:
            raise OptionError("influence", self.influence, "it needs all rows: leave `rows` out")


class _Progress:
    """Rows done and rows to do, over all passes. What is expected may only fall, so that a bar never goes back."""

    def __init__(self, on_progress: ProgressFn | None) -> None:
        self._report = on_progress
        self.done = self.total = 0

    def expect(self, rows: int) -> None:
        self.total = rows

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
    matrix: Matrix, options: MeasureOptions | None = None, *, on_progress: ProgressFn | None = None
) -> Measurement:
    """Mean and standard deviation of the cosines over all pairs of rows, exactly, and what follows from them.

    Parameters
    ----------
    matrix : Matrix
        (n, d), n >= 2 rows that have a direction. Rows that are zero or not finite are left out and named.
    options : MeasureOptions, optional
        `dtype` is that of the products; sums are float64. Against float64 over all pairs epsilon is within 1e-6 for
        float32, 1e-12 for float64.
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
    options = options or MeasureOptions()
    check_matrix(matrix)
    progress = _Progress(on_progress)
    reader = RowReader(
        matrix=matrix,
        rows=select_rows(matrix.count, options.exclude_ids or (), options.only_ids or (), options.vocab_size),
        device=resolve_device(options.device),
        dtype=compute_dtype(options.dtype),
        block_rows=options.block_rows or default_block_rows(matrix.dim),
        on_rows=progress.tick,
    )
    sampled = options.rows is not None and options.rows < reader.count
    result = _from_sample(reader, options, progress) if sampled else _from_all(reader, options, progress)
    progress.finish()
    found = dataclasses.replace(result, bytes_read=matrix.bytes_read - bytes_before)
    return found.with_call(recorded(MeasureOptions, vars(options)), time.perf_counter() - started)


def _from_all(reader: RowReader, options: MeasureOptions, progress: _Progress) -> Measurement:
    """Every row: exact."""
    tokens = reader.matrix.tokens
    progress.expect(_expected_rows(reader.count, reader.dim, options, high=True, drifting=True))
    first = first_pass(reader, tokens.count if tokens is not None else None)
    _need_two(first.count, first.dropped, reader.matrix.info)
    moments = None if first.held is not None else first.moments()
    whole = spread(reader, first, "all", options.z, moments=moments)
    subject = extras.Subject(reader, first, moments, options.z, options.seed)
    high = whole.class_name == "high"
    progress.expect(_expected_rows(first.count, reader.dim, options, high, drifting=first.held is None))
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


def _expected_rows(n: int, dim: int, options: MeasureOptions, high: bool, drifting: bool) -> int:
    """Rows that the first pass and the extras read. high: of class `high`; drifting: the rows are not in memory."""
    extra = n if extras.affordable(n, dim) else min(n, EXTRA_ROWS)
    passes = 1 + 2 * bool(options.centre and options.remove_top) + bool(options.centre) + bool(options.remove_top)
    first_ids = extra if drifting and extra >= LEAST else 0
    return passes * n + (n if options.influence else extra) + (4 * extra if high else 0) + first_ids


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
    """Put together what is known and compute the extras. The call and the bytes are filled in by the caller."""
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
        readout=None if estimate else _readout(whole, spectrum),
        common=common.reading if common else None,
        common_share=common.share if common else None,
        influence=errors.influence,
        estimate=estimate,
        findings=find_rows(subject.first, matrix.tokens),
        notes=(*_notes(whole, estimate), *emptied),
        drift=() if estimate or subject.first.held is not None else drift(subject.reader, subject.rows(False), whole.z),
        device=str(subject.reader.device),
        bytes_read=0,
    )


def _readout(whole: Spread, spectrum: Spectrum) -> ReadoutLimits:
    """Limits of linear readouts; the rank is that of the spectrum, or at most min(n, d) where it is not computed."""
    return readout_limits(whole.count, rank_of(spectrum.eigenvalues, whole.count, whole.dim), whole.second)


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
