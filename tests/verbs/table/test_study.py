"""`repcap.table`: each row is what the library says of its point, in a file that survives a kill; certificates hold."""

from __future__ import annotations

import json
import math
import signal
import subprocess
import sys
import time

import pytest

import repcap
from repcap.bracket.interval import bracket
from repcap.constructions.best import best_coherence
from repcap.errors import DomainError, InputError, MissingExtraError
from repcap.laws.limits import linear_programming
from repcap.laws.limits.bounds import coherence_lower_bound
from repcap.studies import row_files
from repcap.studies.row_files import read_rows
from repcap.verbs.table import study
from tool_modules import load_tool

EPSILONS = (0.05, 0.2, 0.5)


def test_rows_are_the_ends_of_the_bracket_and_do_not_fall():
    found = repcap.table([*range(2, 40), 640, 2048], eps=EPSILONS)
    assert [(row["epsilon"], row["d"]) for row in found.lines][39:41] == [(0.05, 2048), (0.2, 2)]
    for row in found.lines:
        point = bracket(row["d"], row["epsilon"])
        assert row["explicit"]["log10_k"] == point.explicit.log10_k
        assert row["exists"]["log10_k"] == point.exists
        if row["upper"]["name"] == linear_programming.NAME:
            assert row["upper"]["log10_k"] < point.upper.log10_k
        else:
            assert row["upper"] == {**point.upper.to_dict(), "exact": point.exact}
        parts = row["explicit"]["parts"]
        assert sum(part["d"] * part["copies"] for part in parts) == row["d"]
    for eps in EPSILONS:
        known = [row["explicit"]["log10_k"] for row in found.lines if row["epsilon"] == eps]
        assert known == sorted(known)
    assert found.reading.startswith("In 117 of 120 rows the explicit set is no worse")


def test_rows_for_numbers_of_lines():
    found = repcap.table((2, 7, 23, 64), k=[28, 1e6])
    for row in found.lines:
        assert row["explicit"]["coherence"] == best_coherence(row["k"], row["d"]).coherence
        assert row["lower"]["epsilon"] == coherence_lower_bound(row["k"], row["d"]).value
    exact = {(row["d"], row["k"]) for row in found.lines if row["lower"]["exact"]}
    assert {(2, 28), (7, 28), (64, 28)} <= exact
    assert (23, 10**6) not in exact


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_file_is_gone_on_with(tmp_path, suffix, monkeypatch):
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    path = tmp_path / f"table{suffix}"
    first = repcap.table(range(2, 12), eps=EPSILONS, out=path)
    assert (first.computed, len(first.lines)) == (30, 30)
    more = repcap.table(range(8, 16), eps=0.2, out=path)
    assert (more.computed, len(more.lines)) == (4, 8)
    assert list(more.lines) == list(repcap.table(range(8, 16), eps=0.2).lines)  # as if they had never been in a file
    names, rows = read_rows(path)
    assert len(rows) == 34
    assert {"d", "epsilon", "explicit.coherence", "upper.name", "repcap_version"} <= set(names)
    assert [(row["epsilon"], row["d"]) for row in rows] == sorted((row["epsilon"], row["d"]) for row in rows)
    assert repcap.table(range(8, 16), eps=0.2, out=path, refresh=True).computed == 8
    monkeypatch.setattr(study, "__version__", "another")
    assert repcap.table([9], eps=0.2, out=path).computed == 1
    assert repcap.table([9], eps=0.2, out=path).computed == 0


SCRIPT = """
import sys, repcap, time
from repcap.verbs.table import study
study.CHUNK, known = 8, study.at_epsilon
study.at_epsilon = lambda d, eps: time.sleep(0.01) or known(d, eps)
repcap.table(range(2, 200), eps=0.3, out=sys.argv[1])
"""


