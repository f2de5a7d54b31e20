"""The command line: finds the verb, imports that verb alone, and turns errors into one line.

Verbs are data (`VERBS`). A verb's module is imported only when that verb is called, so `repcap --help` never loads
torch. A module offers either `command` (a function with typer annotations) or `app` (a typer.Typer of sub-verbs).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TextIO

import typer

from repcap._version import __version__
from repcap.console import interrupt, settings
from repcap.console.printable import print_error
from repcap.errors import RepcapError


class Verb(NamedTuple):
    module: str
    help: str
    panel: str


MEASURE, LAWS, PACKING, MANY = "Measure a model", "Laws and bounds", "Pack lines", "Many models"

VERBS: dict[str, Verb] = {
    "measure": Verb("repcap.verbs.measure.command", "Measure epsilon, class and capacity of a model.", MEASURE),
    "inspect": Verb("repcap.verbs.inspect.command", "List what could be measured in a source.", MEASURE),
    "pairs": Verb("repcap.verbs.pairs.command", "The distribution of all pairwise cosines, and its tail.", MEASURE),
    "compare": Verb("repcap.verbs.compare.command", "Two matrices side by side, row against row.", MEASURE),
    "track": Verb("repcap.verbs.track.command", "epsilon over the checkpoints of a training run.", MEASURE),
    "dictionary": Verb(
        "repcap.verbs.dictionary.command", "A sparse autoencoder's decoder, and against a model.", MEASURE
    ),
    "probes": Verb("repcap.verbs.probes.command", "Weights that read from and write to the residual stream.", MEASURE),
    "latents": Verb(
        "repcap.verbs.latents.command", "Does the embedding's epsilon hold in the residual stream?", MEASURE
    ),
    "neighbours": Verb("repcap.verbs.neighbours.command", "Nearest tokens, analogies, clusters, duplicates.", MEASURE),
    "capacity": Verb(
        "repcap.verbs.capacity.command", "How many near-orthogonal vectors fit: laws and proven limits.", LAWS
    ),
    "fit": Verb("repcap.verbs.fit.command", "Fit the laws to packings (k, d, epsilon).", LAWS),
    "reproduce": Verb("repcap.verbs.reproduce.command", "Recompute the published numbers, and correct them.", LAWS),
    "design": Verb("repcap.verbs.design.command", "The d_model that holds so many features and a vocabulary.", LAWS),
    "interference": Verb("repcap.verbs.interference.command", "What reading s active features of k costs.", LAWS),
    "pack": Verb("repcap.verbs.pack.command", "Pack k lines into R^d; build explicit sets; verify files.", PACKING),
    "pack-max": Verb("repcap.verbs.pack_max.command", "The most lines in R^d within a coherence.", PACKING),
    "sweep": Verb("repcap.verbs.sweep.command", "Pack a grid of (k, d) cells into a store.", PACKING),
    "survey": Verb("repcap.verbs.survey.command", "Measure many models into a store; trend with width.", MANY),
    "results": Verb("repcap.verbs.results.command", "List, show, export or delete stored results.", MANY),
    "report": Verb("repcap.verbs.report.command", "A page and figures of many models.", MANY),
    "serve": Verb("repcap.verbs.serve.command", "Show the page of many models in a browser.", MANY),
}
"""Verb -> where it lives. The order is the order in --help."""

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
        module = import_module(verb.module)
        if hasattr(module, "app"):
            app.add_typer(module.app, name=name, rich_help_panel=verb.panel, short_help=verb.help)
        else:
            app.command(name, rich_help_panel=verb.panel, short_help=verb.help)(module.command)
    return app


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


def _fail(message: str, code: int) -> int:
    print_error(message)
    return code


def _explain(error: BaseException, verb: str | None) -> int:
    """Print one line for `error` and return the exit code."""
    if isinstance(error, RepcapError):
        return _fail(str(error), error.exit_code)
    if hasattr(error, "format_message") and hasattr(error, "exit_code"):  # click's own, from whichever click typer uses
        hint = f"repcap {verb} --help" if verb else "repcap --help"
        message: str = error.format_message()
        return _fail(f"{message.rstrip('.')}; see {hint}", 2) if message else 2
    if isinstance(error, KeyboardInterrupt) or type(error).__name__ == "Abort":
        return _fail("interrupted", interrupt.CODE)
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return _fail(f"{where}{error.strerror or error}", 2)
    if isinstance(error, MemoryError):
        return _fail("out of memory; try a smaller --block-rows", 2)
    return _fail(f"internal error: {type(error).__name__}: {error}; run again with --debug and report it", 1)


def run(argv: Sequence[str]) -> int:
    """Run the command line on `argv` (without the program's name) and return the exit code."""
    settings.reset()
    args = _without_flags(argv)
    verb = next((word for word in args if not word.startswith("-")), None)
    completing = "_REPCAP_COMPLETE" in os.environ
    streams = sys.stdout, sys.stderr
    try:
        app = build_app(None if completing else [verb] if verb in VERBS else [])
        code = app(args or ["--help"], prog_name="repcap", standalone_mode=completing)
        sys.stdout.flush()  # a full disk is met here, not when Python exits
        if code == interrupt.CODE:  # what typer makes of a KeyboardInterrupt
            return _fail("interrupted", interrupt.CODE)
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
        return _explain(error, verb if verb in VERBS else None)


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
    sys.exit(run(sys.argv[1:]))
