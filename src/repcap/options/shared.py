"""The options that several verbs share."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable
from typing import Annotated

from repcap.numerics import SEED_MOST
from repcap.options.ids import as_ids, parse_ids
from repcap.options.option import Option

MatrixName = Annotated[
    str, Option("embedding, unembedding, or a tensor name (see repcap inspect).", listed=False, metavar="NAME")
]
Z = Annotated[float, Option("epsilon = mean + z std.", least=0.0, why="give a finite z >= 0 (the default is 2)")]
Seed = Annotated[
    int, Option("Same seed, same numbers.", least=0, most=SEED_MOST, why="give a whole number in 0..2^63 - 1")
]
Device = Annotated[str, Option("auto, cpu, cuda, cuda:N or mps.", silent=True, listed=False)]
Rows = Annotated[
    int | None,
    Option("Estimate from this many random rows, with an interval.", least=2, why="give 2 or more", listed=False),
]
Dtype = Annotated[str, Option("Precision of the products: float32 or float64.", choices=("float32", "float64"))]
BlockRows = Annotated[
    int | None,
    Option("Rows in memory at once (default: 64 MiB of them).", least=1, why="a block holds one or more", silent=True),
]
AllowTruncated = Annotated[bool, Option("Read a truncated file if this matrix is whole.", silent=True)]
AllowFullDownload = Annotated[bool, Option("Download a whole file from a server that sends no parts.", silent=True)]
Top = Annotated[int, Option("How many to name.", least=0, most=10_000, why="give 0 to 10000")]
EngineName = Annotated[
    str | None, Option("Spread the work: local[:N] or ray[:ADDRESS].", silent=True, listed=False, metavar="ENGINE")
]
Influence = Annotated[
    int,
    Option("List so many tokens that raise and that lower epsilon.", least=0, why="give how many rows, 0 for none",
           metavar="N"),
]  # fmt: skip
Centre = Annotated[bool, Option("Also measure without the mean of the rows.", flags=("--centre", "--center"))]
RemoveTop = Annotated[
    int,
    Option("Also measure without the M strongest directions.", least=0, metavar="M",
           why="give how many directions, 0 for none"),
]  # fmt: skip
ExcludeIds = Annotated[
    Iterable[int] | None,
    Option("Rows to leave out: 0,5,100-199 or @FILE.", read=parse_ids, write=as_ids, metavar="IDS"),
]
OnlyIds = Annotated[
    Iterable[int] | None, Option("Measure these rows alone.", read=parse_ids, write=as_ids, metavar="IDS")
]
TokenizerRows = Annotated[bool, Option("Leave out rows beyond the tokenizer.")]
Theta = Annotated[
    float, Option("An idle row alarms where it reads more than this; an active one reads 1.", above=0.0, most=1.0)
]
Delta = Annotated[float, Option("Share of idle rows that may alarm.", above=0.0, below=1.0)]
Layers = Annotated[
    Iterable[int],
    Option("These layers alone: 0,5,10-12.", read=functools.partial(parse_ids, what="layer"), write=as_ids,
           metavar="LAYERS"),
]  # fmt: skip
VocabSize = Annotated[int | None, Option("Measure the first V rows alone.", metavar="V")]
StorePath = Annotated[
    str | os.PathLike[str],
    Option("Result store; made if missing.", flags=("--store",), metavar="FILE", silent=True, listed=False),
]
Engine = Annotated[
    str, Option("local, local:N, ray, ray:ADDRESS, or inline.", metavar="ENGINE", silent=True, listed=False)
]
Timeout = Annotated[
    float | None, Option("Seconds after which a unit of work counts as hung.", above=0.0, silent=True, listed=False)
]
Retries = Annotated[int, Option("New tries after a worker was lost.", least=0, silent=True, listed=False)]
Refresh = Annotated[bool, Option("Work out again what is stored.", silent=True, listed=False)]
