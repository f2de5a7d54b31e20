"""`measure`: open a source, measure a matrix, say how many directions fit at that epsilon."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from repcap.errors import InputError
from repcap.matrix import Matrix, ProgressFn

if TYPE_CHECKING:
    from repcap.geometry.measurement import Measurement

BOTH = ("embedding", "unembedding")
OPENING = ("allow_truncated", "allow_full_download", "rows")
"""Options that say how a source is opened."""


@dataclasses.dataclass(frozen=True)
class Measured:
    """A measurement and the capacity at its epsilon. Attributes of the measurement can be read here, too.

    capacity: {construction, law, upper}: each log10 of the number of vectors, a printable number, and the name of what
    gave it; `law` has `indeterminate` true where epsilon >= 0.1. None where epsilon is not between 0 and 1.
    capacity_warnings: what the reader of the law's number should know.
    """

    measurement: Measurement
    capacity: dict[str, Any] | None
    capacity_warnings: tuple[str, ...] = ()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "measurement":  # asked for while being unpickled
            raise AttributeError(name)
        return getattr(self.measurement, name)

    def to_dict(self) -> dict[str, Any]:
        """The JSON of `repcap measure`."""
        return {
            **self.measurement.to_dict(),
            "capacity": self.capacity,
            "capacity_warnings": list(self.capacity_warnings),
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
    **options: Any,
) -> Measured:
    """Mean, standard deviation and epsilon of the cosines between all pairs of rows of a matrix, and its capacity.

    >>> import repcap
    >>> repcap.measure("model.safetensors").epsilon  # doctest: +SKIP

    Parameters
    ----------
    source : str, path, torch.Tensor, numpy.ndarray, torch.nn.Module or Matrix
        a checkpoint as in docs/sources.md, or vectors in memory, one a row.
    matrix : str
        `embedding`, `unembedding`, or a tensor's name.
    allow_truncated, allow_full_download : bool
        see `repcap.sources.open_source`.
    rows : int, optional
        estimate from so many random rows instead of measuring all.
    on_progress, on_bytes : callable, optional
        called with (rows done, rows to do), and with (bytes fetched, bytes in all) of a remote source.
    options
        of `repcap.geometry.measure.measure_matrix`: z, device, dtype, block_rows, seed, influence, centre, remove_top,
        exclude_ids, only_ids, vocab_size.

    Raises
    ------
    SourceError, VectorsError, InputError, DomainError
        with one line that says what is wrong and what to do.

    Cost: see `measure_matrix`.
    """
    from repcap.geometry.measure import measure_matrix
    from repcap.sources import open_source

    opened = open_source(
        source,
        matrix,
        allow_truncated=allow_truncated,
        allow_full_download=allow_full_download,
        rows=rows,
        on_progress=on_bytes,
    )
    try:
        return with_capacity(measure_matrix(opened, rows=rows, on_progress=on_progress, **options))
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
    from repcap.sources import pin_source

    if not sources:
        raise InputError("no source given: name a checkpoint, a file or a Hub repository")
    measured = []
    for source in sources:
        if matrix != "both":
            measured.append(measure(source, matrix, **options))
            continue
        opening = {name: options[name] for name in OPENING if name in options}
        pinned = pin_source(source, on_progress=options.get("on_bytes"), **opening)
        first = measure(pinned, BOTH[0], **options)
        measured.append(first)
        if not first.measurement.tied:
            measured.append(measure(pinned, BOTH[1], **options))
    return measured


def with_capacity(measurement: Measurement) -> Measured:
    """The measurement with the bracket of the number of vectors at its epsilon."""
    from repcap.laws.bracket import bracket

    epsilon = measurement.epsilon
    if not 0.0 < epsilon < 1.0:
        why = f"epsilon = {epsilon:.4g} is outside (0, 1): no number of nearly orthogonal vectors belongs to it"
        return Measured(measurement, None, (why,))
    found = bracket(measurement.dim, epsilon, measurement.spread.z)
    return Measured(measurement, found.summary(), found.warnings)
