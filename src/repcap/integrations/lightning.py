"""The callback for Lightning: for the package `lightning`, for `pytorch_lightning`, or for both."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from repcap.errors import MissingExtraError
from repcap.integrations.watch import Watch


def _bases() -> tuple[type, ...]:
    found = [base for base in map(_callback, ("lightning.pytorch", "pytorch_lightning")) if base is not None]
    if not found:
        raise MissingExtraError("repcap.integrations.lightning", "lightning")
    return tuple(dict.fromkeys(found))


def _callback(package: str) -> type | None:
    """The base class in `package`, or None where that is not installed."""
    try:
        base: type = import_module(package).Callback
    except ImportError:
        return None
    return base


class _Epsilon:
    """Logs epsilon, its ratio to random directions and its class every `every` optimiser steps.

    >>> Trainer(callbacks=[EpsilonCallback(every=500)])  # doctest: +SKIP

    The values go to every logger of the trainer at the step at which they were measured, whatever `log_every_n_steps`
    is, and into `trainer.callback_metrics`, where checkpoints and early stopping find them.

    Parameters
    ----------
    every, z, prefix
        see `repcap.integrations.watch.Watch`.
    """

    def __init__(self, every: int = 500, *, z: float = 2.0, prefix: str = "repcap") -> None:
        super().__init__()
        self.watch = Watch(every, z, prefix)
        self._logged = -1

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """A new run begins: its steps count anew."""
        self._logged = -1

    def on_train_batch_end(self, trainer: Any, pl_module: Any, *args: Any, **kwargs: Any) -> None:
        """Measure where a measurement is due: once for each optimiser step, also when gradients are accumulated."""
        import torch

        step = int(trainer.global_step)
        if not self.watch.due(step) or step == self._logged or trainer.sanity_checking:
            return
        self._logged = step
        found = self.watch.measure(pl_module)
        if not found:
            return
        trainer.callback_metrics.update({name: torch.tensor(value) for name, value in found.items()})
        if trainer.is_global_zero:
            for logger in trainer.loggers:
                logger.log_metrics(found, step=step)


EpsilonCallback = type("EpsilonCallback", (_Epsilon, *_bases()), {"__doc__": _Epsilon.__doc__, "__module__": __name__})
