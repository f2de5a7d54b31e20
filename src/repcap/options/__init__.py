"""The signature is the only list of options.

A parameter of a verb is declared once, as `Annotated[type, Option(...)]`; the aliases that several verbs share stand in
`shared`. From the signature of the function come

- the options of the command line, with their help (`repcap.console.derive`),
- the checks of what was given, in Python, on the command line or in a YAML list (`check`, `check_options`),
- the part of a unit's key in a store that options make up (`key_options`),
- `options` of a record (`recorded`).

`@verb` on the function checks every call and writes `options` and `seconds` into the result. Nothing here imports
anything heavy.
"""

from __future__ import annotations

from repcap.options.calls import verb, verb_over
from repcap.options.checking import check, check_options, chosen, defaults, key_options, near, recorded
from repcap.options.ids import MOST_IDS, as_ids, parse_ids
from repcap.options.option import Option, Parameter, parameters
from repcap.options.shared import (
    AllowFullDownload,
    AllowTruncated,
    BlockRows,
    Centre,
    Delta,
    Device,
    Dtype,
    Engine,
    EngineName,
    ExcludeIds,
    Influence,
    Layers,
    MatrixName,
    OnlyIds,
    Refresh,
    RemoveTop,
    Retries,
    Rows,
    Seed,
    StorePath,
    Theta,
    Timeout,
    TokenizerRows,
    Top,
    VocabSize,
    Z,
)

__all__ = [
    "MOST_IDS",
    "AllowFullDownload",
    "AllowTruncated",
    "BlockRows",
    "Centre",
    "Delta",
    "Device",
    "Dtype",
    "Engine",
    "EngineName",
    "ExcludeIds",
    "Influence",
    "Layers",
    "MatrixName",
    "OnlyIds",
    "Option",
    "Parameter",
    "Refresh",
    "RemoveTop",
    "Retries",
    "Rows",
    "Seed",
    "StorePath",
    "Theta",
    "Timeout",
    "TokenizerRows",
    "Top",
    "VocabSize",
    "Z",
    "as_ids",
    "check",
    "check_options",
    "chosen",
    "defaults",
    "key_options",
    "near",
    "parameters",
    "parse_ids",
    "recorded",
    "verb",
    "verb_over",
]