def test_a_killed_run_loses_a_chunk_at_most(tmp_path):
    path, had = tmp_path / "table.csv", 0
    for _ in range(2):
        process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(path)])
        end = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < end:
            if path.exists() and len(path.read_text().splitlines()) - 1 >= had + 16:
                break
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        rows = read_rows(path)[1]  # whole: never half a file
        assert had + 16 <= len(rows) < 198
        assert {row["d"] for row in rows} == set(range(2, 2 + len(rows)))
        had = len(rows)
    last = repcap.table(range(2, 200), eps=0.3, out=path)
    assert last.computed == 198 - had
    assert list(last.lines) == list(repcap.table(range(2, 200), eps=0.3).lines)


def test_what_ctrl_c_leaves_is_kept(tmp_path):
    def stop(done, total):
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        repcap.table(range(2, 20), eps=0.3, out=tmp_path / "a.csv", on_progress=stop)
    assert repcap.table(range(2, 20), eps=0.3, out=tmp_path / "a.csv").computed == 13


@pytest.fixture(scope="module")
def checker():
    return load_tool("check_certificate")


def test_certificates_hold_and_say_what_was_asked(tmp_path, checker):
    dims = (1, 2, 3, 7, 12, 23, 40, 64)
    for asked in ({"eps": EPSILONS}, {"k": (5, 300, 2.0**80)}):
        found = repcap.table(dims, **asked, out=tmp_path / f"{next(iter(asked))}.csv", certificates=tmp_path / "c")
        for row in found.lines:
            if row["explicit"]["coherence"] >= 1.0:
                assert row["certificate"] is None
                continue
            held = json.loads((tmp_path / "c" / row["certificate"]).read_text())
            checker.check(held)
            assert held["d"] == row["d"]
            assert held["asked"][found.asked] == row[found.asked]
            assert int(held["k"], 16) >= row.get("k", 1)
            assert math.log10(int(held["k"], 16)) == pytest.approx(row["explicit"]["log10_k"], abs=1e-12)
            if found.asked == "epsilon":
                assert held["limit"]["log10_k"] >= row["upper"]["log10_k"] - 1e-9
    # What is there is not written again; what is missing is.
    (tmp_path / "c" / "d7-epsilon0.2.json").unlink()
    before = (tmp_path / "c" / "d7-epsilon0.5.json").stat().st_mtime_ns
    again = repcap.table(dims, eps=EPSILONS, out=tmp_path / "eps.csv", certificates=tmp_path / "c")
    assert again.computed == 0
    assert (tmp_path / "c" / "d7-epsilon0.2.json").exists()
    assert (tmp_path / "c" / "d7-epsilon0.5.json").stat().st_mtime_ns == before


@pytest.mark.parametrize("asked", [{"eps": 0.2}, {"k": 10**4}])
@pytest.mark.parametrize(
    ("where", "by"),
    [(("limit", "log10_k"), 0.999), (("limit", "at"), 0.99), (("limit", "at"), 1.01), (("asked", None), 0.98)],
)
def test_a_limit_with_one_number_changed_is_refused(tmp_path, checker, asked, where, by):
    (row,) = repcap.table(23, **asked, certificates=tmp_path).lines
    held = json.loads((tmp_path / row["certificate"]).read_text())
    checker.check(held)
    first, second = where
    second = second or "epsilon"
    held[first][second] *= by
    with pytest.raises(checker.Refused):
        checker.check(held)


