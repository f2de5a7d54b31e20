"""`measure`: open a source, measure a matrix, say how many directions fit at that epsilon."""

from __future__ import annotations

import dataclasses
from typing import Any

from repcap import geometry, sources
from repcap.bracket.interval import bracket
from repcap.geometry.measurement.measurement import Measurement
from repcap.matrix import Matrix, ProgressFn
from repcap.numerics import Z_DEFAULT
from repcap.options import (
    AllowFullDownload,
    AllowTruncated,
    BlockRows,
    Centre,
    Device,
    Dtype,
    ExcludeIds,
    Influence,
    MatrixName,
    OnlyIds,
    RemoveTop,
    Rows,
    Seed,
    VocabSize,
    Z,
    chosen,
    verb,
)  # fmt: skip
from repcap.studies.digest import HashedMatrix
from repcap.studies.reading import reading_of

BOTH = ("embedding", "unembedding")
TIED = "embedding and unembedding are tied: one matrix, measured once"
OPENING = ("allow_truncated", "allow_full_download", "rows")
"""Options that say how a source is opened."""


@dataclasses.dataclass(frozen=True, repr=False)
class Measured(Measurement):
    """A measurement, the capacity at its epsilon, and a fingerprint of the rows.

    capacity: {explicit, exists, law, upper}: each log10_k, k (None beyond float64) and the name of what gave it.
    `explicit` and `exists` are proven from below (`repcap.bracket.interval.at_least` is the larger), `upper` from
    above; `law` has `indeterminate` (epsilon >= 0.1) and `below_proven`. None where epsilon is not between 0 and 1.
    capacity_warnings: what the reader of the law's number should know.
    tensor_sha256: of all rows as they were read, in row order; None where not all were read.
    """

    kind = "measure"

    capacity: dict[str, Any] | None = None
    capacity_warnings: tuple[str, ...] = ()
    tensor_sha256: str | None = None

    @property
    def reading(self) -> str:
        return reading_of(self, self.capacity is not None)

    def values(self) -> dict[str, Any]:
        return {
            **super().values(),
            "capacity": self.capacity,
            "capacity_warnings": list(self.capacity_warnings),
            "tensor_sha256": self.tensor_sha256,
        }


@verb
def measure(
    source: Any,
    matrix: MatrixName = "embedding",
    *,
    z: Z = Z_DEFAULT,
    rows: Rows = None,
    seed: Seed = 0,
    influence: Influence = 0,
    centre: Centre = False,
    remove_top: RemoveTop = 0,
    exclude_ids: ExcludeIds = (),
    only_ids: OnlyIds = (),
    vocab_size: VocabSize = None,
    dtype: Dtype = "float32",
    block_rows: BlockRows = None,
    device: Device = "auto",
    allow_truncated: AllowTruncated = False,
    allow_full_download: AllowFullDownload = False,
    on_progress: ProgressFn | None = None,
    on_bytes: ProgressFn | None = None,
) -> Measured:
    """Mean, standard deviation and epsilon of the cosines between all pairs of rows of a matrix, and its capacity.

    >>> import repcap
    >>> repcap.measure("model.safetensors").epsilon  # doctest: +SKIP

    Parameters
    ----------
    source : str, path, torch.Tensor, numpy.ndarray, torch.nn.Module or Matrix
        a checkpoint as in docs/sources.md, or vectors in memory, shape (n, d), one a row, of any real dtype.
    matrix : str
        `embedding`, `unembedding`, `decoder`, or a tensor's name.
    z : float
        epsilon = mean + z std.
    rows, seed : int
        estimate from so many random rows instead of measuring all.
    influence : int
        how many rows to list that raise, and that lower, epsilon most.
    centre, remove_top :
        also measure without the mean row; without so many of the strongest directions; without both.
    exclude_ids, only_ids, vocab_size :
        row numbers to leave out, to measure alone, and the number of leading rows to measure.
    dtype, block_rows, device :
        of the products; rows in memory at once (64 MiB of them by default); `auto`, `cpu`, `cuda`, `cuda:N`, `mps`.
    allow_truncated, allow_full_download : bool
        see `repcap.open_source`.
    on_progress, on_bytes : callable, optional
        called in this thread with (rows done, rows to do); of a remote source, also from a reading thread, with (bytes
        fetched, bytes in all).

    Returns
    -------
    Measured
        plain numbers; cosines and epsilon have no unit. `to_dict()` is the JSON of `repcap measure`.

    Raises
    ------
    SourceError, VectorsError, InputError, DomainError
        with one line that says what is wrong and what to do. Their base is `repcap.errors.RepcapError`.

    Time: n d^2 operations a pass, two to six passes. Memory: G and a copy (8 d^2 bytes each), a few blocks of rows.
    Formulas: `repcap.geometry.epsilon.moments`.
    """
    asked = dict(locals())
    opened = sources.open_source(
        source,
        matrix,
        allow_truncated=allow_truncated,
        allow_full_download=allow_full_download,
        rows=rows,
        on_progress=on_bytes,
    )
    hashed = HashedMatrix(opened)
    options = geometry.MeasureOptions(**chosen(geometry.MeasureOptions, asked))
    try:
        return with_capacity(geometry.measure_matrix(hashed, options, on_progress=on_progress), hashed.sha256)
    finally:
        if not isinstance(source, Matrix):  # the caller's own matrix stays open
            opened.close()


def measure_both(source: Any, **options: Any) -> list[Measured]:
    """`measure` of embedding and unembedding, one result if they are tied or only one of them is there."""
    opening = {name: options[name] for name in OPENING if name in options}
    pinned = sources.pin_source(source, on_progress=options.get("on_bytes"), **opening)
    if not isinstance(pinned, Matrix):  # where there is no second one, that is said before the first is measured
        sources.open_source(pinned, BOTH[1], **opening).close()
    first = measure(pinned, BOTH[0], **options)
    if first.tied:
        return [dataclasses.replace(first, notes=(*first.notes, TIED))]
    if first.info.role == BOTH[1]:
        return [first]
    return [first, measure(pinned, BOTH[1], **options)]


def with_capacity(measurement: Measurement, tensor_sha256: str | None = None) -> Measured:
    """The measurement with the bracket of the number of vectors at its epsilon."""
    known = {field.name: getattr(measurement, field.name) for field in dataclasses.fields(Measurement)}
    epsilon = measurement.epsilon
    if not 0.0 < epsilon < 1.0:
        why = f"epsilon = {epsilon:.4g} is outside (0, 1): no number of nearly orthogonal vectors belongs to it"
        return Measured(**known, capacity=None, capacity_warnings=(why,), tensor_sha256=tensor_sha256)
    found = bracket(measurement.dim, epsilon, measurement.spread.z)
    return Measured(**known, capacity=found.summary(), capacity_warnings=found.warnings, tensor_sha256=tensor_sha256)
