"""The verbs, as data: to add one is a folder here and a line in `VERBS`.

    verbs/NAME/study.py    the work: the function of that name and its result; no rich, no typer, no matplotlib
    verbs/NAME/command.py  the command line: parses, calls, prints
    verbs/NAME/show.py     what the terminal (and a notebook) shows: `parts(result)` gives rich renderables
    verbs/NAME/figure.py   the figure: `draw(record, path=None, *, ax=None)`

A folder is imported when its verb is called, so `repcap --help` and `import repcap` load nothing heavy.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple


class Verb(NamedTuple):
    """One verb. exports: the public names of its `study` module, of which the first is its function."""

    help: str
    panel: str
    exports: tuple[str, ...] = ()


MEASURE, LAWS, PACKING, MANY = "Measure a model", "Laws and bounds", "Pack lines", "Many models"

VERBS: dict[str, Verb] = {
    "measure": Verb("Measure epsilon, class and capacity of a model.", MEASURE, ("measure", "Measured")),
    "inspect": Verb("List what could be measured in a source.", MEASURE, ("inspect", "Inspection", "inspect_source")),
    "pairs": Verb("The distribution of all pairwise cosines, and its tail.", MEASURE, ("pairs", "PairDistribution")),
    "readout": Verb("How many tokens a linear readout tells apart at once.", MEASURE, ("readout", "Readouts")),
    "compare": Verb("Two matrices side by side, row against row.", MEASURE, ("compare", "Comparison")),
    "track": Verb("epsilon over the checkpoints of a training run.", MEASURE, ("track", "Track")),
    "dictionary": Verb("A sparse autoencoder's decoder, and against a model.", MEASURE, ("dictionary", "Dictionary")),
    "probes": Verb("Weights that read from and write to the residual stream.", MEASURE, ("probes", "Probes")),
    "latents": Verb("Does the embedding's epsilon hold in the residual stream?", MEASURE, ("latents", "Latents")),
    "neighbours": Verb("Nearest tokens, analogies, clusters, duplicates.", MEASURE, ("neighbours", "Neighbourhood")),
    "tokens": Verb("Tokens that were never trained, from the weights alone.", MEASURE, ("tokens", "UntrainedTokens")),
    "capacity": Verb("How many near-orthogonal vectors fit: laws and proven limits.", LAWS, ("capacity", "Capacity")),
    "table": Verb("The best known set and the proven limit, for each d.", LAWS, ("table", "LineTable")),
    "fit": Verb("Fit the laws to packings (k, d, epsilon).", LAWS, ("fit", "Fit")),
    "reproduce": Verb("Recompute the published numbers, and correct them.", LAWS, ("reproduce", "Reproduction")),
    "design": Verb("The d_model that holds so many features and a vocabulary.", LAWS, ("design", "Design")),
    "interference": Verb("What reading s active features of k costs.", LAWS, ("interference", "Interference")),
    "pack": Verb("Pack k lines into R^d; build explicit sets; verify files.", PACKING, ("pack", "Packing")),
    "pack-max": Verb("The most lines in R^d within a coherence.", PACKING, ("pack_max", "PackMax")),
    "sweep": Verb("Pack a grid of (k, d) cells into a store.", PACKING, ("sweep",)),
    "survey": Verb("Measure many models into a store; trend with width.", MANY, ("survey",)),
    "results": Verb("List, show, export or delete stored results.", MANY),
    "report": Verb("A page and figures of many models.", MANY),
    "serve": Verb("Show the page of many models in a browser.", MANY),
}
"""Verb -> what it says and offers. The order is the order in --help."""


def part(verb: str, name: str) -> Any:
    """The module `name` (study, command, show, figure) of a verb's folder."""
    return import_module(f"{__name__}.{verb.replace('-', '_')}.{name}")


def public() -> dict[str, str]:
    """Public name -> the module that has it, for all verbs."""
    return {name: f"{__name__}.{verb.replace('-', '_')}.study" for verb, row in VERBS.items() for name in row.exports}
