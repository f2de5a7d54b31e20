"""The command line as a whole: one line an error, exit codes, flags anywhere, no verb that does not exist."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from repcap import cli as main
from repcap._version import __version__
from repcap.console import settings
from repcap.errors import InputError
from repcap.verbs import part

PROGRAM = [sys.executable, "-c", "from repcap.cli import entry; entry()"]


def test_version(repcap):
    assert repcap("--version").out == f"repcap {__version__}\n"


def test_no_arguments_shows_help(repcap):
    shown = repcap()
    assert shown.code == 0
    assert "Usage: repcap" in shown.out


def test_unknown_verb_is_one_line(repcap):
    failed = repcap("mesure")
    assert failed.code == 2
    assert failed.err.startswith("repcap: error: No such command 'mesure'")
    assert failed.err.count("\n") == 1


@pytest.mark.parametrize("verb", sorted(main.VERBS))
def test_every_verb_exists_and_has_help(repcap, verb):
    module = part(verb, "command")
    assert hasattr(module, "command") or hasattr(module, "app")
    shown = repcap(verb, "--help")
    assert shown.code == 0
    assert "Usage: repcap" in shown.out


@pytest.mark.parametrize("verb", sorted(main.VERBS))
def test_unknown_option_is_one_line(repcap, verb):
    failed = repcap(verb, "--no-such-option")
    assert failed.code == 2
    assert failed.err.startswith("repcap: error: ")
    assert failed.err.count("\n") == 1


def raising(error):
    def build(_verbs=None):
        def app(*_args, **_options):
            raise error

        return app

    return build


def test_our_errors_exit_2_in_one_line(repcap, monkeypatch):
    monkeypatch.setattr(main, "build_app", raising(InputError("first\n  second")))
    failed = repcap("x")
    assert (failed.code, failed.err) == (2, "repcap: error: first second\n")


def test_a_bug_is_called_a_bug(repcap, monkeypatch):
    monkeypatch.setattr(main, "build_app", raising(ZeroDivisionError("division by zero")))
    failed = repcap("x")
    assert failed.code == 1
    assert "internal error: ZeroDivisionError" in failed.err
    assert "--debug" in failed.err


def test_interrupt_exits_130(repcap, monkeypatch):
    monkeypatch.setattr(main, "build_app", raising(KeyboardInterrupt()))
    assert repcap("x").code == 130


@pytest.mark.parametrize("argv", [("--debug", "x"), ("x", "--debug")])
def test_debug_anywhere_shows_the_traceback(repcap, monkeypatch, argv):
    monkeypatch.setattr(main, "build_app", raising(InputError("seen")))
    with pytest.raises(InputError, match="seen"):
        repcap(*argv)


def test_flags_after_a_double_dash_are_arguments():
    settings.reset()
    assert main._without_flags(["a", "-q", "--", "-q"]) == ["a", "--", "-q"]
    assert settings.current.quiet


def test_full_disk_or_missing_file_is_one_line(repcap, monkeypatch):
    monkeypatch.setattr(main, "build_app", raising(OSError(28, "No space left on device", "/x/y")))
    failed = repcap("x")
    assert (failed.code, failed.err) == (2, "repcap: error: /x/y: No space left on device\n")


def test_reader_that_goes_away_is_no_error():
    done = subprocess.run(
        f'"{sys.executable}" -c "from repcap.cli import entry; entry()" --help | head -c 1 >/dev/null',
        shell=True,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""


def test_no_color_and_no_terminal_give_plain_text():
    environment = {**os.environ, "NO_COLOR": "1"}
    done = subprocess.run([*PROGRAM, "--help"], capture_output=True, text=True, check=True, env=environment)
    assert "\x1b" not in done.stdout


def test_module_runs_as_a_program():
    done = subprocess.run([sys.executable, "-m", "repcap", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"repcap {__version__}\n"


def best_of(command: list[str], runs: int = 5) -> float:
    def once() -> float:
        start = time.perf_counter()
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        return time.perf_counter() - start

    return min(once() for _ in range(runs))


@pytest.mark.network
def test_help_starts_within_three_times_of_typer_and_rich():
    """Timed, so not part of `make test`: other work on the machine would decide it."""
    bare = best_of([sys.executable, "-c", "import typer, rich"])
    script = Path(sys.executable).with_name("repcap")
    assert best_of([str(script), "--help"]) < 3 * bare


def test_version_answers_as_a_word_too(repcap):
    assert repcap("version").out == repcap("--version").out != ""


def test_help_folds_at_the_width_of_the_terminal(repcap, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    lines = [line.strip(" │") for line in repcap("measure", "--help").out.splitlines()]
    start = next(place for place, line in enumerate(lines) if line.startswith("epsilon = mean + 2 std"))
    paragraph = lines[start : lines.index("", start)]
    assert all(len(line) > 40 for line in paragraph[:-1])
