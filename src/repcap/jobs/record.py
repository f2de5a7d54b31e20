"""What the records in a store mean: every key with its unit, by kind; and how results become records.

Kinds: `measure` (one matrix of a checkpoint, exact or estimated), `published` (a row of the published table of
models), `pack` (one cell of a sweep), `step` (one checkpoint of a run). Numbers are finite or null. Cosines and
epsilon have no unit.

A reader must ignore keys that it does not know: `RECORD_VERSION` grows when the meaning of a key changes, not when a
key is added.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from repcap._version import __version__
from repcap.jobs.store import Stored, unit_key
from repcap.laws.fitting.data import published_models
from repcap.numerics import epsilon_class
from repcap.text import flattened, storable

RECORD_VERSION = 1

MEASURE, PUBLISHED, PACK, STEP = "measure", "published", "pack", "step"
TAIL = 1e-4
"""Share of pairs whose tail dimension stands for all where there is room for one."""


class Key(NamedTuple):
    """What a key holds: unit (empty: a pure number, text or flag) and meaning."""

    unit: str
    meaning: str


COMMON: dict[str, Key] = {
    "record_version": Key("", "version of the meaning of these keys"),
    "schema_version": Key("", "version of the record as the verb prints it"),
    "kind": Key("", "measure, published, pack or step"),
    "reading": Key("", "what the numbers mean, in a sentence"),
    "name": Key("", "name for people: given in the list of models, else from the source"),
    "repcap_version": Key("", "version of repcap that made the record"),
    "seconds": Key("s", "wall time of the work itself"),
}

MODEL: dict[str, Key] = {
    "source": Key("", "the checkpoint as it was named (hub id, path, URL, pkg://)"),
    "family": Key("", "model family where the list of models gives one"),
    "matrix": Key("", "name of the tensor; in published records the role"),
    "role": Key("", "embedding, unembedding, decoder or matrix"),
    "dim": Key("columns", "d, width of the model"),
    "epsilon": Key("cosine", "accepted deviation, mean + z std over all ordered pairs of different rows"),
    "epsilon_null": Key("cosine", "z/sqrt(d), what random directions have"),
    "epsilon_ratio": Key("", "epsilon / epsilon_null"),
    "class": Key("", "high (epsilon > 0.2), low (< 0.1) or between"),
    "published": Key("", "true in rows of the published table"),
}

MEASURED: dict[str, Key] = {
    "revision": Key("", "commit of the source on the Hub, or null"),
    "count": Key("rows", "n, rows that have a direction and were measured"),
    "stored_count": Key("rows", "rows of the matrix in the file: the vocabulary with its padding"),
    "tokenizer_count": Key("tokens", "ids of the tokenizer: the vocabulary without padding; null without a tokenizer"),
    "padding_rows": Key("rows", "rows beyond the tokenizer"),
    "dtype": Key("", "stored precision"),
    "mean": Key("cosine", "mean over all ordered pairs"),
    "std": Key("cosine", "population standard deviation over all ordered pairs"),
    "z": Key("", "epsilon = mean + z std"),
    "epsilon_se": Key("cosine", "jackknife standard error of epsilon over rows, or of the estimate"),
    "se_rows": Key("rows", "rows that epsilon_se comes from"),
    "tied": Key("", "embedding and unembedding are one matrix; null where not known"),
    "evidence": Key("", "what decided role and tying"),
    "effective_dim": Key("directions", "1 / mean square cosine"),
    "estimate": Key("", "set where only some rows were read: rows, interval, how they were drawn"),
    "variants": Key("", "the same on other rows or after a common part was removed"),
    "common_share": Key("", "share of the excess over random directions that one common direction takes away"),
    "common": Key("", "whether one common direction is all that makes epsilon high, in words"),
    "drift": Key("", "epsilon of the first ids alone: ids are no random sample"),
    "spectrum": Key("", "spectrum of the Gram matrix of unit rows: shares, ranks, eigenvalues"),
    "readout": Key(
        "", "limits of linear readouts from G: rank, mean_leverage, direct_dim, linear_limit, s_limit; or null"
    ),
    "tails": Key("", "survey with pairs: alpha, epsilon (eps_alpha) and dim (d_alpha) of all pairs; else not there"),
    "at_once": Key("", "survey with pairs: theta, delta, s_max of the direct and the best linear readout"),
    "influence": Key("", "rows that raise and that lower epsilon most"),
    "dropped": Key("", "rows without a direction: index, reason, token"),
    "dropped_count": Key("rows", "how many"),
    "tiny": Key("", "rows shorter than 1/1000 of the median"),
    "tiny_count": Key("rows", "how many"),
    "repeats": Key("", "groups of rows with equal directions"),
    "repeat_rows": Key("rows", "rows whose direction an earlier row has"),
    "notes": Key("", "what the reader should know about the numbers"),
    "warnings": Key("", "what the reader should know about the file"),
    "unembedding_error": Key("", "why the unembedding could not be measured beside this embedding; null otherwise"),
    "capacity": Key("log10 vectors", "bracket at epsilon: construction, law, upper; null outside 0 < epsilon < 1"),
    "capacity_warnings": Key("", "what the reader should know about the law's number"),
    "options": Key("", "what the measurement was asked for"),
    "device": Key("", "cpu, cuda or mps"),
    "bytes_read": Key("bytes", "taken from disk or network, in the stored encoding"),
}

SHARED = ("revision", "count", "mean", "std", "epsilon_se", "effective_dim", "notes")
"""Keys of MEASURED that a `step` has, too."""

FROM_TABLE: dict[str, Key] = {
    "published_capacity": Key("vectors", "capacity as the paper prints it; null where it says indeterminate"),
}

PACKED: dict[str, Key] = {
    "k": Key("vectors", "vectors packed"),
    "d": Key("columns", "dimension"),
    "seed": Key("", "seed of the random start"),
    "coherence": Key("|cosine|", "largest over all pairs, float64"),
    "lower_bound": Key("|cosine|", "proven: no packing of this size has less"),
    "lower_bound_name": Key("", "who proved it"),
    "steps": Key("steps", "optimiser steps done, all restarts together"),
    "method": Key("", "what gave the vectors"),
    "optimised": Key("|cosine|", "the best that the search alone reached"),
    "constructed": Key("|cosine|", "the best explicit construction; null where none was built"),
    "options": Key("", "what the search was asked for"),
    "interrupted": Key("", "true where it was stopped by hand"),
    "details": Key("", "what the method alone knows"),
    "path": Key("", "file of the vectors, or null"),
    "dtype": Key("", "precision of the vectors"),
}

STEPPED: dict[str, Key] = {
    "step": Key("steps", "training step in the name of the checkpoint, or null"),
    "to_first": Key("cosine", "rows against those of the first checkpoint: mean, 5 % quantile; null at the first"),
    "to_previous": Key("cosine", "rows against those of the checkpoint before"),
    "unembedding": Key("", "the same numbers of the unembedding, where both were asked for and it is another matrix"),
    "alignment": Key("cosine", "rows of the embedding against the same rows of the unembedding"),
    "tensor_sha256": Key("", "SHA-256 of the rows as they were read"),
}

PROVENANCE: dict[str, Key] = {
    "repcap_version": Key("", "version of repcap"),
    "torch_version": Key("", "version of torch that did the arithmetic"),
    "python_version": Key("", "version of Python"),
    "platform": Key("", "operating system and processor family, without the name of the machine"),
    "revision": Key("", "commit of the source on the Hub, or null"),
    "tensor_sha256": Key("", "SHA-256 of the rows as read, in row order; null where not all rows were read in order"),
    "fingerprint": Key("", "names, sizes and times of the local files, hashed; null for a remote source"),
    "options": Key("", "what the unit of work was asked for"),
    "seed": Key("", "seed"),
    "origin": Key("", "where a published number was published"),
}

KINDS: dict[str, dict[str, Key]] = {
    MEASURE: {**COMMON, **MODEL, **MEASURED},
    PUBLISHED: {**COMMON, **MODEL, **FROM_TABLE},
    PACK: {**COMMON, **PACKED},
    STEP: {**COMMON, **MODEL, **{name: MEASURED[name] for name in SHARED}, **STEPPED},
}
"""Kind -> its keys."""


def make(kind: str, values: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """A record of this kind."""
    record: dict[str, Any] = storable({"record_version": RECORD_VERSION, "kind": kind, **values, **more})
    return record


def provenance(**more: Any) -> dict[str, Any]:
    """Where a number came from; nothing in it depends on which machine did the work."""
    torch = sys.modules.get("torch")
    found: dict[str, Any] = storable(
        {
            "repcap_version": __version__,
            "torch_version": str(torch.__version__) if torch is not None else None,
            "python_version": platform.python_version(),
            "platform": f"{platform.system()} {platform.machine()}",
            **more,
        }
    )
    return found


def published_results() -> list[Stored]:
    """The published table of 45 models (A. Guha, arXiv 2606.02765, CC BY 4.0) as results of kind `published`."""
    results = []
    for model in published_models():
        record = make(
            PUBLISHED,
            {
                "name": model.model,
                "source": model.hub_id,
                "matrix": "embedding",
                "role": "embedding",
                "dim": model.d_model,
                "epsilon": model.epsilon,
                "epsilon_null": model.epsilon_null,
                "epsilon_ratio": model.epsilon_ratio,
                "class": epsilon_class(model.epsilon),
                "published": True,
                "published_capacity": model.capacity,
                "repcap_version": __version__,
            },
        )
        key = unit_key(PUBLISHED, model.hub_id, {"model": model.model})
        results.append(Stored(key, key, PUBLISHED, record, {"origin": "arXiv 2606.02765, table of models"}))
    return results


def tail_dims(record: Mapping[str, Any]) -> dict[float, float]:
    """alpha -> d_alpha of the rows as stored, of a record that holds `tails`; empty where it does not.

    Raises
    ------
    KeyError, TypeError, ValueError
        if it is no record of repcap.
    """
    stored = [tail["points"] for tail in record.get("tails") or () if tail["gauge"] == "stored"]
    points = stored[0] if stored else ()
    return {float(point["alpha"]): float(point["dim"]) for point in points if point["dim"] is not None}


def _tails_by_name(record: Mapping[str, Any]) -> dict[str, Any]:
    """`record` with its tails as numbers, each under a name of its own; as it is where they are malformed."""
    try:
        named = {f"{alpha:g}": dim for alpha, dim in tail_dims(record).items()}
    except (KeyError, TypeError, ValueError):
        return dict(record)
    return {("d_alpha" if name == "tails" else name): named if name == "tails" else record[name] for name in record}


def columns(results: Iterable[Stored]) -> tuple[list[str], list[dict[str, Any]]]:
    """Results as a table: (column names, rows). Nested values become dotted columns (`capacity.law.log10`).

    Lists stay lists, but for tails: `d_alpha.0.0001` is d_alpha of the rows as stored at that share. Columns come in
    the order of `KINDS`; a row lacks what it does not have.
    """
    names: dict[str, None] = {}
    rows = []
    for result in results:
        known = [name for name in KINDS.get(result.kind, {}) if name in result.record]
        record = {name: result.record[name] for name in [*known, *sorted(set(result.record) - set(known))]}
        row = {"key": result.key, **flattened(_tails_by_name(record)), "created": result.created}
        row |= {f"provenance.{name}": value for name, value in flattened(result.provenance).items()}
        names.update(dict.fromkeys(row))
        rows.append(row)
    return list(names), rows
