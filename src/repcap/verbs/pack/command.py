"""`repcap pack`: search for k lines in R^d, write an explicit set, or verify a file of vectors."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Any

import typer

from repcap.console.common import JsonOption, note, present, progress, warn
from repcap.console.derive import Options, command_of
from repcap.constructions import by_command
from repcap.constructions.build import named_lines
from repcap.constructions.lines import Prefix
from repcap.errors import InputError, RepcapError
from repcap.files import check_directory
from repcap.packing.coherence import coherence
from repcap.packing.entry import pack
from repcap.packing.packed import Packing
from repcap.packing.vector_files import open_vectors, save, vectors_ending
from repcap.packing.verification import verify
from repcap.packing.written import write_set
from repcap.verbs.pack.show import pack_progress

INTERRUPTED = 130


@dataclasses.dataclass(frozen=True)
class _Output:
    """Where vectors and checkpoint go, and what may be overwritten."""

    out: Path | None
    file_format: str | None
    save: bool
    resume: bool
    force: bool

    def path(self, name: str) -> Path:
        """The file for the vectors: `out`, or `name` with the ending of the format."""
        if self.out is None:
            return Path(f"{name}.{self.file_format or 'safetensors'}")
        if self.file_format is not None and self.out.suffix != f".{self.file_format}":
            raise InputError(
                f"--out {self.out} does not end in .{self.file_format}: leave --format out, or give that ending"
            )
        return self.out


@command_of(pack)
def command(
    options: Options,
    sizes: Annotated[
        list[int] | None, typer.Argument(help="K D; with --construct D or K D.", show_default=False)
    ] = None,
    steps: Annotated[int | None, typer.Option("--steps", help="Steps a restart (400 unless --seconds).")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Vectors go here (default: packing-K-D.safetensors).")
    ] = None,
    file_format: Annotated[
        str | None, typer.Option("--format", help="safetensors, npy or txt (plain numbers, one vector a line).")
    ] = None,
    no_save: Annotated[bool, typer.Option("--no-save", help="Write no vectors and no checkpoint.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint beside --out.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite better vectors, drop a checkpoint.")] = False,
    construct: Annotated[
        str | None,
        typer.Option("--construct", help=f"Write this explicit set: {', '.join(by_command())}.", metavar="NAME"),
    ] = None,
    param: Annotated[list[str] | None, typer.Option("--param", help="Of the set: r=2, h=3, t=2, n=3, k=276.")] = None,
    checked: Annotated[Path | None, typer.Option("--verify", help="Measure the vectors in this file.")] = None,
    json: JsonOption = False,
) -> None:
    """Pack K lines into R^D with the least coherence, max |cos|.

    The answer is the better of a search and the explicit constructions, with
    the lower bound that no packing can beat. Ctrl-C keeps the best so far
    (exit code 130); --resume goes on from the last checkpoint.

    repcap pack 2000 128
    repcap pack 63 7 --no-constructions --restarts 256
    repcap pack --construct kerdock 64
    repcap pack --construct delsarte-goethals 256 --param r=1
    repcap pack 14 3 --format txt
    repcap pack --verify packing-14-3.txt

    Constructions: kerdock, delsarte-goethals (r), quadratic-forms (h), bch
    (t), exponential-sums (n), hadamard, orthonormal, simplex, root-d,
    conference, exact (k).
    """
    given, output = sizes or [], _Output(out, file_format, not no_save, resume, force)
    if checked is not None:
        if given or construct is not None:
            raise InputError("--verify takes a file alone: no K, D and no --construct")
        with progress("verify", "blocks") as update:
            return present(verify(checked, on_progress=update), json)
    if construct is not None:
        return _construct(construct, given, param or [], output, options["precision"], json)
    if len(given) != 2:
        raise InputError(f"repcap pack takes two numbers, K and D, got {len(given)}: for example repcap pack 2000 128")
    options["steps"] = steps if steps is not None or options["seconds"] is not None else 400
    _pack(given[0], given[1], options, output, json)


def _pack(k: int, d: int, options: Options, output: _Output, json: bool) -> None:
    path = output.path(f"packing-{k}-{d}")
    checkpoint = path.with_name(path.name + ".checkpoint")
    if output.save:
        _prepare(path, checkpoint, output)
    if 1 < k < d:
        note(f"K < D: all orthogonal. For {d} lines in R^{k}: repcap pack {d} {k}")
    keep = output.save and options["method"] == "optimise"
    with pack_progress(f"pack {k} x {d}") as hook:
        packing = pack(
            k, d, **options, on_progress=hook, checkpoint=checkpoint if keep else None, keep_on_interrupt=True
        )
    if output.save:
        packing = _saved(packing, path, output.force)
        if keep and not packing.interrupted:
            checkpoint.unlink(missing_ok=True)  # only now: a full disk or a signal must not cost the whole search
    present(packing, json)
    target = options["target"]
    if target is not None and packing.coherence > target and not packing.interrupted:
        note(f"the target {target:g} was not reached")
    if packing.interrupted:
        note(f"interrupted: these are the best vectors until then{'; go on with --resume' if keep else ''}")
        raise typer.Exit(INTERRUPTED)


def _prepare(path: Path, checkpoint: Path, output: _Output) -> None:
    """Fail before the work rather than after it."""
    vectors_ending(path)
    if not path.absolute().parent.is_dir():
        raise InputError(f"--out {path}: no directory {path.absolute().parent}; make it first")
    check_directory(path)
    if checkpoint.exists() and not output.resume:
        if not output.force:
            raise InputError(f"{checkpoint} holds an unfinished search: go on with --resume, or drop it: --force")
        checkpoint.unlink()
    elif output.resume and not checkpoint.exists():
        note(f"no checkpoint {checkpoint}: starting anew")


def _saved(packing: Packing, path: Path, force: bool) -> Packing:
    """The packing as it was written; as it is where better vectors are in the file already."""
    there = None if force else _better_there(packing, path)
    if there is not None:
        warn(f"{path} holds better vectors (coherence {there:.9g}): not overwritten; --force would")
        return packing
    packing = dataclasses.replace(packing, path=str(path))
    save(packing, path)
    return packing


def _better_there(packing: Packing, path: Path) -> float | None:
    """Coherence of the vectors that are in the file already, if they are as many, and better."""
    if not path.exists():
        return None
    try:
        matrix, _ = open_vectors(path)
        if (matrix.count, matrix.dim) != (packing.k, packing.d):
            return None
        there = coherence(matrix).value  # what the file says of itself is not believed
    except RepcapError:
        return None
    return there if there < packing.coherence else None


def _params(words: list[str]) -> dict[str, Any]:
    params = {}
    for word in words:
        name, sign, value = word.partition("=")
        if not sign or not value.lstrip("-").isdigit():
            raise InputError(f"--param {word}: write a name and a whole number, such as r=2")
        params[name.strip()] = int(value)
    return params


def _construct(name: str, given: list[int], words: list[str], output: _Output, precision: str, json: bool) -> None:
    if len(given) not in (1, 2):
        raise InputError(f"--construct takes D, or K D for the first K vectors; got {len(given)} numbers")
    lines = named_lines(name, given[-1], **_params(words))
    if len(given) == 2:
        if not 1 <= given[0] <= lines.count:
            raise InputError(f"{lines.name} in R^{lines.dim} has {lines.count} vectors, asked for {given[0]}")
        lines = Prefix(lines, given[0])
    path = output.path(f"{name}-{lines.count}-{lines.dim}") if output.save else None
    with progress("all pairs", "blocks") as update:
        found = write_set(lines, path, precision, on_progress=update)
    present(found, json)
