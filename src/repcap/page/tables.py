"""What the page's arithmetic takes from the library: constants, laws, and the tables of explicit sets."""

from __future__ import annotations

from typing import Any

from repcap import domain
from repcap.constructions import PLAIN, direct_sum
from repcap.constructions.families import bch, concatenated
from repcap.constructions.families.equiangular import steiner_systems
from repcap.constructions.families.sporadic import SPORADIC
from repcap.laws import curves
from repcap.laws.limits import bounds, levenshtein, plane, transfer


def tables() -> dict[str, Any]:
    """Data for laws.js and constructions.js, JSON-ready; about 15 KB."""
    return {
        "constants": {
            "slack": domain.SLACK,
            "rounding": bounds.ROUNDING,
            "plane_rounding": plane.ROUNDING,
            "most_degree": levenshtein.MOST_DEGREE,
            "whole": bounds.WHOLE,
            "floor_slack": bounds.FLOOR_SLACK,
            "transfer_least": transfer.LEAST,
            "transfer_most_d": transfer.MOST_D,
            "most_bits": bch.MOST_BITS,
            "exact_sums": direct_sum.EXACT,
        },
        "transfer": {"name": transfer.NAME, "cosines": transfer.COSINES.tolist()},
        "laws": [
            {
                "key": curve.key,
                "law": law.name,
                "label": curve.label,
                "standing": curve.standing,
                "fitted": curve.fitted,
                "params": {**law.params, **curve.params},
            }
            for law, curve in curves()
        ],
        "sporadic": [[row.k, row.d, row.coherence, row.name] for row in SPORADIC],
        "steiner": steiner_systems(),
        "inner": [
            [one.block.d, one.block.coherence, one.q, one.log_q, one.block.name, concatenated.field_name(one.q)]
            for one in concatenated.inner_sets(PLAIN)
        ],
    }
