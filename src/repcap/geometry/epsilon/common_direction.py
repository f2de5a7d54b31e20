"""Does one common direction account for a high epsilon? In words."""

from __future__ import annotations

import dataclasses

from repcap.geometry.epsilon.epsilon import Spread
from repcap.numerics import Z_DEFAULT

_LIKE_RANDOM, _NEAR_RANDOM = 1.1, 2.0
"""Ratios to the epsilon of random directions below which nothing, or little, is left to explain."""


def common_sentence(whole: Spread, centred: Spread | None, without_top: Spread | None, top_share: float) -> str:
    """What removing the mean, and removing the strongest direction, does to a matrix of class `high`.

    centred, without_top: None where fewer than two rows are left. top_share: share of the mean squared length along the
    strongest direction of the rows as stored. All in terms of mean + 2 std, which the class is of.
    """
    whole = dataclasses.replace(whole, z=Z_DEFAULT)
    if whole.ratio < _LIKE_RANDOM:
        return (
            f"No common direction makes epsilon high, the width does: epsilon is {whole.epsilon:.4f}, and random "
            f"directions in {whole.dim} dimensions have {whole.null:.4f}."
        )
    if centred is None or without_top is None:
        return "Every row has one direction, up to sign, or nearly so: without it nothing is left."
    centred, without_top = (dataclasses.replace(spread, z=Z_DEFAULT) for spread in (centred, without_top))
    best = min((centred, without_top), key=lambda spread: spread.epsilon)
    what = "the mean of the rows" if best is centred else "the strongest direction"
    facts = (
        f"epsilon is {whole.epsilon:.4f} as stored, {centred.epsilon:.4f} without the mean of the rows, "
        f"{without_top.epsilon:.4f} without the strongest direction (which holds {100 * top_share:.1f} % of the rows; "
        f"1/d is {100 / whole.dim:.2g} %)"
    )
    if best.class_name == "high" and best.ratio >= _LIKE_RANDOM:
        gone = (whole.epsilon - best.epsilon) / (whole.epsilon - whole.null)
        return (
            f"One common direction does not account for all of the crowding: {facts}. "
            f"Still class high; removing {what} takes away {100 * max(gone, 0.0):.0f} % of the excess over random "
            "directions."
        )
    share = "most"
    if best.ratio < _NEAR_RANDOM:
        share = "all" if best.ratio < _LIKE_RANDOM else "nearly all"
    left = f"{best.ratio:.1f} times the epsilon of random directions" if best.epsilon > 0 else "epsilon is not above 0"
    return (
        f"One common direction accounts for {share} of the crowding: {facts}. "
        f"What is left is class {best.class_name}, {left}."
    )
