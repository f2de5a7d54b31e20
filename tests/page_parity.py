"""The page's arithmetic against the library's: the points, and what must agree, in a browser or in an engine alone."""

from __future__ import annotations

import math
import random

import pytest

from repcap.bracket.interval import bracket
from repcap.laws import fitted


def page_points():
    """(d, epsilon): a grid, the corners, and 250 drawn at random."""
    chosen = random.Random(0)
    points = [
        (d, eps) for d in (2, 3, 8, 24, 64, 100, 576, 1024, 4096, 16384) for eps in (0.02, 0.0645, 1 / 3, 0.5, 0.9)
    ]
    # Many lines in the plane, and degrees of the upper bound that are too high to compute.
    points += [(2, 0.9), (2, 0.99999), (2, 1 - 1e-9), (3, 1 - 1e-12), (1_000_000, 0.0645), (1_000_000, 0.9)]
    for _ in range(250):
        d = int(math.exp(chosen.uniform(math.log(2), math.log(20_000))))
        points.append((d, min(0.98, math.exp(chosen.uniform(math.log(0.01), 0)))))
    return points


def agree_with_the_library(points, found):
    """log10 k of every law and end, to 1e-9, and the names of the sets and bounds."""
    assert len(found) == len(points) >= 200
    for (d, eps), values in zip(points, found, strict=True):
        expected = bracket(d, eps)
        numbers = {
            **expected.laws,
            "explicit": expected.explicit.log10_k,
            "exists": expected.exists,
            "upper": expected.upper.log10_k,
        }
        for name, value in numbers.items():
            assert values[name]["log10_k"] == pytest.approx(value, rel=1e-13, abs=1e-9), (d, eps, name)
        assert values["upper"]["name"] == expected.upper.name
        assert values["explicit"]["coherence"] <= eps * (1 + 1e-11), (d, eps)


# Between them these give every warning, and none.
WARNED = [(4096, 0.0645), (64, 0.3), (8192, 0.05), (2048, 0.4), (128, 0.147), (512, 0.05), (16, 0.9), (2, 0.7)]
PHRASES = ("proven to exist", "possible at most", "extrapolation", "indeterminate")


def warn_as_the_library_does(found):
    """The page's warnings at `WARNED`, one by one."""
    seen = set()
    for (d, eps), lines in zip(WARNED, found, strict=True):
        expected = bracket(d, eps).warnings
        assert len(lines) == len(expected) + 1, (d, eps)  # and the value of random directions
        for ours, theirs in zip(lines, expected, strict=False):
            told = [phrase for phrase in PHRASES if phrase in theirs]
            assert told == [phrase for phrase in PHRASES if phrase in ours], (d, eps)
            for curve in fitted():
                assert (curve.key in ours) == (curve.key in theirs)
            seen.update(told)
    assert seen == set(PHRASES)
