"""`repcap tokens`."""

from __future__ import annotations

from typing import Annotated

import typer

from repcap.console import common
from repcap.console.common import JsonOption
from repcap.console.derive import Options, command_of
from repcap.verbs.tokens.study import tokens


@command_of(tokens)
def command(
    options: Options,
    source: Annotated[str, typer.Argument(help="File, directory, org/name[@rev], hf://..., pkg://module/file.")],
    json: JsonOption = False,
) -> None:
    """Tokens that were hardly ever trained, from the weights alone.

    Their rows lie together, nearer to a common centre than any others. No list of ids is needed.
    """
    with common.progress("Passes", "passes") as on_progress:
        result = tokens(source, **options, on_progress=on_progress)
    common.present(result, json)
