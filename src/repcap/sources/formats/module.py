"""`torch.nn.Module` and transformers models: their own parameters, read in place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import nn

from repcap.errors import InputError, MatrixNotFound
from repcap.sources import names
from repcap.sources.checkpoint import Checkpoint
from repcap.sources.formats.arrays import ArrayCheckpoint
from repcap.sources.formats.memory import TensorsCheckpoint


def open_object(source: Any) -> Checkpoint | None:
    """The checkpoint that a Python object is, or None.

    Raises
    ------
    InputError
        for an array with masked values.
    """
    if isinstance(source, np.ma.MaskedArray) and np.ma.is_masked(source):
        raise InputError("the array has masked values, which are no numbers: give .filled(0) or leave their rows out")
    if isinstance(source, np.ndarray):
        return ArrayCheckpoint(source)
    if isinstance(source, torch.Tensor):
        return TensorsCheckpoint("tensor", {"tensor": source})
    return ModuleCheckpoint(source) if isinstance(source, torch.nn.Module) else None


HEADS = ("lm_head", "embed_out", "output_layer", "proj_out")
"""Layers that are unembeddings wherever they stand; others of the table's names are parts of blocks, too."""


class ModuleCheckpoint(TensorsCheckpoint):
    """Parameters and buffers of a module. Where the model says itself what its embeddings are, that is believed."""

    format = "module"

    def __init__(self, module: nn.Module) -> None:
        named: dict[str, torch.Tensor] = {}
        named.update(module.named_parameters(remove_duplicate=False))
        named.update(module.named_buffers(remove_duplicate=False))
        super().__init__(type(module).__name__, named, _config(module))
        self._module = module
        if not named:
            raise MatrixNotFound(f"{self.spec} has no parameters: nothing to measure")
        if (head := _hidden_head(module, named)) is not None:
            self.complete = False
            self.missing = f"the weight of {head} is no parameter of its own (quantised, or computed from others)"
        if any("_flat_param" in name for name in named):
            self.note("parameters are flattened by FSDP: gather them first (FSDP.summon_full_params)")

    def declared(self) -> tuple[str | None, str | None]:
        return self._name_of("get_input_embeddings"), self._name_of("get_output_embeddings")

    def _name_of(self, method: str) -> str | None:
        """Name of the weight that an accessor of the model gives."""
        weight = _weight(_call(self._module, method))
        if weight is None:
            return None
        hits = [name for name, tensor in self._named.items() if tensor is weight]
        # A tied weight has two names; the accessor's own is the one that the other accessor does not explain.
        return hits[-1] if method == "get_output_embeddings" and hits else next(iter(hits), None)


def _hidden_head(module: nn.Module, named: Mapping[str, torch.Tensor]) -> str | None:
    """A layer with the name of an unembedding whose weight is not among the tensors: it must not pass for missing."""
    seen = {names.plain(name) for name, tensor in named.items() if tensor.is_floating_point()}
    for name in (str(name) for name, _ in module.named_modules()):
        plain = names.plain(name)
        if plain.rpartition(".")[2] in HEADS and plain not in seen:
            return name
    return None


def _call(module: nn.Module, method: str) -> Any:
    accessor = getattr(module, method, None)
    if accessor is None:
        return None
    try:
        return accessor()
    except (NotImplementedError, AttributeError, TypeError):
        return None  # models without such a layer say so in several ways


def _weight(layer: Any) -> torch.Tensor | None:
    """The weight of a layer, through PEFT's wrappers."""
    for _ in range(4):
        if layer is None:
            return None
        saved = getattr(layer, "modules_to_save", None)
        active = getattr(layer, "active_adapter", None)
        if saved is not None and isinstance(active, str) and active in saved:
            layer = saved[active]
            continue
        inner = getattr(layer, "base_layer", None)
        if inner is None:
            break
        layer = inner
    weight = getattr(layer, "weight", None)
    return weight if isinstance(weight, torch.Tensor) else None


def _config(module: nn.Module) -> Mapping[str, Any]:
    config = getattr(module, "config", None)
    to_dict = getattr(config, "to_dict", None)
    if callable(to_dict):
        found = to_dict()
        return found if isinstance(found, dict) else {}
    return config if isinstance(config, dict) else {}
