"""repcap: how many near-orthogonal directions fit into a language model's latent space.

    measure                                       epsilon, class and capacity of one matrix
    inspect_source, open_source                   what a checkpoint holds; its rows in blocks
    pairs, neighbours, compare, track             all its cosines, its tokens, against another, over a run
    dictionary, probes, latents                   an autoencoder's decoder, other weights, the residual stream
    capacity, design, interference                what fits, without a model
    fit, reproduce                                laws fitted to packings; the published numbers
    pack, pack_max, sweep                         packings of lines
    survey, Store                                 many models, kept in one file
    errors                                        `errors.RepcapError` is the base of all that is raised on purpose

What a verb finds is a frozen dataclass (a `Batch` where results go to a store) whose `to_dict()` is ready for JSON.
Nothing is printed; progress goes to the callbacks that the functions take.

The names are imported when they are first used, so `import repcap` loads neither torch nor anything else heavy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from repcap import errors
from repcap._version import __version__

if TYPE_CHECKING:  # what type checkers and editors see; the table below is what happens
    from repcap.geometry.measurement import Measurement as Measurement
    from repcap.geometry.moments import Moments as Moments
    from repcap.laws.capacity import Capacity as Capacity
    from repcap.laws.capacity import capacity as capacity
    from repcap.laws.fit import Fit as Fit
    from repcap.laws.fit import fit as fit
    from repcap.packing.largest import PackMax as PackMax
    from repcap.packing.largest import pack_max as pack_max
    from repcap.packing.result import Packing as Packing
    from repcap.packing.solve import pack as pack
    from repcap.sources import inspect_source as inspect_source
    from repcap.sources import open_source as open_source
    from repcap.sources.inspection import Inspection as Inspection
    from repcap.store import Store as Store
    from repcap.studies.batch import Batch as Batch
    from repcap.studies.compare import Comparison as Comparison
    from repcap.studies.compare import compare as compare
    from repcap.studies.design import Design as Design
    from repcap.studies.design import design as design
    from repcap.studies.dictionary import Dictionary as Dictionary
    from repcap.studies.dictionary import dictionary as dictionary
    from repcap.studies.interference import Interference as Interference
    from repcap.studies.interference import interference as interference
    from repcap.studies.latents import Latents as Latents
    from repcap.studies.latents import latents as latents
    from repcap.studies.measure import Measured as Measured
    from repcap.studies.measure import measure as measure
    from repcap.studies.neighbours import Neighbourhood as Neighbourhood
    from repcap.studies.neighbours import neighbours as neighbours
    from repcap.studies.pairs import PairDistribution as PairDistribution
    from repcap.studies.pairs import pairs as pairs
    from repcap.studies.probe_result import Probes as Probes
    from repcap.studies.probes import probes as probes
    from repcap.studies.reproduce import Reproduction as Reproduction
    from repcap.studies.reproduce import reproduce as reproduce
    from repcap.studies.survey import survey as survey
    from repcap.studies.sweep import sweep as sweep
    from repcap.studies.track import Track as Track
    from repcap.studies.track import track as track

_PUBLIC: dict[str, str] = {
    "measure": "repcap.studies.measure",
    "Measured": "repcap.studies.measure",
    "Measurement": "repcap.geometry.measurement",
    "Moments": "repcap.geometry.moments",
    "inspect_source": "repcap.sources",
    "Inspection": "repcap.sources.inspection",
    "open_source": "repcap.sources",
    "pairs": "repcap.studies.pairs",
    "PairDistribution": "repcap.studies.pairs",
    "neighbours": "repcap.studies.neighbours",
    "Neighbourhood": "repcap.studies.neighbours",
    "compare": "repcap.studies.compare",
    "Comparison": "repcap.studies.compare",
    "track": "repcap.studies.track",
    "Track": "repcap.studies.track",
    "dictionary": "repcap.studies.dictionary",
    "Dictionary": "repcap.studies.dictionary",
    "probes": "repcap.studies.probes",
    "Probes": "repcap.studies.probe_result",
    "latents": "repcap.studies.latents",
    "Latents": "repcap.studies.latents",
    "capacity": "repcap.laws.capacity",
    "Capacity": "repcap.laws.capacity",
    "fit": "repcap.laws.fit",
    "Fit": "repcap.laws.fit",
    "reproduce": "repcap.studies.reproduce",
    "Reproduction": "repcap.studies.reproduce",
    "design": "repcap.studies.design",
    "Design": "repcap.studies.design",
    "interference": "repcap.studies.interference",
    "Interference": "repcap.studies.interference",
    "pack": "repcap.packing.solve",
    "Packing": "repcap.packing.result",
    "pack_max": "repcap.packing.largest",
    "PackMax": "repcap.packing.largest",
    "sweep": "repcap.studies.sweep",
    "survey": "repcap.studies.survey",
    "Batch": "repcap.studies.batch",
    "Store": "repcap.store",
}
"""Public name -> module that defines it; each verb with the class of its result."""

__all__ = ["__version__", "errors", *_PUBLIC]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        value = getattr(import_module(_PUBLIC[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'repcap' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
