"""`repcap design`."""

from __future__ import annotations

from typing import Annotated

import typer

from repcap.console import common
from repcap.console.common import JsonOption
from repcap.console.derive import Options, command_of, flags
from repcap.console.failing import in_words
from repcap.console.values import numbers, real
from repcap.errors import InputError
from repcap.verbs.design.study import design


@command_of(design)
def command(
    options: Options,
    features: Annotated[str, typer.Option("--features", help="Features to hold, such as 1e7.")],
    eps: Annotated[str, typer.Option("--eps", help="epsilon: a number, a list, or a range such as 0.06..0.09/4.")],
    vocab: Annotated[
        int | None, typer.Option("--vocab", min=1, help="Vocabulary V: takes 2 V directions, V with --tied.")
    ] = None,
    params: Annotated[str | None, typer.Option("--params", help="Parameters of the whole model, such as 8e9.")] = None,
    json: JsonOption = False,
) -> None:
    """The d_model that holds so many features beside a vocabulary, by each law and between proven limits.

    `ratio` and `full` are the published laws. `enough`: so many directions are proven to exist in that d_model.
    `needed`: below it they are proven not to.
    """
    if options["tied"] and vocab is None:
        raise InputError("`tied` says how a vocabulary counts: give `vocab` too")
    found = design(
        real(features, "--features"),
        numbers(eps, "--eps"),
        vocab=vocab,
        params=None if params is None else real(params, "--params"),
        **options,
    )
    common.present(found, json)
    if not json:
        for remark in found.remarks:
            common.warn(in_words(remark, flags(design)))
