"""A law is one object: added to the table it is fitted, answered by, drawn and named, with no other line changed."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from repcap import laws
from repcap.bracket.capacity import capacity
from repcap.bracket.interval import bracket
from repcap.errors import InputError
from repcap.laws.fitting.fit import fit
from repcap.laws.law import Curve, Law
from repcap.verbs.fit import command as fit_command

CUBIC = Law(
    "cubic",
    "eps = (C ln k / d)^(1/3)",
    {"C": 2.0},
    lambda log_k, d, params: np.cbrt(params["C"] * log_k / d),
    lambda d, eps, params: d * eps**3 / params["C"],
    curves=(Curve("cubic", "law cubic", "cubic", "of a test", fitted=True),),
    above_d=False,
)


@pytest.fixture
def cubic(monkeypatch):
    monkeypatch.setitem(laws.LAWS, "cubic", CUBIC)


def test_capacity_answers_by_it(cubic):
    assert capacity(4096, 0.0645).laws["cubic"]["log10_k"] == pytest.approx(4096 * 0.0645**3 / 2 / np.log(10))
    assert capacity(4096, k=1e6).laws["cubic"]["epsilon"] == pytest.approx((2 * np.log(1e6) / 4096) ** (1 / 3))
    assert capacity(k=1e6, eps=0.1).laws["cubic"]["d"] == pytest.approx(2 * np.log(1e6) / 0.1**3)
    found = bracket(4096, 0.0645)
    assert "cubic" in found.to_dict()
    assert any("cubic gives" in warning for warning in found.warnings)


def test_fit_fits_it_and_names_it(cubic):
    k, d = np.array([20.0, 40.0, 90.0, 300.0]), np.full(4, 8.0)
    assert fit((k, d, np.cbrt(0.3 * np.log(k) / d)), "cubic").params["C"] == pytest.approx(0.3, rel=1e-6)
    assert list(laws.LAWS)[-1] == fit("optimized", "cubic").law == "cubic"
    with pytest.raises(InputError, match="welch-power, cubic"):
        fit("optimized", "quartic")


def test_the_command_line_shows_it(cubic, repcap):
    assert "law cubic" in repcap("capacity", "--d", 64, "--eps", 0.2).out
    importlib.reload(fit_command)  # its help is written when it is loaded
    help_text = " ".join(repcap("fit", "--help").out.replace("│", " ").split())
    assert ", ".join(laws.LAWS) in help_text


def test_without_it_nothing_is_left():
    assert "cubic" not in capacity(64, 0.2).laws
    assert [curve.key for curve in laws.fitted()] == ["ratio", "full"]
    assert laws.published().key == "full"
