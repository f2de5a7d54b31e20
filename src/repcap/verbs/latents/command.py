"""`repcap latents`."""

from __future__ import annotations

from typing import Annotated

import typer

from repcap.console import common
from repcap.console.common import JsonOption, PlotOption
from repcap.console.derive import Options, command_of
from repcap.verbs.latents.study import latents


@command_of(latents)
def command(
    options: Options,
    model: Annotated[str, typer.Argument(help="A transformers directory, a .gguf file, pkg://..., a cached Hub name.")],
    plot: PlotOption = None,
    json: JsonOption = False,
) -> None:
    r"""Does the embedding's epsilon hold for the latent space? Measure the residual stream, layer by layer.

    The model reads a text; the states at every layer are added to sums and not kept. Needs transformers
    (pip install 'repcap\[latents]'); nothing is downloaded.
    """
    common.check_plot(plot)
    with common.progress("Reading", "%") as on_progress:
        result = latents(model, **options, on_progress=on_progress)
    common.present(result, json, plot)
