"""The figure of `repcap fit`: data with the law, and residuals, of each law."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from repcap.console import style
from repcap.laws.fitting.data import PackingTable
from repcap.laws.fitting.fit import Fit
from repcap.page import fit_figures
from repcap.result import Result
from repcap.studies.packings import packings

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw(
    record: Mapping[str, Any],
    path: str | os.PathLike[str] | None = None,
    *,
    ax: Axes | None = None,
    table: PackingTable | None = None,
) -> Any:
    """Draw a record of `repcap fit --json`: a row of panels a law. Into `ax`: the first law's residuals over k/d.

    table: the packings; None: as the record's `source` names them. Returns the paths written, or what was drawn into.
    """
    laws = [_fit_of(one) for one in record.get("fits", [record])]
    cells = packings(laws[0].source) if table is None else table
    if ax is not None:
        fit_figures.residual_panel(ax, fit_figures.cells_of(laws[0], cells), laws[0])
        return ax
    with style.figure((7.2, 3.1 * len(laws)), len(laws), 2, squeeze=False) as (drawn, axes):
        fit_figures.panels(drawn, axes, cells, laws)
        return drawn if path is None else style.save(drawn, path)


def _fit_of(record: Mapping[str, Any]) -> Fit:
    """The fit that a record tells of."""
    own = {field.name for field in dataclasses.fields(Fit)} - {field.name for field in dataclasses.fields(Result)}
    values: dict[str, Any] = {name: math.nan if record[name] is None else record[name] for name in own}
    return Fit(**values)
