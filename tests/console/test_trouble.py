"""The program among pipes, encodings, signals and names that were not made for it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

ODD_NAMES = ["[red]x[", "close[/bold]", "esc\x1b[31m", "new\nline", "ünï ø", "tab\tand space"]


@pytest.fixture
def array(tmp_path):
    """Write rows to `NAME.npy` and return its path."""

    def write(name: str = "rows", rows: np.ndarray | None = None) -> Path:
        path = tmp_path / f"{name}.npy"
        path.parent.mkdir(exist_ok=True, parents=True)
        np.save(path, np.random.default_rng(0).standard_normal((60, 8)) if rows is None else rows)
        return path

    return write


def program(*argv: object, **options):
    """Run the program itself, as a user does."""
    environment = {**os.environ, **options.pop("env", {})}
    command = [sys.executable, "-m", "repcap", *map(str, argv)]
    return subprocess.run(command, capture_output=True, env=environment, check=False, **options)


@pytest.mark.parametrize("verb", ["measure", "inspect", "pairs", "neighbours"])
@pytest.mark.parametrize("name", ODD_NAMES)
def test_odd_names_are_shown_as_they_are_and_move_no_terminal(repcap, array, verb, name):
    path = array(name)
    shown = repcap(verb, path)
    assert shown.code == 0
    assert "\x1b" not in shown.out
    assert name.encode("unicode_escape").decode() in shown.out or name in shown.out.replace("\n", "")
    assert repcap(verb, path, "--json").json["source"] == str(path)


@pytest.mark.parametrize("verb", ["measure", "inspect", "pairs", "neighbours"])
def test_a_name_that_is_no_utf8_gives_valid_json(array, tmp_path, verb):
    path = array().rename(tmp_path / os.fsdecode(b"bad\xff.npy"))
    done = program(verb, path, "--json")
    assert done.returncode == 0
    assert json.loads(done.stdout.decode("utf-8"))["source"] == str(path)
    assert b"bad\\udcff.npy" in program(verb, path).stdout


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_terminals_without_unicode_get_escapes(array, encoding):
    environment = {"PYTHONIOENCODING": encoding}
    path = array("ünï ε")
    done = program("measure", path, env=environment)
    assert (done.returncode, done.stderr) == (0, b"")
    answer = json.loads(program("measure", path, "--json", env=environment).stdout.decode("ascii"))
    assert answer["source"] == str(path)


@pytest.mark.parametrize("argv", [("--json",), ()])
def test_closed_stdout_is_no_traceback(array, argv):
    done = subprocess.run(
        f'"{sys.executable}" -m repcap measure "{array()}" {" ".join(argv)} >&-',
        shell=True,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "argv", ["--help", "capacity --d 64 --eps 0.01..0.9/2000 --csv", "capacity --d 64 --eps 0.01..0.9/2000 --json"]
)
def test_reader_that_goes_away_is_no_error(argv):
    done = subprocess.run(
        ["bash", "-c", f'"{sys.executable}" -m repcap -q {argv} | head -c 1; exit ${{PIPESTATUS[0]}}'],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_full_disk_behind_stdout_is_one_line(array):
    for argv in ("--json", "-q"):
        command = f'"{sys.executable}" -m repcap measure "{array()}" {argv} >/dev/full'
        done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert done.stderr == "repcap: error: No space left on device\n"


@pytest.mark.parametrize("seed", ["-1", "99999999999999999999999"])
def test_seeds_out_of_range(repcap, array, seed):
    failed = repcap("measure", array(), "--rows", 30, "--seed", seed)
    assert failed.code == 2
    assert failed.err.count("\n") == 1
    assert "--seed" in failed.err


def test_of_several_sources_one_may_fail(repcap, array, tmp_path):
    good, zero, gone = array("good"), array("zero", np.zeros((5, 4))), tmp_path / "gone.npy"
    shown = repcap("measure", good, zero, gone, good)
    assert shown.code == 2
    assert shown.out.count("good.npy") == 2
    lines = shown.err.splitlines()
    assert [line.startswith("repcap: error: ") for line in lines] == [True, True]
    assert str(zero) in lines[0]
    assert "with a direction" in lines[0]
    assert str(gone) in lines[1]
    found = repcap("measure", good, zero, "--json")
    assert found.code == 2
    assert [one["source"] for one in found.json] == [str(good), str(zero)]
    assert "with a direction" in found.json[1]["error"]


def test_an_option_that_is_wrong_for_every_source_is_said_once(repcap, array):
    failed = repcap("measure", array("a"), array("b"), "--z", "nan")
    assert (failed.code, failed.err.count("\n")) == (2, 1)


@pytest.mark.parametrize("verb", [("pairs",), ("neighbours", "--word-pairs", "shipped")])
@pytest.mark.parametrize(("name", "words"), [("x.doc", "ends in .png"), ("gone/x.png", "no such file or directory")])
def test_a_figure_that_cannot_be_written_is_refused_before_the_work(repcap, tmp_path, verb, name, words):
    # The source is not there either: that it is not looked at shows the order.
    failed = repcap(verb[0], tmp_path / "gone.npy", *verb[1:], "--plot", tmp_path / name)
    assert failed.code == 2
    assert words in failed.err
    assert failed.err.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
@pytest.mark.parametrize("delay", [0.1, 0.3, 0.5, 0.7, 0.9, 1.2])
def test_interrupt_at_any_time_is_one_line_and_130(array, delay):
    """Also while torch is being imported, which swallows a plain KeyboardInterrupt."""
    path = array("big", np.random.default_rng(0).standard_normal((40_000, 256)).astype(np.float32))
    running = subprocess.Popen(
        [sys.executable, "-c", _STARTED, "neighbours", str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert running.stdout is not None
    running.stdout.readline()  # Python itself has started
    time.sleep(delay)
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=30)
    assert (running.returncode, out, err) == (130, b"", b"repcap: error: interrupted\n")


_STARTED = """
from repcap.console import interrupt
interrupt.install()
print(flush=True)
from repcap.__main__ import main
main()
"""
