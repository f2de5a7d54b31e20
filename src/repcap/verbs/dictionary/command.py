"""`repcap dictionary`."""

from __future__ import annotations

from typing import Annotated

import typer

from repcap.console import common
from repcap.console.common import JsonOption
from repcap.console.derive import Options, command_of
from repcap.verbs.dictionary.study import dictionary


@command_of(dictionary)
def command(
    options: Options,
    source: Annotated[str, typer.Argument(help="The sparse autoencoder: file, directory, Hub name ...")],
    against: Annotated[str | None, typer.Option("--against", help="The model that it was trained on.")] = None,
    json: JsonOption = False,
) -> None:
    """The decoder of a sparse autoencoder: alive and dead rows, epsilon, coherence, and k against what fits.

    With --against also how many of its rows, and of their pairs, keep within the epsilon of a model's embedding.
    """
    with common.progress("Dictionary", "%") as on_progress:
        result = dictionary(source, against, **options, on_progress=on_progress)
    common.present(result, json)
