"""`sweep`: pack every cell (k, d, seed) of a grid and keep each result; the data that laws are fitted to."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from repcap import packing
from repcap.errors import InputError
from repcap.jobs.batch import Batch, EngineOptions, OnUnit, run_batch
from repcap.jobs.engine import Unit
from repcap.jobs.record import PACK, make, provenance
from repcap.jobs.store import DEFAULT_PATH, Store, Stored, unit_key
from repcap.laws.fitting.data import optimized_packing
from repcap.options import (
    Device,
    Engine,
    Option,
    Refresh,
    Retries,
    StorePath,
    Timeout,
    check_options,
    key_options,
    verb_over,
)
from repcap.packing.entry import Constructions
from repcap.plain_yaml import parse_yaml

MOST = 1 << 20
"""Cells of a grid; and vectors, dimensions and their ratio in a file of cells."""

SMALL_D = (16, 24, 32, 48, 64, 96, 128, 192, 256)
SMALL_RATIOS = (1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32)
SMALL_K = 2048
SMALL_SEEDS = 2
"""`--grid small`: k = ratio x d up to SMALL_K vectors, for every d and ratio."""

OneStart = Annotated[int, Option("Restarts for each cell; the best counts.", least=1)]
GpusPerCell = Annotated[
    float, Option("GPUs a worker holds; below 1, workers share one.", least=0.0, silent=True, listed=False)
]
SaveVectors = Annotated[
    str | os.PathLike[str] | None,
    Option("Directory for the vectors (.safetensors).", metavar="DIR", silent=True, listed=False),
]


@dataclasses.dataclass(frozen=True, order=True)
class Cell:
    """k vectors in R^d, packed from the random start of this seed."""

    k: int
    d: int
    seed: int = 0

    def check(self, where: str) -> None:
        """Raise InputError unless k >= 2, d >= 1 and the seed is not negative."""
        values = dataclasses.astuple(self)
        whole = all(isinstance(value, int) and not isinstance(value, bool) for value in values)
        if not whole or self.k < 2 or self.d < 1 or self.seed < 0 or max(self.k, self.d) > MOST or self.seed >> 63:
            raise InputError(
                f"{where}: k = {self.k!r}, d = {self.d!r}, seed = {self.seed!r} is no cell: "
                f"whole numbers with k >= 2, d >= 1, seed >= 0; k and d of {MOST} at most"
            )

    @property
    def label(self) -> str:
        return f"{self.k} lines in R^{self.d}, seed {self.seed}"


def grid(ks: Iterable[int], ds: Iterable[int], seeds: int = 1) -> list[Cell]:
    """Every k with every d and seeds 0..seeds-1, where k > d (for k <= d an orthonormal set is exact)."""
    if seeds < 1:
        raise InputError(f"--seeds {seeds}: give at least 1")
    return [Cell(k, d, seed) for d in ds for k in ks if k > d for seed in range(seeds)]


def named_grid(name: str, seeds: int | None = None) -> list[Cell]:
    """`published`: the 160 cells with k > d of the shipped optimised packings. `small`: minutes on two cores.

    seeds: how many for each (k, d); by default 1, and 2 for `small`.
    """
    if name == "published":
        table = optimized_packing()
        pairs = [(int(k), int(d)) for k, d in zip(table.k, table.d, strict=True) if k > d]
        return [Cell(k, d, seed) for k, d in pairs for seed in range(seeds or 1)]
    if name == "small":
        pairs = [(round(ratio * d), d) for d in SMALL_D for ratio in SMALL_RATIOS if ratio * d <= SMALL_K]
        return [Cell(k, d, seed) for k, d in pairs for seed in range(seeds or SMALL_SEEDS)]
    raise InputError(f"unknown grid {name!r}: use small or published, a YAML file, or --k and --d")


def read_cells(path: str | os.PathLike[str]) -> tuple[list[Cell], dict[str, Any]]:
    """(cells, options) of a YAML file.

    Keys: `cells` (a list of {k, d, seed}), `grid` (a name, or {k: [..], d: [..], seeds: n}, or {ratio: [..], d: [..]}
    with k = ratio d rounded), `options` (those of `repcap pack`). `cells` and `grid` may stand together.

    Raises
    ------
    InputError
        if the file is missing or malformed; the message names the place.
    """
    file = Path(path)
    try:
        held = parse_yaml(file.read_text(encoding="utf-8-sig"), str(file))
    except UnicodeDecodeError as error:
        raise InputError(f"{file} is no valid YAML: {error}") from error
    except OSError as error:
        raise InputError(f"cannot read {file}: {(error.strerror or str(error)).lower()}") from error
    if not isinstance(held, Mapping) or not held or set(held) - {"cells", "grid", "options"}:
        raise InputError(f"{file}: expected the keys cells, grid and options")
    cells = [_cell(item, f"{file}, cell {place}") for place, item in enumerate(_listed(held, "cells", file), start=1)]
    if "grid" in held:
        cells += _yaml_grid(held["grid"], file)
    options = held.get("options") or {}
    if not isinstance(options, Mapping):
        raise InputError(f"{file}: options must be a mapping")
    return cells, check_options(sweep, options, str(file))


def _listed(held: Mapping[str, Any], key: str, file: Path) -> list[Any]:
    found = held.get(key) or []
    if not isinstance(found, list):
        raise InputError(f"{file}: {key} must be a list, not {found!r}")
    return found


def _cell(item: Any, where: str) -> Cell:
    if not isinstance(item, Mapping) or not {"k", "d"} <= set(item) <= {"k", "d", "seed"}:
        raise InputError(f"{where}: expected {{k: .., d: .., seed: ..}}, found {item!r}")
    cell = Cell(**item)
    cell.check(where)
    return cell


def _yaml_grid(held: Any, file: Path) -> list[Cell]:
    if isinstance(held, str):
        return named_grid(held)
    if not isinstance(held, Mapping) or "d" not in held or ("k" in held) == ("ratio" in held):
        raise InputError(f"{file}: grid must be a name, or have d and one of k and ratio (and seeds)")
    if set(held) - {"d", "k", "ratio", "seeds"}:
        raise InputError(f"{file}: grid knows d, k, ratio and seeds, not {', '.join(map(str, held))}")
    seeds, ds = held.get("seeds", 1), _listed(held, "d", file)
    sizes = _listed(held, "k" if "k" in held else "ratio", file)
    if _count(seeds, file) * len(ds) * len(sizes) > MOST:
        raise InputError(f"{file}: grid gives {seeds * len(ds) * len(sizes)} cells, {MOST} at most")
    if "k" in held:
        cells = [Cell(k, d, seed) for d in ds for k in _listed(held, "k", file) for seed in range(_count(seeds, file))]
    else:
        numbers = [*_listed(held, "ratio", file), *ds]
        if not all(isinstance(number, (int, float)) and 0 < number <= MOST for number in numbers):
            raise InputError(f"{file}: ratio and d must be numbers, from above 0 to {MOST}")
        ratios = numbers[: len(numbers) - len(ds)]
        cells = [Cell(round(ratio * d), d, seed) for d in ds for ratio in ratios for seed in range(_count(seeds, file))]
    for cell in cells:
        cell.check(f"{file}, grid")
    return [cell for cell in cells if cell.k > cell.d]


def _count(seeds: Any, file: Path) -> int:
    if isinstance(seeds, bool) or not isinstance(seeds, int) or seeds < 1:
        raise InputError(f"{file}: seeds must be a whole number of at least 1, not {seeds!r}")
    return seeds


def pack_unit(payload: Mapping[str, Any]) -> dict[str, Any]:
    """The work of one cell, in a worker process: {record, provenance}.

    payload: k, d, seed, options, device, save (path of the file for the vectors, or None).
    """
    options = payload["options"]
    found = packing.pack(payload["k"], payload["d"], seed=payload["seed"], device=payload["device"], **options)
    values = found.to_dict()
    if payload["save"] is not None:
        packing.save(found, payload["save"])
        values["path"] = payload["save"]
    origin = provenance(options=payload["asked"], seed=payload["seed"])
    return {"record": make(PACK, values, name=f"{found.k} x {found.d}"), "provenance": origin}


def units_of(
    cells: Iterable[Cell], options: Mapping[str, Any], device: str, save_vectors: Path | None
) -> dict[str, Unit]:
    """Key -> unit. The size is the work of a step, so that the largest cells start first."""
    units: dict[str, Unit] = {}
    asked = key_options(sweep, options)
    if options.get("steps", 1) is None:  # time alone ends it: not the default
        asked["steps"] = None
    for cell in cells:
        cell.check("sweep")
        identity = dataclasses.asdict(cell)
        key = unit_key(PACK, identity, asked)
        file = None
        if save_vectors is not None:
            file = str(save_vectors / f"k{cell.k}_d{cell.d}_s{cell.seed}_{key[:8]}.safetensors")
        payload = {**identity, "options": dict(options), "asked": asked, "device": device, "save": file}
        units.setdefault(key, Unit(key, payload, cell.label, float(cell.k) ** 2 * cell.d))
    return units


def _results(unit: Unit, value: Mapping[str, Any]) -> Sequence[Stored]:
    return [Stored(unit.key, unit.key, PACK, dict(value["record"]), dict(value["provenance"]))]


@verb_over(packing.pack, leave=("seed",))
def sweep(
    cells: Iterable[Cell],
    store: StorePath = DEFAULT_PATH,
    *,
    restarts: OneStart = 1,
    constructions: Constructions = False,
    engine: Engine = "local",
    gpus_per_cell: GpusPerCell = 0.0,
    retries: Retries = 2,
    timeout: Timeout = None,
    device: Device = "auto",
    save_vectors: SaveVectors = None,
    refresh: Refresh = False,
    on_unit: OnUnit | None = None,
    **options: Any,
) -> Batch:
    """Pack every cell and store each result as it ends; what is stored is skipped, what failed is tried again.

    Parameters
    ----------
    cells : iterable of Cell
        from `grid`, `named_grid`, `read_cells` or your own; repeated cells count once.
    store : path
        the result store, made if it is missing.
    engine, gpus_per_cell, retries, timeout
        see `repcap.jobs.engine.run`. The largest cells (k^2 d) start first.
    device : str
        of the search. It is no part of a result's key.
    save_vectors : path, optional
        directory that gets the vectors of each cell as .safetensors; they are not stored otherwise.
    refresh : bool
        pack again what is stored, and replace it.
    restarts, constructions, options
        of `repcap.pack`; one start and no explicit set by default: the laws describe what the search alone reaches.

    Raises
    ------
    InputError, StoreError, MissingExtraError
        for unusable cells, options, store or engine. A cell that fails raises nothing.

    Memory: this process holds the list; each worker what `pack` needs.
    """
    asked = {**options, "restarts": restarts, "constructions": constructions}
    units = _units(cells, asked, device, save_vectors)
    running = EngineOptions(engine, retries, timeout, gpus_per_cell)
    _make_folder(save_vectors)
    with Store(store) as opened:
        return run_batch(
            opened,
            PACK,
            units,
            pack_unit,
            _results,
            running,
            is_stored=lambda unit: not refresh and opened.has(unit.key),
            replace=True,
            on_unit=on_unit,
        )


def _units(
    cells: Iterable[Cell], options: Mapping[str, Any], device: str, save_vectors: str | os.PathLike[str] | None
) -> list[Unit]:
    """The units of a sweep; InputError where there is none."""
    chosen = dict(options)
    if Path(chosen.get("init") or "random").is_file():
        chosen["init"] = str(Path(chosen["init"]).absolute())  # workers may stand in another directory
    folder = None if save_vectors is None else Path(save_vectors).absolute()
    units = list(units_of(cells, chosen, device, folder).values())
    if not units:
        raise InputError("no cells to pack: a grid needs some k > d")
    return units


def _make_folder(path: str | os.PathLike[str] | None) -> None:
    if path is None:
        return
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make {os.fspath(path)}: {(error.strerror or str(error)).lower()}") from error
