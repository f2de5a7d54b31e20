"""`repcap survey` and `repcap survey trend` as a user types them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from repcap.jobs.store import Store
from survey_jobs import epsilon_of, make_checkpoint


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A working directory with three checkpoints, one of them broken, and a list of them."""
    monkeypatch.chdir(tmp_path)
    make_checkpoint("tied", 40, 8, 1)
    make_checkpoint("untied", 50, 8, 2, head="own")
    Path("broken.safetensors").write_bytes(b"\x00" * 10)
    Path("models.txt").write_text("tied\nuntied\nbroken.safetensors\n")
    return tmp_path


def test_survey_goes_on_and_lists_failures(here, repcap):
    first = repcap("survey", "models.txt", "--engine", "inline")
    assert first.code == 3
    assert first.out.count("untied") == 2  # embedding and unembedding
    assert "broken.safetensors" in first.out
    assert "2 done, 0 stored before, 1 failed" in first.err
    assert all(len(line) <= 80 for line in first.out.splitlines())
    second = repcap("survey", "models.txt", "--engine", "inline", "--json")
    assert second.code == 3
    assert (second.json["done"], second.json["skipped"], second.json["failed"]) == (0, 2, 1)
    assert second.json["failures"][0]["attempts"] == 2
    Path("broken.safetensors").unlink()
    Path("models.txt").write_text("tied\nuntied\n")
    assert repcap("survey", "models.txt", "--engine", "inline").code == 0


def test_survey_run_is_the_same_verb(here, repcap):
    assert repcap("survey", "run", "models.txt", "--engine", "inline", "--store", "a.sqlite").code == 3
    # A list whose name is that of the other verb needs its directory.
    Path("models.txt").rename("trend")
    assert repcap("survey", "./trend", "--engine", "inline", "--store", "b.sqlite").code == 3
    counts = []
    for name in ("a.sqlite", "b.sqlite"):
        with Store(name, "read") as store:
            counts.append(store.count())
    assert counts == [3, 3]


def test_options_reach_the_measurement(here, repcap):
    embedding = make_checkpoint("tied", 40, 8, 1)[1]
    Path("models.txt").write_text("tied\n")
    assert repcap("survey", "models.txt", "--engine", "inline", "--z", "3", "--matrix", "embedding").code == 0
    with Store("repcap.sqlite", "read") as store:
        (result,) = store.records()
    assert result.record["epsilon"] == pytest.approx(epsilon_of(embedding, 3.0), abs=1e-6)


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        ([], "no models to survey"),
        (["none.txt"], "cannot read the list of models none.txt"),
        (["models.txt", "--engine", "slurm"], "unknown engine 'slurm'"),
        (["models.txt", "--z", "nan"], "--z nan: give a finite number"),
        (["models.txt", "--timeout", "nan", "--engine", "inline"], "--timeout nan: give a finite number"),
        (["models.txt", "--rows", "1"], "--rows 1: give 2 or more"),
        (["models.txt", "--store", "no/dir/s.sqlite"], "there is no directory no/dir"),
        (["models.txt", "--store", "models.txt"], "not a repcap result store"),
        (["models.txt", "--retries", "-1", "--engine", "inline"], "--retries -1: give at least 0"),
        (["--table-only"], "goes with --published"),
        (["trend", "none.sqlite"], "no result store at none.sqlite"),
        (["trend", "--without", "nobody"], "no model named 'nobody'"),
        (["models.txt", "--colour"], "No such option: --colour"),
    ],
)
def test_bad_input_is_one_line(here, repcap, argv, words):
    got = repcap("survey", *argv)
    assert got.code == 2
    assert got.err.startswith("repcap: error: ")
    assert words in got.err
    assert got.err.count("\n") == 1


def test_a_wrong_engine_makes_no_store(here, repcap):
    assert repcap("survey", "models.txt", "--engine", "slurm").code == 2
    assert not (here / "repcap.sqlite").exists()


