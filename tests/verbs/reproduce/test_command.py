"""`repcap reproduce` on the command line."""

from __future__ import annotations

import dataclasses

import pytest


def test_prints_three_columns_and_the_models_in_80_columns(repcap):
    done = repcap("reproduce", "--bootstrap", 20)
    assert done.code == 0, done.err
    said = " ".join(done.out.split())
    assert (
        "21 of 21 numbers agree; 45 of 45 rows of Table 1 agree (31 with a capacity, 14 called indeterminate)" in said
    )
    assert "claims are not counted" in said
    for words in ("975 %", "52.4 % on k > d", "2112 lines exist", "rho = +0.661", "TinyLlama 1.1B"):
        assert words in done.out
    assert max(map(len, done.out.splitlines())) <= 80


def test_check_passes_on_the_shipped_data(repcap):
    assert repcap("reproduce", "--check", "--bootstrap", 0, "--json").code == 0


def test_check_fails_where_a_number_departs(repcap, monkeypatch):
    from repcap.laws.fitting import data

    models = list(data.published_models())
    models[14] = dataclasses.replace(models[14], epsilon=0.065)
    monkeypatch.setattr("repcap.verbs.reproduce.models.published_models", lambda: tuple(models))
    done = repcap("reproduce", "--only", "models", "--check")
    assert done.code == 1
    assert "≠ Llama 2 7B" in done.out
    assert "Table 1: Llama 2 7B" in " ".join(done.err.split())
    assert repcap("reproduce", "--only", "models").code == 0


def test_json_has_every_number(repcap):
    record = repcap("reproduce", "--only", "models,capacities", "--json").json
    assert {claim["group"] for claim in record["claims"]} == {"Models", "Capacities in the text"}
    assert len(record["rows"]) == 45
    assert record["arxiv"] == "2606.02765"


def test_notes(repcap):
    assert "Delsarte-Goethals" in repcap("reproduce", "--only", "packings", "--notes").out


def test_writes_the_report(repcap, tmp_path, monkeypatch):
    from repcap.verbs.reproduce.figure import DRAWINGS

    monkeypatch.setattr(
        "repcap.verbs.reproduce.write_report.DRAWINGS", DRAWINGS[:1]
    )  # the whole is drawn in tests/report
    done = repcap("reproduce", "--bootstrap", 0, "--out", tmp_path / "report")
    assert done.code == 0, done.err
    assert (tmp_path / "report" / "report.html").stat().st_size > 20_000
    assert (tmp_path / "report" / "figures" / f"{DRAWINGS[0].name}.svg").is_file()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--only", "nope"), "no group 'nope'"),
        (("--only", ","), "names no group"),
        (("--only", "models", "--out", "x"), "leave --only out"),
    ],
)
def test_one_clear_line(repcap, arguments, message):
    done = repcap("reproduce", *arguments)
    assert done.code == 2
    assert message in done.err
    assert done.err.count("\n") == 1
