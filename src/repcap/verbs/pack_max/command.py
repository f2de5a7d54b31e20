"""`repcap pack-max`: the largest k for which k lines in R^d within a coherence are shown."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

import torch
import typer

from repcap.console.common import JsonOption, note, present, progress
from repcap.console.derive import Options, command_of
from repcap.errors import InputError
from repcap.packing.largest import PackMax, Trial, pack_max
from repcap.packing.vector_files import check_room, vectors_ending, write_vectors

INTERRUPTED = 130


@command_of(pack_max)
def command(
    options: Options,
    d: Annotated[int, typer.Argument(metavar="D", help="Dimensions.")],
    epsilon: Annotated[float, typer.Argument(metavar="EPS", help="Largest |cos| allowed, in (0, 1).")],
    out: Annotated[Path | None, typer.Option("--out", help="Vectors go here (.safetensors, .npy or .txt).")] = None,
    json: JsonOption = False,
) -> None:
    """The most lines in R^D with |cos| <= EPS that can be shown.

    Explicit constructions first, then searches at growing k until one fails
    or the time is used. What is claimed was measured over all pairs in
    float64, or rests on a theorem; the proven limit stands beside it.

    repcap pack-max 20 0.35
    repcap pack-max 4096 0.0645 --no-search
    """
    if out is not None and (not vectors_ending(out) or not out.absolute().parent.is_dir()):
        raise InputError(f"--out {out}: give a name in a directory that exists")
    result = pack_max(d, epsilon, **options, on_progress=_told, keep_on_interrupt=True)
    if out is not None:
        result = _saved(result, out)
    present(result, json)
    if result.interrupted:
        raise typer.Exit(INTERRUPTED)


def _told(trial: Trial) -> None:
    note(f"k = {trial.k}: {trial.coherence:.6f} {'reached' if trial.reached else 'too high'}, {trial.seconds:.1f} s")


def _saved(result: PackMax, out: Path) -> PackMax:
    if result.matrix is None:
        return result
    check_room(out, result.k, result.d, torch.float64)
    metadata = {"k": str(result.k), "d": str(result.d), "coherence": str(result.coherence), "method": result.method}
    with progress("write", "rows") as update:
        write_vectors(out, result.matrix, metadata, torch.float64, update)
    return dataclasses.replace(result, path=str(out))
