"""The embedding and unembedding parameters of a module in memory, found as every other source's are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from repcap.errors import MatrixNotFound, SourceError
from repcap.sources.formats.module import ModuleCheckpoint
from repcap.sources.roles.roles import roles_of

if TYPE_CHECKING:
    import torch
    from torch import nn


def find_weights(module: nn.Module) -> tuple[torch.Tensor, torch.Tensor | None]:
    """(embedding, unembedding or None), one vector a row: the module's own parameters, not copies.

    Raises
    ------
    MatrixNotFound
        if no parameter has a known name.
    SourceError
        if the parameter is partitioned over processes, so that its values are not here.
    """
    checkpoint = ModuleCheckpoint(module)
    roles = roles_of(checkpoint)
    if roles.embedding is None:
        raise MatrixNotFound(f"{type(module).__name__} has no token embedding under a known name")
    named: dict[str, torch.Tensor] = dict(module.named_parameters(remove_duplicate=False))
    named |= dict(module.named_buffers(remove_duplicate=False))
    return _own(named, roles.embedding), (_own(named, roles.unembedding) if roles.unembedding is not None else None)


def _own(named: dict[str, torch.Tensor], name: str) -> torch.Tensor:
    weight = named[name]
    if hasattr(weight, "full_tensor") or weight.dim() != 2 or not weight.numel():
        raise SourceError(f"{name} is partitioned over processes: its rows are not in this process")
    return weight
