"""`repcap interference`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from repcap.console import common
from repcap.console.common import DeviceOption, JsonOption, SeedOption
from repcap.console.values import numbers

if TYPE_CHECKING:
    from repcap.verbs.interference.study import Interference


def command(
    d: Annotated[int | None, typer.Option("--d", help="Dimensions.")] = None,
    k: Annotated[int | None, typer.Option("--k", help="Directions (features).")] = None,
    active: Annotated[str, typer.Option("--active", help="Active features: 8, or 1,2,4, or 1..64x2.")] = "1..32x2",
    method: Annotated[
        str, typer.Option("--method", help="random, optimised, constructed; a comma list.")
    ] = "random,optimised,constructed",
    vectors: Annotated[
        Path | None, typer.Option("--vectors", help="Read these rows (.safetensors, .npy) instead.")
    ] = None,
    values: Annotated[str, typer.Option("--values", help="Feature values: signs, ones or uniform.")] = "signs",
    trials: Annotated[int, typer.Option("--trials", min=1, help="Random sets of active features for each s.")] = 200,
    steps: Annotated[int, typer.Option("--steps", min=1, help="Steps of the optimiser.")] = 400,
    seed: SeedOption = 0,
    device: DeviceOption = "auto",
    plot: Annotated[Path | None, typer.Option("--plot", help="Draw it: a .png, .svg or .pdf.")] = None,
    json: JsonOption = False,
) -> None:
    """Simulate reading s active features out of k directions in R^d: error, and whether the active ones are found.

    Capacity says how many directions fit at a coherence. This says what a linear readout can use of them.
    """
    from repcap.verbs.interference.study import interference

    common.check_plot(plot)
    with common.progress("Interference", "%") as on_progress:
        found = interference(
            k,
            d,
            [int(s) for s in numbers(active, "--active", whole=True)],
            methods=[name.strip() for name in method.split(",")],
            vectors=vectors,
            trials=trials,
            values=values,
            steps=steps,
            seed=seed,
            device=device,
            on_progress=lambda _what, fraction: on_progress(round(100 * fraction), 100),
        )
    if plot is not None:
        from repcap.verbs.interference.figure import draw_interference

        for written in draw_interference(found.to_dict(), plot):
            common.note(f"wrote {written}")
    if json:
        common.print_json(found)
    else:
        _show(found)


def _show(found: Interference) -> None:
    from repcap.console.prose import prose

    console = common.stdout()
    for one in found.sets:
        table = common.new_table(
            f"\n{one.method} ({one.label}): coherence {one.coherence:.4f}, rms cosine {one.rms_cosine:.4f} "
            f"(least possible {one.welch_rms:.4f})",
            *(">active", ">rms active", ">rms idle", ">predicted", ">worst idle", ">found", ">dual rms", ">found"),
        )
        for s in found.active:
            direct, dual = (
                r for name in ("direct", "dual") for r in one.readouts if (r.active, r.readout) == (s, name)
            )
            predicted = "" if direct.predicted_idle is None else f"{direct.predicted_idle:.4f}"
            table.add_row(
                str(s),
                f"{direct.rms_active:.4f}",
                f"{direct.rms_idle:.4f}",
                predicted,
                f"{direct.worst:.4f}",
                f"{direct.recovery:.1%}",
                f"{dual.rms_idle:.4f}",
                f"{dual.recovery:.1%}",
            )
        console.print(table)
    console.print(prose(found.reading))
