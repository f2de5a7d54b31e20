"""`repcap pack`: search for k lines in R^d, write an explicit set, or verify a file of vectors."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from repcap.console.common import (
    DeviceOption,
    JsonOption,
    SeedOption,
    new_table,
    note,
    print_json,
    progress,
    stdout,
    warn,
)
from repcap.console.pack_view import pack_progress, show_packing, show_verification
from repcap.constructions import by_command
from repcap.errors import InputError, RepcapError

if TYPE_CHECKING:
    from repcap.constructions.lines import Lines
    from repcap.packing.packed import Packing

CHECKED = 40_000
"""Vectors of a written construction up to which all pairs are measured."""

ROUNDED = 1e-14
"""What computing the entries in float64 may add to a cosine."""

INTERRUPTED = 130


def command(
    sizes: Annotated[
        list[int] | None, typer.Argument(help="K D; with --construct D or K D.", show_default=False)
    ] = None,
    steps: Annotated[int | None, typer.Option("--steps", help="Steps a restart (400 unless --seconds).")] = None,
    seconds: Annotated[float | None, typer.Option("--seconds", help="Time a restart.")] = None,
    restarts: Annotated[
        int | None, typer.Option("--restarts", help="Independent starts (1024 where K D <= 120, else 1).")
    ] = None,
    seed: SeedOption = 0,
    target: Annotated[float | None, typer.Option("--target", help="Stop at this coherence.")] = None,
    init: Annotated[str, typer.Option("--init", help="random, construction, or a file of vectors.")] = "random",
    symmetry: Annotated[str, typer.Option("--symmetry", help="auto, 1 (none), or the order of a rotation.")] = "auto",
    device: DeviceOption = "auto",
    precision: Annotated[str, typer.Option("--precision", help="float32, float64 or bfloat16 (sums).")] = "float32",
    method: Annotated[str, typer.Option("--method", help="optimise, random or adam-pnorm.")] = "optimise",
    trials: Annotated[int, typer.Option("--trials", help="Draws of --method random.")] = 100,
    multiplier: Annotated[int, typer.Option("--multiplier", help="m of adam-pnorm: 40, 50 or 60.")] = 60,
    no_constructions: Annotated[bool, typer.Option("--no-constructions", help="The search alone.")] = False,
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
    verify: Annotated[Path | None, typer.Option("--verify", help="Measure the vectors in this file.")] = None,
    as_json: JsonOption = False,
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
    given = sizes or []
    if verify is not None:
        _refuse(given, construct)
        return _verify(verify, as_json)
    if construct is not None:
        return _construct(construct, given, param or [], out, file_format, no_save, precision, as_json)
    if len(given) != 2:
        raise InputError(f"repcap pack takes two numbers, K and D, got {len(given)}: for example repcap pack 2000 128")
    k, d = given
    where = _where(out, file_format, f"packing-{k}-{d}")
    files = _Files(where, save=not no_save, resume=resume, force=force)
    options: dict[str, Any] = {
        "steps": steps if steps is not None or seconds is not None else 400,
        "seconds": seconds, "restarts": restarts, "seed": seed, "target": target, "init": init, "symmetry": symmetry,
        "device": device, "precision": precision, "method": method, "trials": trials, "multiplier": multiplier,
        "constructions": not no_constructions,
    }  # fmt: skip
    _pack(k, d, options, files, as_json)


@dataclasses.dataclass(frozen=True)
class _Files:
    """Where vectors and checkpoint go, and what may be overwritten."""

    out: Path
    save: bool
    resume: bool
    force: bool

    @property
    def checkpoint(self) -> Path:
        return self.out.with_name(self.out.name + ".checkpoint")

    def prepare(self) -> None:
        """Fail before the work rather than after it."""
        if not self.save:
            return
        from repcap.packing.vector_files import vectors_ending

        vectors_ending(self.out)
        if not self.out.absolute().parent.is_dir():
            raise InputError(f"--out {self.out}: no directory {self.out.absolute().parent}; make it first")
        if self.checkpoint.exists() and not self.resume:
            if not self.force:
                raise InputError(
                    f"{self.checkpoint} holds an unfinished search: go on with --resume, or drop it: --force"
                )
            self.checkpoint.unlink()
        elif self.resume and not self.checkpoint.exists():
            note(f"no checkpoint {self.checkpoint}: starting anew")

    def better_there(self, packing: Packing) -> float | None:
        """Coherence of the vectors that are in the file already, if they are as many, and better."""
        if self.force or not self.out.exists():
            return None
        from repcap.packing.coherence import coherence
        from repcap.packing.vector_files import open_vectors

        try:
            matrix, _ = open_vectors(self.out)
            if (matrix.count, matrix.dim) != (packing.k, packing.d):
                return None
            there = coherence(matrix).value  # what the file says of itself is not believed
        except RepcapError:
            return None
        return there if there < packing.coherence else None


def _where(out: Path | None, file_format: str | None, name: str) -> Path:
    """The file for the vectors: `out`, or `name` with the ending of the format."""
    if out is None:
        return Path(f"{name}.{file_format or 'safetensors'}")
    if file_format is not None and out.suffix != f".{file_format}":
        raise InputError(f"--out {out} does not end in .{file_format}: leave --format out, or give that ending")
    return out


def _pack(k: int, d: int, options: dict[str, Any], files: _Files, as_json: bool) -> None:
    from repcap.packing.solve import pack
    from repcap.packing.vector_files import save

    files.prepare()
    if 1 < k < d:
        note(f"K < D: all orthogonal. For {d} lines in R^{k}: repcap pack {d} {k}")
    keep = files.save and options["method"] == "optimise"
    with pack_progress(f"pack {k} x {d}") as hook:
        packing = pack(
            k, d, **options, on_progress=hook, checkpoint=files.checkpoint if keep else None, keep_on_interrupt=True
        )
    if files.save:
        there = files.better_there(packing)
        if there is not None:
            warn(f"{files.out} holds better vectors (coherence {there:.9g}): not overwritten; --force would")
        else:
            packing = dataclasses.replace(packing, path=str(files.out))
            save(packing, files.out)
    if as_json:
        print_json(packing)
    else:
        show_packing(packing)
    if options["target"] is not None and packing.coherence > options["target"] and not packing.interrupted:
        note(f"the target {options['target']:g} was not reached")
    if packing.interrupted:
        how = "; go on with --resume" if keep else ""
        note(f"interrupted: these are the best vectors until then{how}")
        raise typer.Exit(INTERRUPTED)


def _refuse(given: list[int], construct: str | None) -> None:
    if given or construct is not None:
        raise InputError("--verify takes a file alone: no K, D and no --construct")


def _verify(path: Path, as_json: bool) -> None:
    from repcap.packing.verification import verify

    with progress("verify", "blocks") as update:
        result = verify(path, on_progress=update)
    if as_json:
        print_json(result)
    else:
        show_verification(result)


def _params(words: list[str]) -> dict[str, int]:
    params = {}
    for word in words:
        name, sign, value = word.partition("=")
        if not sign or not value.lstrip("-").isdigit():
            raise InputError(f"--param {word}: write a name and a whole number, such as r=2")
        params[name.strip()] = int(value)
    return params


def _construct(
    name: str,
    given: list[int],
    words: list[str],
    out: Path | None,
    file_format: str | None,
    no_save: bool,
    precision: str,
    as_json: bool,
) -> None:
    from repcap.constructions.build import named_lines
    from repcap.constructions.lines import Prefix

    if len(given) not in (1, 2):
        raise InputError(f"--construct takes D, or K D for the first K vectors; got {len(given)} numbers")
    lines = named_lines(name, given[-1], **_params(words))
    if len(given) == 2:
        if not 1 <= given[0] <= lines.count:
            raise InputError(f"{lines.name} in R^{lines.dim} has {lines.count} vectors, asked for {given[0]}")
        lines = Prefix(lines, given[0])
    path = None if no_save else _where(out, file_format, f"{name}-{lines.count}-{lines.dim}")
    _write(lines, path, precision, as_json)


def _write(lines: Lines, path: Path | None, precision: str, as_json: bool) -> None:
    import torch

    from repcap.packing.coherence import coherence
    from repcap.packing.solve import lower_bound
    from repcap.packing.vector_files import BYTES, Stored, vectors_ending, write_vectors

    k, d = lines.count, lines.dim
    dtype = {"float32": torch.float32, "float64": torch.float64}.get(precision)
    if dtype is None:
        raise InputError(f"vectors are written as float32 or float64, not {precision}")
    measured = None
    if 2 <= k <= CHECKED:
        with progress("all pairs", "blocks") as update:
            measured = coherence(Stored(lines, dtype), on_progress=update).value
    bound, bound_name = lower_bound(k, d) if k > 1 else (0.0, "one vector")
    rounding = max(torch.finfo(dtype).eps, ROUNDED)  # of a cosine of two rows whose entries are rounded
    record: dict[str, Any] = {
        "k": k, "d": d, "name": lines.name, "coherence": measured if measured is not None else lines.claimed,
        "coherence_claimed": lines.claimed, "exact": lines.exact,
        "evidence": "measured over all pairs" if measured is not None else "proven",
        "dtype": precision, "rounding": rounding, "lower_bound": bound, "lower_bound_name": bound_name,
        "path": None if path is None else str(path),
    }  # fmt: skip
    if path is not None:
        _room(path, int(k * d * dtype.itemsize * BYTES[vectors_ending(path)]))
        metadata = {
            "k": str(k),
            "d": str(d),
            "coherence": str(record["coherence"]),
            "method": f"construction: {lines.name}",
        }
        with progress("write", "rows") as update:
            write_vectors(path, lines, {**metadata, "repcap": json.dumps(record)}, dtype, update)
    if as_json:
        return print_json(record)
    table = new_table(f"{lines.name}: {k} lines in R^{d}", "", ">")
    table.add_row("coherence", f"{record['coherence']:.12g}")
    table.add_row("evidence", record["evidence"])
    table.add_row("by its theorem", f"{'' if lines.exact else '<= '}{lines.claimed:.12g}")
    table.add_row(f"rounding of {precision}", f"<= {rounding:.2g}")
    table.add_row("proven lower bound", f"{bound:.12g}  {bound_name}")
    if path is not None:
        table.add_row("vectors", str(path))
    stdout().print(table)


def _room(path: Path, size: int) -> None:
    """Raise InputError unless `size` bytes fit where `path` lies."""
    parent = path.absolute().parent
    if not parent.is_dir():
        raise InputError(f"--out {path}: no directory {parent}; make it first")
    free = shutil.disk_usage(parent).free
    if size > free:
        raise InputError(
            f"the vectors take {size / 1e9:.3g} GB, {parent} has {free / 1e9:.3g} GB free: give K D for the first K"
        )
