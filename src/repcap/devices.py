"""Which device computes, and where its float64 sums live."""

from __future__ import annotations

import torch

from repcap.errors import InputError


def resolve_device(device: str | torch.device = "auto") -> torch.device:
    """The torch device for `auto`, `cpu`, `cuda`, `cuda:1`, `mps`.

    `auto` takes cuda if there is one, else mps, else cpu.

    Raises
    ------
    InputError
        if torch does not know the device or this machine does not have it.
    """
    if isinstance(device, str) and device == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        chosen = torch.device(device)
    except RuntimeError as error:
        raise InputError(f"unknown device {device!r}: use auto, cpu, cuda, cuda:N or mps") from error
    present = {
        "cpu": True,
        "cuda": torch.cuda.is_available() and (chosen.index or 0) < torch.cuda.device_count(),
        "mps": torch.backends.mps.is_available(),
    }
    if not present.get(chosen.type, False):
        raise InputError(f"device {str(device)!r} is not available on this machine: use --device auto or cpu")
    return chosen


def accumulator_device(device: torch.device) -> torch.device:
    """Where float64 sums live: on the device itself, or on the cpu for mps, which has no float64."""
    return torch.device("cpu") if device.type == "mps" else device
