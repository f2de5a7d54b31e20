"""repcap: how many near-orthogonal directions fit into a language model's latent space.

    measure                                       epsilon, class and capacity of one matrix
    inspect, open_source                          what a checkpoint holds; its rows in blocks
    pairs, neighbours, compare, track             all its cosines, its tokens, against another, over a run
    tokens                                        those that were never trained
    dictionary, probes, latents                   an autoencoder's decoder, other weights, the residual stream
    capacity, table, design, interference         what fits, without a model
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
from repcap.verbs import public

if TYPE_CHECKING:  # what type checkers and editors see; the table below is what happens
    from repcap.bracket.capacity import Capacity as Capacity
    from repcap.bracket.capacity import capacity as capacity
    from repcap.geometry.epsilon.moments import Moments as Moments
    from repcap.geometry.measurement.measurement import Measurement as Measurement
    from repcap.jobs.batch import Batch as Batch
    from repcap.jobs.store import Store as Store
    from repcap.laws.fitting.fit import Fit as Fit
    from repcap.packing.entry import pack as pack
    from repcap.packing.largest import PackMax as PackMax
    from repcap.packing.largest import pack_max as pack_max
    from repcap.packing.packed import Packing as Packing
    from repcap.sources import open_source as open_source
    from repcap.studies.measured import Measured as Measured
    from repcap.studies.measured import measure as measure
    from repcap.verbs.compare.study import Comparison as Comparison
    from repcap.verbs.compare.study import compare as compare
    from repcap.verbs.design.study import Design as Design
    from repcap.verbs.design.study import design as design
    from repcap.verbs.dictionary.study import Dictionary as Dictionary
    from repcap.verbs.dictionary.study import dictionary as dictionary
    from repcap.verbs.fit.study import fit as fit
    from repcap.verbs.inspect.study import Inspection as Inspection
    from repcap.verbs.inspect.study import inspect as inspect
    from repcap.verbs.inspect.study import inspect_source as inspect_source
    from repcap.verbs.interference.study import Interference as Interference
    from repcap.verbs.interference.study import interference as interference
    from repcap.verbs.latents.study import Latents as Latents
    from repcap.verbs.latents.study import latents as latents
    from repcap.verbs.neighbours.neighbourhood import Neighbourhood as Neighbourhood
    from repcap.verbs.neighbours.study import neighbours as neighbours
    from repcap.verbs.pairs.study import PairDistribution as PairDistribution
    from repcap.verbs.pairs.study import pairs as pairs
    from repcap.verbs.probes.probe_result import Probes as Probes
    from repcap.verbs.probes.study import probes as probes
    from repcap.verbs.readout.study import Readouts as Readouts
    from repcap.verbs.readout.study import readout as readout
    from repcap.verbs.reproduce.study import Reproduction as Reproduction
    from repcap.verbs.reproduce.study import reproduce as reproduce
    from repcap.verbs.survey.study import survey as survey
    from repcap.verbs.sweep.study import sweep as sweep
    from repcap.verbs.table.study import LineTable as LineTable
    from repcap.verbs.table.study import table as table
    from repcap.verbs.tokens.study import UntrainedTokens as UntrainedTokens
    from repcap.verbs.tokens.study import tokens as tokens
    from repcap.verbs.track.study import Track as Track
    from repcap.verbs.track.study import track as track

_PUBLIC: dict[str, str] = {
    "Measurement": "repcap.geometry.measurement.measurement",
    "Moments": "repcap.geometry.epsilon.moments",
    "open_source": "repcap.sources",
    "Batch": "repcap.jobs.batch",
    "Store": "repcap.jobs.store",
    **public(),
}
"""Public name -> module that has it: some rooms' own, and what each verb exports."""

__all__ = ["__version__", "errors", *_PUBLIC]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        value = getattr(import_module(_PUBLIC[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'repcap' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
