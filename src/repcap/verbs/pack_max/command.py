"""`repcap pack-max`: the largest k for which k lines in R^d within a coherence are shown."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path
from typing import Annotated

import typer

from repcap.console.common import DeviceOption, JsonOption, SeedOption, note, print_json, progress
from repcap.console.pack_view import show_largest
from repcap.errors import InputError

INTERRUPTED = 130


def command(
    d: Annotated[int, typer.Argument(metavar="D", help="Dimensions.")],
    epsilon: Annotated[float, typer.Argument(metavar="EPS", help="Largest |cos| allowed, in (0, 1).")],
    seconds: Annotated[float, typer.Option("--seconds", help="Time for the whole search.")] = 60.0,
    steps: Annotated[int, typer.Option("--steps", help="Steps of each search.")] = 400,
    restarts: Annotated[int, typer.Option("--restarts", help="Starts of each search.")] = 1,
    seed: SeedOption = 0,
    device: DeviceOption = "auto",
    no_search: Annotated[bool, typer.Option("--no-search", help="Explicit constructions alone.")] = False,
    out: Annotated[Path | None, typer.Option("--out", help="Vectors go here (.safetensors, .npy or .txt).")] = None,
    as_json: JsonOption = False,
) -> None:
    """The most lines in R^D with |cos| <= EPS that can be shown.

    Explicit constructions first, then searches at growing k until one fails
    or the time is used. What is claimed was measured over all pairs in
    float64, or rests on a theorem; the proven limit stands beside it.

    repcap pack-max 20 0.35
    repcap pack-max 4096 0.0645 --no-search
    """
    from repcap.packing.largest import Trial, pack_max
    from repcap.packing.vector_files import BYTES, vectors_ending, write_vectors

    if out is not None and (not vectors_ending(out) or not out.absolute().parent.is_dir()):
        raise InputError(f"--out {out}: give a name in a directory that exists")

    def told(trial: Trial) -> None:
        note(
            f"k = {trial.k}: {trial.coherence:.6f} {'reached' if trial.reached else 'too high'}, {trial.seconds:.1f} s"
        )

    result = pack_max(
        d, epsilon, seconds=seconds, steps=steps, restarts=restarts, seed=seed, device=device, search=not no_search,
        on_progress=told, keep_on_interrupt=True,
    )  # fmt: skip
    if out is not None and result.matrix is not None:
        size = result.k * d * 8 * BYTES[vectors_ending(out)]
        if size > shutil.disk_usage(out.absolute().parent).free:
            raise InputError(f"{result.k} vectors of R^{d} take {size / 1e9:.3g} GB, more than is free beside {out}")
        import torch

        metadata = {"k": str(result.k), "d": str(d), "coherence": str(result.coherence), "method": result.method}
        with progress("write", "rows") as update:
            write_vectors(out, result.matrix, metadata, torch.float64, update)
        result = dataclasses.replace(result, path=str(out))
    if as_json:
        print_json(result)
    else:
        show_largest(result)
    if result.interrupted:
        raise typer.Exit(INTERRUPTED)