def test_names_are_shown_as_they_stand(here, repcap):
    """Brackets are no markup (an unmatched one would end the table), and no name reaches the terminal as a command."""
    (here / "odd.yaml").write_text('models: [{source: tied, name: "a[/x]\\e[2J"}, "[bold]"]')
    for argv in (
        ("survey", "odd.yaml", "--engine", "inline"),
        ("results", "list"),
        ("results", "list", "--failures"),
    ):
        got = repcap(*argv)
        assert got.code in (0, 3), got.err
        assert "\x1b[2J" not in got.out
        assert ("[bold]" if "--failures" in argv else "a[/x]\\x1b[2J") in got.out


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are UTF-8 elsewhere")
def test_a_name_that_is_no_utf8_is_measured_listed_and_exported(here, repcap):
    from repcap import survey

    odd = os.fsdecode(b"odd\xff")
    make_checkpoint(odd, 40, 8, 1)
    batch = survey([odd, os.fsdecode(b"none\xff")], "odd.sqlite", engine="inline")
    assert (batch.done, len(batch.failures)) == (1, 1)
    for argv in (["list"], ["export", "--format", "csv"], ["export", "--format", "json"]):
        got = repcap("results", *argv, "--store", "odd.sqlite")
        assert (got.code, "odd\\udcff" in got.out.replace("\\\\", "\\")) == (0, True)
    assert "none\\udcff" in repcap("results", "list", "--failures", "--store", "odd.sqlite").out


def test_table_only_stores_the_45_rows_once(here, repcap):
    argv = ("survey", "--published", "--table-only", "--json")
    assert repcap(*argv).json == {"store": "repcap.sqlite", "new": 45}
    assert repcap(*argv).json["new"] == 0


def test_trend_of_the_published_table(repcap):
    got = repcap("survey", "trend", "--json")
    low = next(group for group in got.json["groups"] if group["group"] == "low")
    assert low["epsilon"]["rho"] == pytest.approx(-0.217, abs=5e-4)
    assert low["ratio"]["rho"] == pytest.approx(0.66, abs=5e-3)
    text = repcap("survey", "trend", "--without", "Llama 2 70B")
    assert text.code == 0
    assert "Without Llama 2 70B" in text.out
    assert all(len(line) <= 80 for line in text.out.splitlines())
    assert "-0.217" in text.out
    assert repcap("survey", "trend", "--quiet").err == ""


def test_help_names_both(repcap):
    text = repcap("survey", "--help").out
    assert "--published" in text
    assert "survey trend [STORE]" in text
    assert "--without" in repcap("survey", "trend", "--help").out


def test_survey_starts_without_torch(here):
    """The driver only writes; torch belongs to the workers."""
    program = (
        "import sys; from repcap.cli import run; from repcap.verbs.survey import study as survey\n"
        "assert run(['survey', '--published', '--table-only', '--quiet']) == 0\n"
        "assert run(['survey', 'trend', '--quiet']) == 0\n"
        "assert survey.units_of(survey.read_list('models.txt'))\n"
        "assert 'torch' not in sys.modules and 'ray' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL)


def test_ctrl_c_keeps_what_is_stored(here):
    Path("models.txt").write_text("".join(f"m{n}\n" for n in range(400)))
    for n in range(400):
        make_checkpoint(f"m{n}", 10, 4, n)
    argv = [sys.executable, "-m", "repcap", "survey", "models.txt", "--engine", "local:1"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        argv, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    end = time.monotonic() + 120
    while time.monotonic() < end:
        if Path("repcap.sqlite").exists():
            with Store("repcap.sqlite") as store:
                if store.count() > 2:
                    break
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (130, "")
    assert "what is done is in repcap.sqlite; run the same command again" in " ".join(err.split())
    assert "Traceback" not in err
    with Store("repcap.sqlite", "read") as store:
        store.check()
        assert 2 < store.count() < 400
        assert store.failures() == []
