"""Cosines between rows. The names that other rooms use; a name, and with it torch, is imported when it is first used.

from repcap import geometry
geometry.measure_matrix(matrix)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from repcap.geometry.epsilon.epsilon import Spread as Spread
    from repcap.geometry.epsilon.epsilon import check_z as check_z
    from repcap.geometry.epsilon.jackknife import without_each as without_each
    from repcap.geometry.epsilon.moments import Moments as Moments
    from repcap.geometry.epsilon.paired import Difference as Difference
    from repcap.geometry.epsilon.paired import epsilon_difference as epsilon_difference
    from repcap.geometry.epsilon.passes import first_pass as first_pass
    from repcap.geometry.epsilon.spread import spread as spread
    from repcap.geometry.epsilon.spread import spread_of as spread_of
    from repcap.geometry.measurement.live import live_spread as live_spread
    from repcap.geometry.measurement.measurement import Measurement as Measurement
    from repcap.geometry.measurement.measuring import MeasureOptions as MeasureOptions
    from repcap.geometry.measurement.measuring import measure_matrix as measure_matrix
    from repcap.geometry.nearest.alignment import UnitTable as UnitTable
    from repcap.geometry.nearest.alignment import largest_alignment as largest_alignment
    from repcap.geometry.nearest.corresponding import corresponding as corresponding
    from repcap.geometry.nearest.lexical import variant_groups as variant_groups
    from repcap.geometry.nearest.neighbours import cosines_within as cosines_within
    from repcap.geometry.nearest.neighbours import directions as directions
    from repcap.geometry.nearest.neighbours import nearest_rows as nearest_rows
    from repcap.geometry.nearest.neighbours import rank_of as rank_of
    from repcap.geometry.nearest.neighbours import ranked as ranked
    from repcap.geometry.nearest.neighbours import signed_sum as signed_sum
    from repcap.geometry.nearest.neighbours import unit_of as unit_of
    from repcap.geometry.nearest.words import TokenIndex as TokenIndex
    from repcap.geometry.nearest.words import load_word_pairs as load_word_pairs
    from repcap.geometry.nearest.words import parse_analogy as parse_analogy
    from repcap.geometry.nearest.words import row_number as row_number
    from repcap.geometry.pairs.blocks import PanelPair as PanelPair
    from repcap.geometry.pairs.blocks import panel_pairs as panel_pairs
    from repcap.geometry.pairs.count import count_pairs as count_pairs
    from repcap.geometry.pairs.count import count_panels as count_panels
    from repcap.geometry.pairs.histogram import ROUNDING as ROUNDING
    from repcap.geometry.pairs.histogram import Wanted as Wanted
    from repcap.geometry.pairs.pair_sample import sample_pairs as sample_pairs
    from repcap.geometry.pairs.tail import measured_tail as measured_tail
    from repcap.geometry.pairs.tail_dimension import gauge_tail as gauge_tail
    from repcap.geometry.pairs.tail_dimension import stored_tail as stored_tail
    from repcap.geometry.readout.gauges import changed as changed
    from repcap.geometry.readout.gauges import gauge_changes as gauge_changes
    from repcap.geometry.readout.linear import read_at_once as read_at_once
    from repcap.geometry.readout.linear import read_rows as read_rows
    from repcap.geometry.readout.superposed import check_request as check_request
    from repcap.geometry.readout.superposed import guaranteed_active as guaranteed_active
    from repcap.geometry.readout.superposed import simulate as simulate
    from repcap.geometry.rows.reader import check_matrix as check_matrix
    from repcap.geometry.rows.reader import lengths_of as lengths_of
    from repcap.geometry.rows.reader import plain_reader as plain_reader
    from repcap.geometry.rows.reader import select_rows as select_rows
    from repcap.geometry.rows.unit_rows import ZERO as ZERO
    from repcap.geometry.rows.views import ScaledColumns as ScaledColumns
    from repcap.geometry.rows.views import Stacked as Stacked
    from repcap.geometry.rows.views import Subset as Subset

_WHERE = {
    "gauge_tail": "pairs.tail_dimension",
    "stored_tail": "pairs.tail_dimension",
    "changed": "readout.gauges",
    "gauge_changes": "readout.gauges",
    "read_at_once": "readout.linear",
    "read_rows": "readout.linear",
    "Difference": "epsilon.paired",
    "epsilon_difference": "epsilon.paired",
    "MeasureOptions": "measurement.measuring",
    "Measurement": "measurement.measurement",
    "Moments": "epsilon.moments",
    "PanelPair": "pairs.blocks",
    "ROUNDING": "pairs.histogram",
    "ScaledColumns": "rows.views",
    "Spread": "epsilon.epsilon",
    "Stacked": "rows.views",
    "Subset": "rows.views",
    "TokenIndex": "nearest.words",
    "UnitTable": "nearest.alignment",
    "Wanted": "pairs.histogram",
    "ZERO": "rows.unit_rows",
    "check_matrix": "rows.reader",
    "check_request": "readout.superposed",
    "check_z": "epsilon.epsilon",
    "corresponding": "nearest.corresponding",
    "cosines_within": "nearest.neighbours",
    "count_pairs": "pairs.count",
    "count_panels": "pairs.count",
    "directions": "nearest.neighbours",
    "first_pass": "epsilon.passes",
    "guaranteed_active": "readout.superposed",
    "largest_alignment": "nearest.alignment",
    "lengths_of": "rows.reader",
    "live_spread": "measurement.live",
    "load_word_pairs": "nearest.words",
    "measure_matrix": "measurement.measuring",
    "measured_tail": "pairs.tail",
    "nearest_rows": "nearest.neighbours",
    "panel_pairs": "pairs.blocks",
    "parse_analogy": "nearest.words",
    "plain_reader": "rows.reader",
    "rank_of": "nearest.neighbours",
    "ranked": "nearest.neighbours",
    "row_number": "nearest.words",
    "sample_pairs": "pairs.pair_sample",
    "select_rows": "rows.reader",
    "signed_sum": "nearest.neighbours",
    "simulate": "readout.superposed",
    "spread": "epsilon.spread",
    "spread_of": "epsilon.spread",
    "unit_of": "nearest.neighbours",
    "variant_groups": "nearest.lexical",
    "without_each": "epsilon.jackknife",
}
"""Name -> its file in this room."""


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE})
