"""The command line: finds the verb, imports that verb alone, and turns errors into one line.

Verbs are data (`repcap.verbs.VERBS`). A verb's folder is imported only when that verb is called, so `repcap --help`
never loads torch. Its `command` module offers either `command` (a function with typer annotations) or `app` (a
typer.Typer of sub-verbs).
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer

from repcap._version import __version__
from repcap.console import interrupt, settings
from repcap.console.failing import explain, fail
from repcap.verbs import VERBS, part

FLAGS = {"--debug": "debug", "--quiet": "quiet", "-q": "quiet"}
"""Taken out of the arguments wherever they stand, so that they need not come before the verb."""


def _version(value: bool) -> None:
    if value:
        typer.echo(f"repcap {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show it, exit.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress bars, no notes.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Measure how many near-orthogonal directions fit into a language model's latent space."""


def _stub(help_line: str) -> Callable[[], None]:
    def stub() -> None:
        raise AssertionError("a stub only stands in --help")

    stub.__doc__ = help_line
    return stub


def build_app(verbs: Sequence[str] | None = None) -> typer.Typer:
    """The typer app in which the named verbs are real and the others are lines of --help (None: all are real)."""
    app = typer.Typer(
        name="repcap",
        no_args_is_help=True,
        add_completion=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    for name, verb in VERBS.items():
        if verbs is not None and name not in verbs:
            app.command(name, rich_help_panel=verb.panel, help=verb.help)(_stub(verb.help))
            continue
        module = part(name, "command")
        if hasattr(module, "app"):
            for one in module.app.registered_commands:
                one.help = rewrapped(one.help or inspect.getdoc(one.callback) or "")
            app.add_typer(module.app, name=name, rich_help_panel=verb.panel, short_help=verb.help)
        else:
            words = rewrapped(inspect.getdoc(module.command) or "")
            app.command(name, rich_help_panel=verb.panel, short_help=verb.help, help=words)(module.command)
    return app


def rewrapped(words: str) -> str:
    """A docstring whose paragraphs are lines, so that help folds them at the width of the terminal.

    Indented lines, and those that begin with `repcap` (examples), stay lines.

    >>> rewrapped("One line\\nand another.\\n\\nrepcap a\\nrepcap b")
    'One line and another.\\n\\nrepcap a\\nrepcap b'
    """
    kept: list[str] = []
    for line in words.split("\n"):
        before = kept[-1] if kept else ""
        joins = line.strip() and before.strip() and not _example(line) and not _example(before)
        if joins:
            kept[-1] = f"{before} {line.strip()}"
        else:
            kept.append(line)
    return "\n".join(kept)


def _example(line: str) -> bool:
    return line.startswith((" ", "repcap "))


def _without_flags(argv: Sequence[str]) -> list[str]:
    kept: list[str] = []
    for position, word in enumerate(argv):
        if word == "--":
            return kept + list(argv[position:])
        if word in FLAGS:
            setattr(settings.current, FLAGS[word], True)
        else:
            kept.append(word)
    return kept


def run(argv: Sequence[str]) -> int:
    """Run the command line on `argv` (without the program's name) and return the exit code."""
    settings.reset()
    args = _without_flags(argv)
    if args == ["version"]:
        args = ["--version"]
    verb = next((word for word in args if not word.startswith("-")), None)
    completing = "_REPCAP_COMPLETE" in os.environ
    streams = sys.stdout, sys.stderr
    try:
        app = build_app(None if completing else [verb] if verb in VERBS else [])
        code = app(args or ["--help"], prog_name="repcap", standalone_mode=completing)
        sys.stdout.flush()  # a full disk is met here, not when Python exits
        if code == interrupt.CODE:  # what typer makes of a KeyboardInterrupt
            return fail(*interrupt.ending())
        return int(code) if isinstance(code, int) else 0
    except BrokenPipeError:
        return _reader_gone()
    except SystemExit as stop:
        if isinstance(stop.__context__, BrokenPipeError):  # what typer and rich make of it
            sys.stdout, sys.stderr = streams  # typer has put wrappers around them
            return _reader_gone()
        return stop.code if isinstance(stop.code, int) else 1
    except BaseException as error:
        if settings.current.debug:
            raise
        return explain(error, verb if verb in VERBS else None, _flags(verb))


def _flags(verb: str | None) -> Mapping[str, str]:
    """Parameter -> option on the command line, of this verb."""
    if verb not in VERBS:
        return {}
    assert verb is not None
    module = part(verb, "command")
    found: Mapping[str, str] = getattr(getattr(module, "command", None) or getattr(module, "run", None), "flags", {})
    return found


def _reader_gone() -> int:
    """The reader went away (`repcap ... | head`): that is no error of ours, and Python must not complain at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        if not _flushes(stream):
            os.dup2(nowhere, stream.fileno())
    return 0


def _flushes(stream: TextIO) -> bool:
    try:
        stream.flush()
    except OSError:
        return False
    return True


def _prepare_streams() -> None:
    """Give the program streams that take every text: closed ones lead nowhere, and what has no code is escaped."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - open to the end
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def entry() -> Any:
    """Run the command line on the program's arguments, and exit."""
    interrupt.install()
    _prepare_streams()
    code = run(sys.argv[1:])
    interrupt.leave_alone()
    sys.exit(code)
