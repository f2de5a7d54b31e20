"""Scales of 8-bit weights, and packed formats that must not be measured as they lie in the file."""

from __future__ import annotations

from repcap.matrix import Matrix
from repcap.sources.checkpoint import Checkpoint, TensorEntry


def packed_module(name: str) -> str | None:
    return None


def refuse_packed(checkpoint: Checkpoint, entry: TensorEntry) -> None:
    return None


def apply_scales(checkpoint: Checkpoint, entry: TensorEntry, matrix: Matrix) -> Matrix:
    return matrix
