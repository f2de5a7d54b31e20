"""The best rows so far, kept out of the way of the search."""

from __future__ import annotations

import math
import tempfile
from typing import IO

import numpy as np
import torch

IN_MEMORY = 1 << 21
"""Numbers (8 MB of float32) up to which the best rows are kept in memory; larger ones go to an unnamed file."""


class BestRows:
    """Keeps a copy of the rows with the least coherence offered.

    A search over k rows in R^d holds 3 k d numbers already. A large copy is therefore kept in the memory of the host
    where the search runs on an accelerator, and in an unnamed temporary file where it runs on the cpu: writing it
    costs far less than the pass that found it.
    """

    def __init__(self, k: int, d: int, device: torch.device, dtype: torch.dtype = torch.float32) -> None:
        self.shape, self._dtype = (k, d), dtype
        self.coherence = math.inf
        self._rows: torch.Tensor | None = None
        self._file: IO[bytes] | None = None
        self._to_file = device.type == "cpu" and k * d > IN_MEMORY

    def offer(self, coherence: float, rows: torch.Tensor) -> bool:
        """Keep a copy of `rows` (k, d) if `coherence` is less than that of the rows kept. Returns whether it was."""
        if not coherence < self.coherence:
            return False
        if self._to_file:
            if self._file is None:
                self._file = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as this object
            self._file.seek(0)
            self._file.write(rows.contiguous().numpy().data)
            self._file.flush()
        elif self._rows is None:
            self._rows = rows.detach().cpu().clone()
        else:
            self._rows.copy_(rows)
        self.coherence = coherence
        return True

    def rows(self) -> torch.Tensor:
        """The rows kept, (k, d) on the cpu."""
        if self._file is not None:
            self._file.seek(0)
            kind = np.float64 if self._dtype == torch.float64 else np.float32
            read = np.fromfile(self._file, dtype=kind, count=self.shape[0] * self.shape[1])
            return torch.from_numpy(read).view(self.shape)
        if self._rows is None:
            raise RuntimeError("no rows were offered yet")
        return self._rows
