"""`inspect`: what could be measured in a source."""

from __future__ import annotations

from typing import Any

from repcap import sources
from repcap.options import AllowFullDownload, AllowTruncated, verb
from repcap.sources.roles.inspection import Inspection


@verb
def inspect(
    source: Any, *, allow_truncated: AllowTruncated = False, allow_full_download: AllowFullDownload = False
) -> Inspection:
    """What could be measured in a source: tensors, roles, tying, tokenizer and config facts.

    Cost: headers, 256 rows (every row where embedding and unembedding are equal there), and the tokenizer file.

    Raises
    ------
    SourceError
        if the source cannot be read.
    """
    return sources.inspect_source(source, allow_truncated=allow_truncated, allow_full_download=allow_full_download)


inspect_source = inspect
"""The name of `inspect` before 0.2."""

__all__ = ["Inspection", "inspect", "inspect_source"]
