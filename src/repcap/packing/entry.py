"""`pack` and its options. Torch comes with the work (`solve.py`): `sweep` takes its options from this signature."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

from repcap import packing
from repcap.options import Device, Option, Seed, verb
from repcap.packing.search import METHODS, Method

if TYPE_CHECKING:
    from repcap.packing.packed import Packing, ProgressHook


def method_option() -> Option:
    """What `method` may be: the names in the table of optimisers as it is now."""
    return Option(f"{', '.join(METHODS)}.", choices=tuple(METHODS), metavar="NAME")


Steps = Annotated[int | None, Option("Steps a restart (400 unless --seconds).", least=1)]
Seconds = Annotated[float | None, Option("Time a restart.", above=0.0, why="give a time above 0, or none")]
Restarts = Annotated[int | None, Option("Independent starts (1024 where K D <= 120, else 1).", least=1)]
Target = Annotated[
    float | None, Option("Stop at this coherence.", above=0.0, below=1.0, why="a coherence lies between 0 and 1")
]
Init = Annotated[str, Option("random, construction, or a file of vectors.")]
PRECISIONS = ("float32", "float64", "bfloat16")
Precision = Annotated[str, Option("float32, float64 or bfloat16 (sums).", choices=PRECISIONS)]
Symmetry = Annotated[
    int | str,
    Option("auto, 1 (none), or the order of a rotation.", least=1, choices=("auto",),
           why="give auto, 1 (none), or the order of a rotation"),
]  # fmt: skip
Constructions = Annotated[
    bool, Option("Let an explicit set win where it is better.", flags=("--constructions/--no-constructions",))
]
Trials = Annotated[int, Option("Draws of --method random.", least=1)]
Multiplier = Annotated[int, Option("m of adam-pnorm: 40, 50 or 60.", least=1)]


@verb
def pack(
    k: int,
    d: int,
    *,
    steps: Steps = 400,
    seconds: Seconds = None,
    restarts: Restarts = None,
    seed: Seed = 0,
    target: Target = None,
    init: Init = "random",
    symmetry: Symmetry = "auto",
    device: Device = "auto",
    precision: Precision = "float32",
    method: Annotated[str | Method, method_option()] = "optimise",
    trials: Trials = 100,
    multiplier: Multiplier = 60,
    constructions: Constructions = True,
    on_progress: ProgressHook | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    keep_on_interrupt: bool = False,
) -> Packing:
    """k unit vectors in R^d with small coherence: the best of a search and of the explicit constructions.

    Parameters
    ----------
    steps, seconds
        Budget of each restart; either may be None. The path of the search is spread over it.
    restarts
        Independent starts; for k <= 512 they run together, slow and brisk, with and without symmetry.
    precision
        The final coherence is float64 in any case.
    method
        Name of an optimiser, which takes those of the options here that are parameters of it; or such an object, which
        carries its parameters itself (`repcap.packing.search.METHODS`).
    symmetry
        Order g of the rotation that the packing is invariant under; g must divide k. `auto` takes the largest g <= 20
        that leaves 100 orbits. A search of order g costs 1/g.
    constructions
        Also a subset of an explicit set counts. Where one attains the proven bound, no search is run.
    checkpoint
        File that the search writes its state to every 30 s and at the end, and starts from if it exists. Remove it when
        the vectors are safe.
    keep_on_interrupt
        Whether Ctrl-C returns the best so far (`interrupted` is set) instead of raising KeyboardInterrupt.

    Notes
    -----
    Time 3 k^2 d / g flops a step. Memory 3 k d numbers of the search, 2 k d of the best lines and the answer, and the
    blocks; never k x k (but for `adam-pnorm`, k <= 2000 where a polish is tried, and batches of small starts).

    Raises
    ------
    InputError
        if an argument is out of range, or a file cannot be used.
    """
    found: Packing = packing.best_packing(dict(locals()))
    return found
