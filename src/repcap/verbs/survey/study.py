"""`survey`: measure many sources, each once, and keep every result."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from repcap import geometry, sources
from repcap.errors import InputError, OptionError, RemoteError, SourceError, VectorsError
from repcap.geometry.pairs.tail import ALPHAS
from repcap.jobs.batch import Batch, EngineOptions, OnUnit, run_batch
from repcap.jobs.engine import Unit
from repcap.jobs.record import MEASURE, make, provenance, published_results
from repcap.jobs.store import DEFAULT_PATH, Store, Stored, unit_key
from repcap.matrix import Matrix
from repcap.numerics import DELTA, THETA
from repcap.options import Device, Engine, Option, Refresh, Retries, Rows, StorePath, Timeout, key_options, verb_over
from repcap.studies.measured import measure
from repcap.studies.places import is_current, locate
from repcap.text import short_name
from repcap.verbs.survey.model_list import BOTH, Entry, published_list, read_list

Published = Annotated[
    bool, Option("The 45 checkpoints of the published table, from the Hub.", silent=True, listed=False)
]
Matrices = Annotated[
    str | None, Option("both (default), embedding, unembedding, or a tensor name.", listed=False, metavar="NAME")
]
Pairs = Annotated[
    bool,
    Option("Also what all pairs tell: tail dimension and s_max; n^2 d operations a model.", silent=True, listed=False),
]
GpusPerModel = Annotated[
    float,
    Option("GPUs a worker holds; below 1, workers share one.", least=0.0, flags=("--gpus-per-model",), silent=True,
           listed=False),
]  # fmt: skip


def measure_unit(payload: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The work of one unit, in a worker process: [{role, record, provenance}], one or two of them.

    payload: what an Entry holds, and device, asked, opening.
    """
    roles = ("embedding", "unembedding") if payload["matrix"] == BOTH else (payload["matrix"],)
    _, opening = _split_options(payload)
    # Both matrices come of one commit, even if the branch moves meanwhile.
    source = sources.pin_source(payload["opening"], rows=payload["rows"], **opening)
    found = [_measure_one(payload, roles[0], source)]
    # A tied unembedding is the embedding once more; an encoder has none.
    if len(roles) == 2 and found[0]["record"]["tied"] is False:
        try:
            found.append(_measure_one(payload, roles[1], source))
        except RemoteError:
            raise  # the next run may have more luck
        except (SourceError, VectorsError) as error:
            found[0]["record"]["unembedding_error"] = str(error)
    return found


