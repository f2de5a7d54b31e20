"""Does one common direction account for a high epsilon? In words."""

from __future__ import annotations

import dataclasses

from repcap.geometry.epsilon.epsilon import Spread
from repcap.numerics import Z_DEFAULT

LIKE_RANDOM = 1.1
"""Times the epsilon of random directions below which nothing is left to explain."""


@dataclasses.dataclass(frozen=True)
class Common:
    """reading: in words. share: of the excess over random directions, what is gone without the mean of the rows or the
    strongest direction, whichever takes more; None where there is no excess, or nothing is left.
    """

    reading: str
    share: float | None = None


def common_part(whole: Spread, centred: Spread | None, without_top: Spread | None, top_share: float) -> Common:
    """What removing the mean, and removing the strongest direction, does to a matrix of class `high`.

    centred, without_top: None where fewer than two rows are left. top_share: share of the mean squared length along the
    strongest direction of the rows as stored. All in terms of mean + 2 std, which the class is of. What decides is the
    share of the excess over random directions that is removed.
    """
    whole = dataclasses.replace(whole, z=Z_DEFAULT)
    if whole.ratio < LIKE_RANDOM:
        return Common(
            f"No common direction makes epsilon high, the width does: epsilon is {whole.epsilon:.4f}, and random "
            f"directions in {whole.dim} dimensions have {whole.null:.4f}."
        )
    if centred is None or without_top is None:
        return Common("Every row has one direction, up to sign, or nearly so: without it nothing is left.")
    centred, without_top = (dataclasses.replace(spread, z=Z_DEFAULT) for spread in (centred, without_top))
    best = min((centred, without_top), key=lambda spread: spread.epsilon)
    what = "the mean of the rows" if best is centred else "the strongest direction"
    gone = max(0.0, (whole.epsilon - best.epsilon) / (whole.epsilon - whole.null))
    facts = (
        f"epsilon is {whole.epsilon:.4f} as stored, {centred.epsilon:.4f} without the mean of the rows, "
        f"{without_top.epsilon:.4f} without the strongest direction (which holds {100 * top_share:.1f} % of the rows' "
        f"squared length; 1/d is {100 / whole.dim:.2g} %)"
    )
    left = f"{best.ratio:.1f} times the epsilon of random directions" if best.epsilon > 0 else "epsilon is not above 0"
    return Common(
        f"One common direction accounts for {_share(gone)} of the crowding: {facts}. Removing {what} takes away "
        f"{100 * min(gone, 1.0):.0f} % of the excess over random directions. What is left is class {best.class_name}, "
        f"{left}.",
        gone,
    )


def _share(gone: float) -> str:
    """The share of the excess that is gone, in a word."""
    for least, word in ((0.98, "all"), (0.9, "nearly all"), (0.5, "most"), (0.1, "a part")):
        if gone >= least:
            return word
    return "little"
