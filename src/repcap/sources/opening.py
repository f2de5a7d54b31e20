"""`open_source` and `inspect_source`: from a string or an object to a Matrix, or to what could be measured.

What reads from the network is imported only when a source is there: see the door of `repcap.sources.remote`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from repcap.errors import InputError, SourceError
from repcap.matrix import Matrix, ProgressFn
from repcap.sources import formats, remote
from repcap.sources.checkpoint import Checkpoint
from repcap.sources.local_files import open_path
from repcap.sources.package import package_path
from repcap.sources.roles.inspection import Inspection, inspect_checkpoint
from repcap.sources.roles.select import choose
from repcap.sources.spec import Spec, parse_spec


def open_source(
    source: Any,
    matrix: str = "embedding",
    *,
    allow_truncated: bool = False,
    allow_full_download: bool = False,
    rows: int | None = None,
    on_progress: ProgressFn | None = None,
) -> Matrix:
    """Open one matrix of a source; rows are read when asked for.

    Parameters
    ----------
    source : str, path, torch.Tensor, numpy.ndarray, torch.nn.Module, Checkpoint or Matrix
        a string as in docs/sources.md: `org/name[@rev]`, `hf://...`, a path, `pkg://module/file`, `...::tensor`.
    matrix : str
        `embedding`, `unembedding`, `decoder`, or a tensor's name. On a tied model `unembedding` is the embedding.
    allow_truncated : bool
        read a truncated file where the wanted tensor is whole.
    allow_full_download : bool
        remote only: download a whole file from a server that cannot send a part of it.
    rows : int, optional
        remote only: how many rows will be read, so that a quick look does not fetch the whole tensor.
    on_progress : callable, optional
        remote only: called with (bytes done, bytes in all).

    Returns
    -------
    Matrix
        its `info` says role, tying and what decided it; its `tokens` are the row texts where a tokenizer was found.

    Raises
    ------
    SourceError
        and its subclasses, with one line that says what is wrong and what to do.

    Cost: headers only, plus 256 rows (all rows if those are equal) to compare embedding and unembedding.
    """
    if not isinstance(matrix, str):
        raise InputError(f"matrix = {matrix!r}: give embedding, unembedding, decoder, or a tensor's name")
    if isinstance(source, Matrix):
        return source
    options = {"allow_full_download": allow_full_download, "rows": rows, "on_progress": on_progress}
    checkpoint, tensor = _checkpoint(source, allow_truncated, options)
    if tensor is not None and matrix not in ("embedding", tensor):
        raise InputError(f"{source} names tensor {tensor!r} and --matrix names {matrix!r}: give one of the two")
    return choose(checkpoint, tensor or matrix)


def inspect_source(source: Any, *, allow_truncated: bool = False, allow_full_download: bool = False) -> Inspection:
    """What could be measured in a source: tensors, roles, tying, tokenizer and config facts. See `Inspection`."""
    checkpoint, tensor = _checkpoint(source, allow_truncated, {"allow_full_download": allow_full_download})
    return inspect_checkpoint(checkpoint, tensor)


def open_checkpoint(source: Any, *, allow_truncated: bool = False, **options: Any) -> Checkpoint:
    """The whole checkpoint behind a source.

    Raises
    ------
    InputError
        if the source names one tensor.
    """
    checkpoint, tensor = _checkpoint(source, allow_truncated, options)
    if tensor is not None:
        raise InputError(f"{source}: a whole model is needed here, not one tensor: leave out ::{tensor}")
    return checkpoint


def pin_source(
    source: Any,
    *,
    allow_truncated: bool = False,
    allow_full_download: bool = False,
    rows: int | None = None,
    on_progress: ProgressFn | None = None,
) -> Any:
    """`source`, or where it stands for a moving revision on the Hub, its checkpoint at the commit of now.

    For callers that open several matrices of one source. Cost: none, or what opening the checkpoint costs.
    """
    if not isinstance(source, (str, os.PathLike)):
        return source
    spec = parse_spec(source)
    if spec.scheme != "hub" or spec.tensor is not None:
        return source
    options = {"allow_full_download": allow_full_download, "rows": rows, "on_progress": on_progress}
    return _checkpoint(source, allow_truncated, options)[0]


def _checkpoint(source: Any, allow_truncated: bool, options: dict[str, Any]) -> tuple[Checkpoint, str | None]:
    """(checkpoint, tensor named after `::`)."""
    if isinstance(source, Checkpoint):
        return source, None
    if not isinstance(source, (str, os.PathLike)):
        return _in_memory(source), None
    spec = parse_spec(source)
    if spec.scheme in ("hub", "url"):
        return remote.open_remote(spec, allow_truncated=allow_truncated, **options), spec.tensor
    path = package_path(spec.location, spec.text) if spec.scheme == "package" else Path(spec.location)
    return open_local(spec, path, allow_truncated), spec.tensor


def open_local(spec: Spec, path: Path, allow_truncated: bool) -> Checkpoint:
    """The checkpoint in a local file or directory, by its name."""
    try:
        return open_path(spec.text if spec.tensor is None else spec.text.rpartition("::")[0], path, allow_truncated)
    except OSError as error:
        where = error.filename or path
        raise SourceError(f"{where} cannot be read: {(error.strerror or str(error)).lower()}") from error


def _in_memory(source: Any) -> Checkpoint:
    """The checkpoint that a Python object is."""
    found: Checkpoint | None = formats.open_object(source)
    if found is None:
        raise InputError(
            f"cannot measure a {type(source).__name__}: give a path, a spec, a torch tensor or module, or a numpy array"
        )
    return found
