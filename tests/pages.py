"""What the tests of the page share: a measured record, and parts of the page."""

from __future__ import annotations

import numpy as np


def with_histogram(name: str, seed: int):
    sample = np.clip(np.random.default_rng(seed).normal(0.02, 0.04, 20_000), -1, 1)
    counts, edges = np.histogram(sample, bins=300, range=(-1, 1))
    return {
        "name": name,
        "source": f"here/{name}",
        "matrix": "embedding",
        "dim": 512,
        "count": 4000,
        "mean": float(sample.mean()),
        "std": float(sample.std()),
        "epsilon": float(sample.mean() + 2 * sample.std()),
        "epsilon_se": 0.0003,
        "tied": True,
        "histogram": {"edges": edges.tolist(), "counts": counts.tolist()},
    }


def heading(page, key: str):
    return page.locator(f'#models [data-sort="{key}"]')


def ground(page) -> str:
    return page.evaluate("getComputedStyle(document.body).backgroundColor")
