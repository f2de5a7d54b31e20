"""`measure`: open a source, measure a matrix, say how many directions fit at that epsilon."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from repcap import geometry
from repcap.errors import InputError
from repcap.geometry.measurement.measurement import Measurement
from repcap.matrix import Matrix, ProgressFn
from repcap.studies.digest import HashedMatrix

if TYPE_CHECKING:
    from typing import Unpack

    from repcap.geometry.measurement.measuring import MeasureKeywords

BOTH = ("embedding", "unembedding")
TIED = "embedding and unembedding are tied: one matrix, measured once"
OPENING = ("allow_truncated", "allow_full_download", "rows")
"""Options that say how a source is opened."""


@dataclasses.dataclass(frozen=True, repr=False)
class Measured(Measurement):
    """A measurement, the capacity at its epsilon, and a fingerprint of the rows.

    capacity: {construction, law, upper}: each log10 of the number of vectors, a printable number, and the name of what
    gave it; `law` has `indeterminate` true where epsilon >= 0.1. None where epsilon is not between 0 and 1.
    capacity_warnings: what the reader of the law's number should know.
    tensor_sha256: of all rows as they were read, in row order; None where not all were read.
    """

    capacity: dict[str, Any] | None
    capacity_warnings: tuple[str, ...] = ()
    tensor_sha256: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The JSON of `repcap measure`."""
        return {
            **super().to_dict(),
            "capacity": self.capacity,
            "capacity_warnings": list(self.capacity_warnings),
            "tensor_sha256": self.tensor_sha256,
        }


def measure(
    source: Any,
    matrix: str = "embedding",
    *,
    allow_truncated: bool = False,
    allow_full_download: bool = False,
    rows: int | None = None,
    on_progress: ProgressFn | None = None,
    on_bytes: ProgressFn | None = None,
    **options: Unpack[MeasureKeywords],
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
    allow_truncated, allow_full_download : bool
        see `repcap.open_source`.
    rows : int, optional
        estimate from so many random rows instead of measuring all.
    on_progress, on_bytes : callable, optional
        called in this thread with (rows done, rows to do); of a remote source, also from a reading thread, with (bytes
        fetched, bytes in all).
    options
        z = 2.0: epsilon = mean + z std. device = "auto": cpu, cuda, cuda:N or mps. dtype = "float32": of the products,
        or "float64". seed = 0. influence = 0: how many rows to list at either end. centre = False, remove_top = 0:
        also without the mean row, without the strongest directions. exclude_ids, only_ids, vocab_size: which rows.
        block_rows: rows in memory at once. `repcap.geometry.measurement.measuring.measure_matrix` says more.

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
    from repcap.sources import open_source

    opened = open_source(
        source,
        matrix,
        allow_truncated=allow_truncated,
        allow_full_download=allow_full_download,
        rows=rows,
        on_progress=on_bytes,
    )
    hashed = HashedMatrix(opened)
    try:
        found = geometry.measure_matrix(hashed, rows=rows, on_progress=on_progress, **options)
        return with_capacity(found, hashed.sha256)
    finally:
        if not isinstance(source, Matrix):  # the caller's own matrix stays open
            opened.close()


def measure_all(sources: Sequence[Any], matrix: str = "embedding", **options: Any) -> list[Measured]:
    """`measure` of several sources; matrix `both` measures embedding and unembedding of each, one if they are tied.

    Raises
    ------
    InputError
        if `sources` is empty.
    """
    from repcap.sources import open_source, pin_source

    if not sources:
        raise InputError("no source given: name a checkpoint, a file or a Hub repository")
    measured = []
    for source in sources:
        if matrix != "both":
            measured.append(measure(source, matrix, **options))
            continue
        opening = {name: options[name] for name in OPENING if name in options}
        pinned = pin_source(source, on_progress=options.get("on_bytes"), **opening)
        if not isinstance(pinned, Matrix):  # where there is no second one, that is said before the first is measured
            open_source(pinned, BOTH[1], **opening).close()
        first = measure(pinned, BOTH[0], **options)
        measured.append(dataclasses.replace(first, notes=(*first.notes, TIED)) if first.tied else first)
        if not first.tied:
            measured.append(measure(pinned, BOTH[1], **options))
    return measured


def with_capacity(measurement: Measurement, tensor_sha256: str | None = None) -> Measured:
    """The measurement with the bracket of the number of vectors at its epsilon."""
    from repcap.bracket.interval import bracket

    known = {field.name: getattr(measurement, field.name) for field in dataclasses.fields(Measurement)}
    epsilon = measurement.epsilon
    if not 0.0 < epsilon < 1.0:
        why = f"epsilon = {epsilon:.4g} is outside (0, 1): no number of nearly orthogonal vectors belongs to it"
        return Measured(**known, capacity=None, capacity_warnings=(why,), tensor_sha256=tensor_sha256)
    found = bracket(measurement.dim, epsilon, measurement.spread.z)
    return Measured(**known, capacity=found.summary(), capacity_warnings=found.warnings, tensor_sha256=tensor_sha256)