def _split_options(payload: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """(options of the measurement, options of opening the source)."""
    options = dict(payload["options"])
    opening = {name: options.pop(name) for name in ("allow_truncated", "allow_full_download") if name in options}
    return options, opening


def _measure_one(payload: Mapping[str, Any], role: str, source: Any) -> dict[str, Any]:
    options, opening = _split_options(payload)
    with sources.open_source(source, role, rows=payload["rows"], **opening) as matrix:
        measured = measure(matrix, rows=payload["rows"], device=payload["device"], **options)
        more = _of_pairs(matrix, options, payload["device"]) if payload["pairs"] else {}
    values = {**measured.to_dict(), "source": payload["source"]}
    named = {"name": payload["name"] or short_name(payload["source"]), "family": payload["family"], "published": False}
    named |= {"unembedding_error": None, **more}
    origin = provenance(
        revision=values.get("revision"),
        tensor_sha256=values.pop("tensor_sha256"),
        options=payload["asked"],
        seed=payload["options"].get("seed", 0),
    )
    return {"role": role, "record": make(MEASURE, values, **named), "provenance": origin}


def _of_pairs(matrix: Matrix, options: Mapping[str, Any], device: str) -> dict[str, Any]:
    """`tails` and `at_once` of a record, of the rows that were measured."""
    without, only = options.get("exclude_ids") or (), options.get("only_ids") or ()
    rows = geometry.select_rows(matrix.count, without, only, options.get("vocab_size"))
    tail = geometry.stored_tail(matrix, rows, ALPHAS, device)
    reader = geometry.plain_reader(matrix, device, rows)
    found = geometry.read_at_once(reader, theta=THETA, delta=DELTA, seed=options.get("seed", 0))
    return {"tails": [tail.to_dict()], "at_once": found.to_dict() if found else None}


def asked(entry: Entry) -> dict[str, Any]:
    """What a result depends on beside its source, in one form for the same meaning."""
    return key_options(measure, entry.options) | {"matrix": entry.matrix, "rows": entry.rows}


def units_of(entries: Iterable[Entry], device: str = "auto", pairs: bool = False) -> dict[str, Unit]:
    """Key -> unit, in the order of the list. The same model with the same options twice in a list is one unit."""
    units: dict[str, Unit] = {}
    for entry in entries:
        place = locate(entry.source)
        key = unit_key(MEASURE, place.identity, asked(entry))
        payload = {**dataclasses.asdict(entry), "device": device, "fingerprint": place.fingerprint}
        payload |= {"asked": asked(entry), "opening": place.opening, "pairs": pairs}
        units.setdefault(key, Unit(key, payload, entry.label, float(place.bytes)))
    return units


def _results(unit: Unit, found: Sequence[Mapping[str, Any]]) -> list[Stored]:
    fingerprint = unit.payload["fingerprint"]
    return [
        Stored(
            f"{unit.key}-{item['role']}",
            unit.key,
            MEASURE,
            dict(item["record"]),
            {**item["provenance"], "fingerprint": fingerprint},
        )
        for item in found
    ]


@verb_over(measure, leave=("matrix",))
def survey(
    models: str | os.PathLike[str] | Iterable[str | os.PathLike[str] | Entry] = (),
    store: StorePath = DEFAULT_PATH,
    *,
    published: Published = False,
    pairs: Pairs = False,
    matrix: Matrices = None,
    rows: Rows = None,
    engine: Engine = "local",
    gpus_per_unit: GpusPerModel = 0.0,
    retries: Retries = 2,
    timeout: Timeout = None,
    device: Device = "auto",
    refresh: Refresh = False,
    on_unit: OnUnit | None = None,
    **options: Any,
) -> Batch:
    """Measure many models and store each result as it ends; what is stored is skipped, what failed is tried again.

    Parameters
    ----------
    models : path, or iterable of str or Entry
        a list file (see `read_list`), or the sources themselves.
    store : path
        the result store, made if it is missing.
    published : bool
        add the 45 checkpoints of the published table, by hub id.
    pairs : bool
        also what it takes all pairs to tell: `tails`, the tail of |cosine| and its dimension d_alpha at shares of
        0.0455, 1e-3, 1e-4 and 1e-6, and `at_once`, with s_max of linear readouts. n^2 d operations a model. Models that
        are stored without are measured again, and those that have them stay.
    matrix, rows, options
        as of `repcap.measure`, for every entry that does not say otherwise. `matrix` is `both` by default: embedding,
        and unembedding where it is another matrix.
    engine, gpus_per_unit, retries, timeout
        see `repcap.jobs.engine.run`.
    device : str
        of the measurement. It is no part of a result's key.
    refresh : bool
        measure again what is stored, and replace it.
    on_unit : callable, optional
        called with (models settled, models in all).

    Returns
    -------
    Batch
        its `failures` hold the reason of each model that could not be measured.

    Raises
    ------
    InputError, StoreError, MissingExtraError
        for an unusable list, store or engine. A model that fails raises nothing.

    Memory: this process holds the list; each worker what `measure` needs.
    """
    entries = _gather(models, published)
    entries = [_with_defaults(entry, matrix, rows, options) for entry in entries]
    if pairs and any(entry.rows is not None for entry in entries):
        few = next(entry.rows for entry in entries if entry.rows is not None)
        raise OptionError("rows", few, "all pairs are of all rows: leave `rows` out, or `pairs`")
    units = list(units_of(entries, device, pairs).values())
    running = EngineOptions(engine, retries, timeout, gpus_per_unit)
    with Store(store) as opened:
        return run_batch(
            opened,
            MEASURE,
            units,
            measure_unit,
            _results,
            running,
            is_stored=lambda unit: not refresh and is_current(opened, unit) and (not pairs or _paired(opened, unit)),
            replace=True,
            on_unit=on_unit,
        )


def _paired(store: Store, unit: Unit) -> bool:
    """Whether every result of the unit holds what all pairs tell."""
    return all(result.record.get("tails") for result in store.unit(unit.key))


def _gather(models: str | os.PathLike[str] | Iterable[str | os.PathLike[str] | Entry], published: bool) -> list[Entry]:
    entries = published_list() if published else []
    if isinstance(models, (str, os.PathLike)):
        entries = [*read_list(Path(models)), *entries]
    else:
        entries = [*(item if isinstance(item, Entry) else Entry(os.fspath(item)) for item in models), *entries]
    if not entries:
        raise InputError("no models to survey: give a list (models.txt, models.yaml) or --published")
    return entries


def _with_defaults(entry: Entry, matrix: str | None, rows: int | None, options: Mapping[str, Any]) -> Entry:
    return dataclasses.replace(
        entry,
        matrix=matrix if matrix is not None and entry.matrix == BOTH else entry.matrix,
        rows=rows if entry.rows is None else entry.rows,
        options={**options, **entry.options},
    )


def store_published(store: str | os.PathLike[str] = DEFAULT_PATH) -> int:
    """Put the 45 rows of the published table into a store, as records of kind `published`; returns how many are new."""
    with Store(store) as opened:
        return opened.put_all(published_results())