def test_more_is_claimed_than_the_set_has(tmp_path, checker):
    (row,) = repcap.table(23, k=10**4, certificates=tmp_path).lines
    held = json.loads((tmp_path / row["certificate"]).read_text())
    held["asked"]["k"] = int(held["k"], 16) + 1
    with pytest.raises(checker.Refused, match="fewer lines"):
        checker.check(held)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: repcap.table(3), InputError, "give one of `eps` and `k`"),
        (lambda: repcap.table(3, eps=0.2, k=5), InputError, "give one of"),
        (lambda: repcap.table(0, eps=0.2), DomainError, "d = 0"),
        (lambda: repcap.table(3, eps=1.5), DomainError, "1.5"),
        (lambda: repcap.table(3, k=1), DomainError, "k = 1"),
        (lambda: repcap.table((), eps=0.5), InputError, "0 rows"),
        (
            lambda: repcap.table(range(1, 1002), eps=[i / 1001 for i in range(1, 1001)]),
            InputError,
            "1001000 rows; give 1 to 1000000",
        ),
        (lambda: repcap.table(3, eps=0.2, out="table.txt"), InputError, "end it in .csv or .parquet"),
        (lambda: repcap.table(3, eps=0.2, out="missing/table.csv"), InputError, "cannot write"),
    ],
)
def test_what_is_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_a_file_of_another_kind_is_not_touched(tmp_path, monkeypatch):
    other = tmp_path / "other.csv"
    for text in ("a,b\n1,2\n", "", "d,epsilon,explicit.coherence,explicit.parts,repcap_version\n3,.2,1,{,0\n"):
        other.write_text(text)
        with pytest.raises(InputError, match=r"other\.csv"):
            repcap.table(3, eps=0.2, out=other)
        assert other.read_text() == text
    repcap.table(3, eps=0.2, out=tmp_path / "eps.csv")
    with pytest.raises(InputError, match="no table of d and k"):
        repcap.table(3, k=5, out=tmp_path / "eps.csv")
    monkeypatch.setattr(row_files, "_pyarrow", lambda: (_ for _ in ()).throw(MissingExtraError("Parquet", "parquet")))
    with pytest.raises(MissingExtraError, match=r"repcap\[parquet\]"):
        repcap.table(3, eps=0.2, out=tmp_path / "a.parquet")
    assert not (tmp_path / "a.parquet").exists()


def test_a_broken_parquet_file_gets_one_line(tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "a.parquet").write_bytes(b"PAR1 no table")
    with pytest.raises(InputError, match="cannot read"):
        repcap.table(3, eps=0.2, out=tmp_path / "a.parquet")


def test_a_run_that_is_stopped_before_its_first_row_leaves_no_file(tmp_path, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(study, "at_epsilon", stop)
        with pytest.raises(KeyboardInterrupt):
            repcap.table(range(2, 6), eps=0.3, out=tmp_path / "table.csv")
    assert not list(tmp_path.iterdir())
    assert repcap.table(range(2, 6), eps=0.3, out=tmp_path / "table.csv").computed == 4


def test_rows_of_another_run_on_the_same_file_stay(tmp_path):
    """Four processes write different rows into one file; also where one writes between our looks at it."""
    path = tmp_path / "table.csv"
    program = "import sys, repcap; repcap.table(range(int(sys.argv[1]), 250, 4), eps=0.3, out=sys.argv[2])"
    running = [subprocess.Popen([sys.executable, "-c", program, str(2 + turn), str(path)]) for turn in range(4)]
    assert [process.wait(120) for process in running] == [0] * 4
    assert [row["d"] for row in read_rows(path)[1]] == list(range(2, 250))
    assert [one.name for one in tmp_path.iterdir()] == ["table.csv"]

    def between(done, total):
        if done == 1:
            repcap.table([900], eps=0.3, out=path)

    repcap.table([700, 701], eps=0.3, out=path, on_progress=between)
    assert [row["d"] for row in read_rows(path)[1]][-3:] == [700, 701, 900]


@pytest.mark.parametrize("damage", ["\0\0\0", "x", ""])
def test_a_row_with_a_value_that_it_cannot_have_is_refused(tmp_path, damage):
    path = tmp_path / "table.csv"
    repcap.table(range(2, 6), eps=0.3, out=path)
    held = path.read_text()
    for name in ("random coding", "0.3010299956639812", "false"):
        path.write_text(held.replace(name, damage, 1))
        if (name, damage) == ("random coding", "x"):
            continue  # a name like another
        with pytest.raises(InputError, match=r"did not write: restore a copy, move it away and run again"):
            repcap.table(range(2, 6), eps=0.3, out=path)


def test_a_parquet_table_with_other_bytes_is_refused(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "table.parquet"
    repcap.table(range(2, 6), eps=0.3, out=path)
    data = bytearray(path.read_bytes())
    data[60] ^= 0xFF  # in the first column
    path.write_bytes(data)
    with pytest.raises(InputError, match=f"cannot read {path}"):
        repcap.table(range(2, 6), eps=0.3, out=path)
