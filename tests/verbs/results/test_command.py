"""`repcap results`: list, show, export, delete."""

from __future__ import annotations

import csv
import io
import json

import pytest

from repcap.jobs.store import Store, Stored

RECORDS = {
    "aa11": (
        "measure",
        {"name": "one", "role": "embedding", "dim": 64, "epsilon": 0.25, "class": "high", "tied": True},
    ),
    "aa22": (
        "measure",
        {"name": "two, |odd|", "role": "unembedding", "dim": 64, "epsilon": None, "dropped": [{"i": 1}]},
    ),
    "bb33": ("pack", {"k": 6, "d": 3, "seed": 0, "coherence": 0.4472135954999579, "lower_bound": 0.4, "method": "x"}),
}


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Store("repcap.sqlite") as opened:
        for key, (kind, record) in RECORDS.items():
            opened.put_all([Stored(key, key[:2], kind, {**record, "capacity": {"law": {"log10": 7.5}}}, {"seed": 1})])
        opened.put_failure("cc44", "measure", "org/name", "RemoteError", "403: ask for access")
    return opened.path


def test_list(store, repcap):
    got = repcap("results", "list")
    assert got.code == 0
    assert "0.44721" in got.out
    assert "two, |odd|" in got.out
    assert "1 failed" in got.err
    assert len(repcap("results", "list", "--json").json["results"]) == 3
    assert [item["key"] for item in repcap("results", "list", "--kind", "pack", "--json").json["results"]] == ["bb33"]
    failures = repcap("results", "list", "--failures", "--json").json["failures"]
    assert failures[0]["reason"] == "403: ask for access"
    assert "ask for access" in repcap("results", "list", "--failures").out


def test_show_by_the_beginning_of_a_key(store, repcap):
    assert repcap("results", "show", "bb").json["record"]["coherence"] == 0.4472135954999579
    assert repcap("results", "show", "cc").json["label"] == "org/name"
    got = repcap("results", "show", "aa")
    assert (got.code, "aa11, aa22" in got.err) == (2, True)
    assert "no result in" in repcap("results", "show", "zz").err


def test_export_csv(store, repcap):
    rows = list(csv.DictReader(io.StringIO(repcap("results", "export").out)))
    assert [row["key"] for row in rows] == ["aa11", "aa22", "bb33"]
    assert rows[0]["epsilon"] == "0.25"
    assert rows[0]["tied"] == "true"
    assert rows[1]["epsilon"] == ""
    assert rows[1]["name"] == "two, |odd|"
    assert json.loads(rows[1]["dropped"]) == [{"i": 1}]
    assert float(rows[2]["coherence"]) == 0.4472135954999579
    assert rows[2]["capacity.law.log10"] == "7.5"
    assert rows[2]["provenance.seed"] == "1"
    assert rows[0]["k"] == ""


def test_export_json_markdown_and_files(store, repcap, tmp_path):
    held = repcap("results", "export", "--format", "json").json["records"]
    assert [item["key"] for item in held] == list(RECORDS)
    assert held[1]["record"]["epsilon"] is None
    text = repcap("results", "export", "--kind", "measure", "--format", "md").out
    lines = text.splitlines()
    assert len(lines) == 4
    assert "two, \\|odd\\|" in lines[3]
    for name in ("out.csv", "out.json", "out.md"):
        assert repcap("results", "export", "-o", name).code == 0
        assert (tmp_path / name).stat().st_size > 0
    assert (tmp_path / "out.csv").read_text() == repcap("results", "export").out


def test_export_parquet(store, repcap, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    assert repcap("results", "export", "-o", "out.parquet").code == 0
    table = parquet.read_table(tmp_path / "out.parquet").to_pydict()
    assert table["key"] == list(RECORDS)
    assert table["epsilon"] == [0.25, None, None]
    assert table["coherence"] == [None, None, 0.4472135954999579]
    assert table["tied"] == [True, None, None]
    assert table["dropped"] == [None, '[{"i": 1}]', None]


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["export", "--format", "xls"], "cannot export 'xls'"),
        (["export", "-o", "out.xls"], "cannot tell the format"),
        (["export", "--format", "parquet"], "give a file"),
        (["export", "--kind", "published"], "no results of kind published"),
        (["list", "--store", "none.sqlite"], "no result store"),
        (["delete"], "nothing to delete"),
        (["delete", "aa"], "begins 2 keys"),
        (["delete", "bb", "--store", "none.sqlite"], "no result store"),
    ],
)
def test_bad_input(store, repcap, argv, words):
    got = repcap("results", *argv)
    assert got.code == 2
    assert words in got.err
    assert got.err.count("\n") == 1


def test_delete(store, repcap):
    assert "say --yes" in repcap("results", "delete", "bb").err
    assert repcap("results", "delete", "bb", "--yes", "--json").json["deleted"] == 1
    assert repcap("results", "delete", "--failures", "--yes").code == 0
    with Store(store, "read") as opened:
        assert opened.failures() == []
        assert opened.kinds() == {"measure": 2}
    assert repcap("results", "delete", "--kind", "measure", "-y", "--json").json["deleted"] == 2


def test_help_lists_the_verbs(repcap):
    text = repcap("results", "--help").out
    assert all(verb in text for verb in ("list", "show", "export", "delete"))


ODD = ["=1+1", "</td><script>alert(1)</script>", "a|b", "a\nb", "\x1b[2J", "\u202ecod", "\ud800", "&lt;"]


@pytest.fixture
def odd_store(tmp_path):
    with Store(tmp_path / "odd.sqlite") as opened:
        for place, name in enumerate(ODD):
            record = {"name": name, "matrix": name, "dim": 64, "epsilon": 0.25, "class": "high", "dropped": [name]}
            opened.put(f"key{place}", "measure", record, {"note": name})
    return opened.path


def test_odd_names_in_every_format(odd_store, repcap, tmp_path):
    for suffix in ("csv", "json", "md"):
        got = repcap("results", "export", "--store", odd_store, "-o", tmp_path / f"out.{suffix}")
        assert got.code == 0, got.err
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as opened:
        text = opened.read()
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert [row["name"] for row in rows] == ["'=1+1", *ODD[1:6], "\\ud800", "&lt;"]
    records = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))["records"]
    assert [item["record"]["name"] for item in records] == ODD  # JSON has an escape for every one of them
    lines = (tmp_path / "out.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 2 + len(ODD)
    table = "\n".join(lines)
    assert "<" not in table
    assert "\x1b" not in table
    assert "\u202e" not in table
    assert "a\\|b" in table


def test_odd_names_in_parquet(odd_store, repcap, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    assert repcap("results", "export", "--store", odd_store, "-o", tmp_path / "out.parquet").code == 0
    assert parquet.read_table(tmp_path / "out.parquet")["name"].to_pylist() == [*ODD[:6], "\\ud800", "&lt;"]
