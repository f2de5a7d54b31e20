"""What both callbacks share: which weights are watched, how often, and what is logged of them."""

from __future__ import annotations

import dataclasses
import logging
from typing import TYPE_CHECKING

from repcap import geometry
from repcap.errors import InputError
from repcap.integrations.weights import find_weights
from repcap.numerics import Z_DEFAULT

if TYPE_CHECKING:
    import torch
    from torch import nn

CLASS_NUMBERS = {"low": 0.0, "between": 1.0, "high": 2.0}
"""Loggers draw numbers: class low (epsilon < 0.1) is 0, between is 1, high (epsilon > 0.2) is 2."""

_log = logging.getLogger("repcap.integrations")


@dataclasses.dataclass
class Watch:
    """Measures a model's embedding, and its unembedding where that is another matrix, every `every` steps.

    every: optimiser steps between measurements. z: epsilon = mean + z std. prefix: in front of the names of what is
    logged. last: the values of the last measurement.

    Raises
    ------
    InputError
        if `every` is no positive whole number.
    """

    every: int = 500
    z: float = Z_DEFAULT
    prefix: str = "repcap"

    def __post_init__(self) -> None:
        if isinstance(self.every, bool) or not isinstance(self.every, int) or self.every < 1:
            raise InputError(f"every = {self.every!r}: measure every so many steps, a whole number of at least 1")
        self.last: dict[str, float] = {}
        self._silenced = False

    def due(self, step: int) -> bool:
        """Whether a measurement belongs to this step."""
        return step > 0 and step % self.every == 0

    def measure(self, model: nn.Module) -> dict[str, float]:
        """{prefix/name: value} of epsilon, epsilon_ratio and class of each watched weight; {} where it cannot be read.

        One matrix: `repcap/epsilon`. Two: `repcap/embedding_epsilon`, `repcap/unembedding_epsilon`. Training is never
        stopped by a measurement: what goes wrong is logged as a warning, once.

        Cost: n d^2 operations a matrix. Memory: see `repcap.geometry.measurement.live.live_spread`.
        """
        found: dict[str, float] = {}
        try:
            for name, weight in watched(model).items():
                spread = geometry.live_spread(weight, self.z)
                found |= {
                    f"{self.prefix}/{name}epsilon": spread.epsilon,
                    f"{self.prefix}/{name}epsilon_ratio": spread.ratio,
                    f"{self.prefix}/{name}class": CLASS_NUMBERS[spread.class_name],
                }
        except Exception as error:  # a full device, a weight that cannot be read: whatever it is, training goes on
            if not self._silenced:
                reason = " ".join(str(error).split()) or type(error).__name__
                _log.warning("repcap measures nothing: %s", reason)
                self._silenced = True
            return {}
        self.last = found
        return found


def watched(model: nn.Module) -> dict[str, torch.Tensor]:
    """Prefix of the logged names -> weight: {"": embedding} where there is one matrix, two prefixes for two.

    Raises
    ------
    SourceError
        if the model has no embedding under a known name, or its weights are partitioned over processes.
    """
    embedding, unembedding = find_weights(model)
    if unembedding is None or unembedding is embedding or unembedding.data_ptr() == embedding.data_ptr():
        return {"": embedding}
    return {"embedding_": embedding, "unembedding_": unembedding}
