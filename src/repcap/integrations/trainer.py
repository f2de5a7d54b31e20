"""The callback for the Trainer of transformers (and of TRL, which builds on it)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from repcap.errors import MissingExtraError
from repcap.integrations.watch import Watch

try:
    from transformers import TrainerCallback
except ImportError as error:
    raise MissingExtraError("repcap.integrations.EpsilonCallback", "latents") from error

if TYPE_CHECKING:
    from torch import nn


class EpsilonCallback(TrainerCallback):  # type: ignore[misc] # transformers ships no types
    """Logs epsilon, its ratio to random directions and its class every `every` steps.

    >>> EpsilonCallback(every=500).attach(trainer)  # doctest: +SKIP

    `attach` adds the callback to the trainer and logs through `trainer.log`, so that the values reach every logger that
    the trainer has (TensorBoard, W&B, ...), the console and `trainer.state.log_history`.

    Given as `Trainer(callbacks=[EpsilonCallback()])` it cannot reach the trainer: the values then go into
    `state.log_history` and to the callbacks that come after it, the console among them, but not to the loggers that
    the Trainer puts before it. Attach it wherever a logger shall have them.

    Parameters
    ----------
    every, z, prefix
        see `repcap.integrations.watch.Watch`.
    """

    def __init__(self, every: int = 500, *, z: float = 2.0, prefix: str = "repcap") -> None:
        self.watch = Watch(every, z, prefix)
        self._trainer: Any = None
        self._pending: dict[str, float] = {}
        self._logged = -1

    def attach(self, trainer: Any) -> EpsilonCallback:
        """Add this callback to a Trainer, with a way to its loggers; returns the callback."""
        self._trainer = trainer
        if self not in trainer.callback_handler.callbacks:
            trainer.add_callback(self)
        return self

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """A new run begins: its steps count anew."""
        self._logged, self._pending = -1, {}

    def on_step_end(self, args: Any, state: Any, control: Any, model: nn.Module | None = None, **kwargs: Any) -> Any:
        """Measure where a measurement is due; every process computes, none waits."""
        if model is None or not self.watch.due(state.global_step) or state.global_step == self._logged:
            return control
        found = self.watch.measure(model)
        self._logged = state.global_step
        if not found:
            return control
        if self._trainer is not None:
            # Writing a log clears the wish for one: the Trainer's own, with the loss, may be due at this very step.
            wanted = control.should_log
            self._trainer.log(dict(found))
            control.should_log = wanted
        else:
            self._pending = found
            control.should_log = True
        return control

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **kwargs: Any) -> None:
        """Without a trainer: put the values into the log that is being written."""
        if not self._pending or logs is None:
            return
        logs.update(self._pending)
        if state.log_history and state.log_history[-1].get("step") == state.global_step:
            state.log_history[-1].update(self._pending)
        self._pending = {}
