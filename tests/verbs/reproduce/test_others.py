"""Claims of others, against values that were computed independently."""

from __future__ import annotations

import json

import pytest

from repcap.verbs.reproduce import others


@pytest.fixture(scope="module")
def found():
    return {claim.key: claim for claim in others.claims()}


@pytest.mark.parametrize(
    ("angle", "claimed", "most"), [(89, 8.19, 11.67), (88, 32.77, 25.13), (87, 73.73, 43.39), (85, 204.8, 88.97)]
)
def test_a_power_of_the_angle(found, angle, claimed, most):
    claim = found[f"others.yoder.{angle}"]
    ends = claim.values["bracket"]
    assert claim.values["log10_claimed"] == pytest.approx(claimed, abs=0.01)
    assert ends["upper"]["log10_k"] <= most + 0.01  # a tighter bound may have come since
    assert (claim.status == "contradicted") == (claimed > ends["upper"]["log10_k"])
    assert ends["explicit"]["log10_k"] < ends["upper"]["log10_k"]


def test_ten_thousand_in_a_hundred_dimensions(found):
    values = found["others.crowd"].values
    assert values["explicit"] == pytest.approx(75.52, abs=0.01)
    assert values["reported"] < values["packed"] < values["limit"] <= 81.96


def test_stored_is_not_computed(found):
    claim = found["others.computed"]
    assert claim.values["log10_computed"] == pytest.approx(6.146, abs=1e-3)
    assert claim.values["bracket"]["explicit"]["log10_k"] == pytest.approx(13.546, abs=1e-3)


def test_each_says_where_it_is_from(found):
    for claim in found.values():
        assert "second hand" in claim.note
        assert claim.values["quoted"] == others.SECOND_HAND
        assert claim.values["source"]
    json.dumps([claim.to_dict() for claim in found.values()])


def test_command(repcap):
    done = repcap("reproduce", "--claims", "--notes")
    assert done.code == 0
    assert "Claims of others" in done.out
    assert "second hand" in done.out
    assert "7 claims, set beside what is proven: 3 contradicted, 2 unsupported, 2 added." in done.out
    assert " of 0 " not in done.out
    assert max(len(line) for line in done.out.splitlines()) <= 80
    record = repcap("reproduce", "--only", "others", "--json").json
    assert [claim["key"] for claim in record["claims"]] == [claim.key for claim in others.claims()]
