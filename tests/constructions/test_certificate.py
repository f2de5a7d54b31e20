"""Certificates hold, by a checker that shares no code with the library, and none holds with one number changed."""

from __future__ import annotations

import copy
import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

from repcap.bracket.known import at_epsilon
from repcap.constructions import CONSTRUCTIONS
from repcap.constructions.certificate import certificate
from tool_modules import load_tool

TOOL = Path(__file__).resolve().parents[2] / "tools" / "check_certificate.py"
DIMS = (1, 2, 3, 5, 7, 8, 9, 12, 14, 16, 23, 24, 28, 36, 44, 48, 64, 72, 100, 128, 256)
ALONE = {
    "orthonormal": (7, 0.01), "simplex": (7, 0.2), "polygon": (2, 0.8), "sporadic": (23, 0.2), "root_d": (6, 0.5),
    "hadamard": (32, 0.2), "conference": (13, 0.25), "steiner": (28, 0.2), "kerdock": (64, 0.2),
    "delsarte_goethals": (64, 0.3), "quadratic_forms": (32, 0.3), "dual_bch": (64, 0.4), "exponential_sums": (98, 0.3),
    "barnes_wall": (16, 0.5), "reed_muller": (64, 0.8), "extended_bch": (128, 0.3),
    "reed_solomon_signs": (2048, 0.21014), "reed_solomon_lines": (3584, 0.39785),
}  # fmt: skip
"""A member of each family."""
EPSILONS = (0.05, 0.1, 0.125, 0.2, 0.25, 1 / 3, 0.45, 0.5, 0.6, 0.75)


@pytest.fixture(scope="module")
def checker():
    return load_tool("check_certificate")


def written(d, eps, families=None):
    return json.loads(json.dumps(certificate(d, eps, families)))


def test_two_hundred_certificates_of_all_families_hold(checker):
    held = [written(d, eps) for d in DIMS for eps in EPSILONS]
    held += [written(d, eps, (family,)) for family, (d, eps) in ALONE.items()]
    held += [written(d, eps) for d, eps in ((4096, 0.0645), (8192, 0.0613), (16384, 0.3))]
    assert len(held) >= 200
    for one in held:
        checker.check(one)
    assert {part["family"] for one in held for part in one["parts"]} == set(CONSTRUCTIONS)


def changed(held):
    """The certificate with one number changed, for every number in it."""
    for path in paths(held):
        other = copy.deepcopy(held)
        at = other
        for key in path[:-1]:
            at = at[key]
        value = at[path[-1]]
        if isinstance(value, str) and value.startswith("0x"):
            at[path[-1]] = hex(int(value, 16) + 1)
        elif isinstance(value, str) and value.replace("/", "").isdigit():
            at[path[-1]] = f"{int(value.split('/')[0]) + 1}/{value.split('/')[-1] if '/' in value else 7}"
        elif isinstance(value, int):
            at[path[-1]] = value + 1
        elif isinstance(value, float):
            at[path[-1]] = value * 1.001
        else:
            continue
        yield path, other


def paths(held, before=()):
    items = held.items() if isinstance(held, dict) else enumerate(held) if isinstance(held, list) else ()
    for key, value in items:
        yield (*before, key)
        yield from paths(value, (*before, key))


SUMS = ((44, 1 / 3), (128, 0.3), (69, 0.5), (48, 0.6))


@pytest.mark.parametrize("family", [*ALONE, *SUMS], ids=str)
def test_a_certificate_with_one_number_changed_is_refused(checker, family):
    held = written(*family) if family in SUMS else written(*ALONE[family], (family,))
    checker.check(held)
    assert family in SUMS or family in {part["family"] for part in held["parts"]}
    tried = 0
    for path, other in changed(held):
        with pytest.raises((checker.Refused, KeyError, TypeError, ValueError)):
            checker.check(other)
            pytest.fail(f"{path} of {held}")
        tried += 1
    assert tried >= 7


@pytest.mark.parametrize(
    ("d", "eps", "bound", "many"),
    [(24, 0.7, "linear-programming", 10), (576, 0.9, "caps", 3), (300, 0.75, "caps", 3), (100, 0.2, "levenshtein", 2)],
)
def test_a_limit_with_one_number_changed_is_refused(checker, d, eps, bound, many):
    held = json.loads(json.dumps(certificate(d, eps, limit={"epsilon": eps})))
    checker.check(held)
    assert held["limit"]["bound"] == bound
    assert held["limit"]["log10_k"] == pytest.approx(at_epsilon(d, eps)["upper"]["log10_k"], rel=1e-9, abs=1e-6)
    numbers = [(path, other) for path, other in changed(held) if path[0] == "limit"]
    assert len(numbers) >= many
    for path, other in numbers:
        with pytest.raises(checker.Refused):
            checker.check(other)
            pytest.fail(f"{path} of {held}")


@pytest.mark.parametrize(
    ("family", "d", "k", "params", "attained"),
    [
        ("kerdock", 16, 144, {"bits": 4}, 0.25),
        ("delsarte_goethals", 16, 1040, {"bits": 4, "r": 1}, 0.5),
        ("delsarte_goethals", 64, (1 << 16) + 64, {"bits": 6, "r": 1}, None),
        ("quadratic_forms", 32, (1 << 10) + 32, {"bits": 5, "h": 2}, 0.25),
        ("dual_bch", 64, (1 << 12) + 64, {"bits": 6, "t": 2}, 0.25),
        ("reed_muller", 16, 1 << 10, {"bits": 4, "order": 2}, 0.5),
        ("extended_bch", 32, 1 << 15, {"bits": 5, "delta": 7}, 0.5),
        ("extended_bch", 64, 1 << 15, {"bits": 6, "delta": 23}, None),
        ("reed_solomon_signs", 32, 1 << 8, {"m": 2, "N": 8, "K": 3}, 0.25),
        ("polygon", 2, 12, {"k": 12}, math.cos(math.pi / 12)),
    ],
)
def test_sets_are_built_and_no_less_a_coherence_is_believed(checker, family, d, k, params, attained):
    claimed = checker.value(checker.FAMILIES[family](d, params)[1])
    assert checker.FAMILIES[family](d, params)[0] == k
    checker.measure(family, d, k, params, claimed)
    if attained is not None:
        assert attained == pytest.approx(float(claimed))
        with pytest.raises(checker.Refused, match=r"cosine|axes"):
            checker.measure(family, d, k, params, claimed * 0.999)
    if family != "polygon":
        with pytest.raises(checker.Refused):
            checker.measure(family, d, 2 * k if k * d < 10**6 else 3 * k, params, checker.mpf(0.01))


def test_the_tool_imports_neither_repcap_nor_torch_and_names_what_fails(tmp_path):
    held = written(64, 0.13)
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text(json.dumps(held))
    bad.write_text(json.dumps({**held, "k": "0x841"}))
    code = f"import runpy, sys; sys.argv = ['x', {str(good)!r}]; sys.path = [p for p in sys.path if 'src' not in p]"
    code += f"\ntry: runpy.run_path({str(TOOL)!r}, run_name='__main__')"
    code += "\nfinally: print([m for m in ('repcap', 'torch', 'numpy') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split("\n")[:2]) == (0, ["1 certificates hold", "[]"])
    refused = subprocess.run(
        [sys.executable, str(TOOL), str(good), str(bad)], capture_output=True, text=True, check=False
    )
    assert refused.returncode == 1
    assert "bad.json: refused: the parts do not add up" in refused.stderr
