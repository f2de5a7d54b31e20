"""Is one common direction all that makes epsilon high? In words."""

from __future__ import annotations

from repcap.geometry.epsilon import Spread


def common_sentence(whole: Spread, centred: Spread | None, without_top: Spread | None, top_share: float) -> str:
    """What removing the mean, and removing the strongest direction, does to a matrix of class `high`.

    centred, without_top: None where fewer than two rows are left. top_share: share of the mean squared length along the
    strongest direction of the rows as stored.
    """
    if centred is None or without_top is None:
        return "Every row has one direction, up to sign, or nearly so: without it nothing is left."
    best = min((centred, without_top), key=lambda spread: spread.epsilon)
    what = "the mean of the rows" if best is centred else "the strongest direction"
    facts = (
        f"epsilon is {whole.epsilon:.4f} as stored, {centred.epsilon:.4f} without the mean of the rows, "
        f"{without_top.epsilon:.4f} without the strongest direction (which holds {100 * top_share:.1f} % of the rows; "
        f"1/d is {100 / whole.dim:.2g} %)"
    )
    if best.class_name == "high":
        gone = (whole.epsilon - best.epsilon) / max(whole.epsilon - whole.null, 1e-12)
        return (
            f"One common direction is not all that is wrong: {facts}. Still class high; removing {what} takes away "
            f"{100 * max(gone, 0.0):.0f} % of the excess over random directions."
        )
    share = "all that" if best.ratio < 1.1 else "nearly all that" if best.ratio < 2.0 else "most of what"
    return (
        f"One common direction is {share} is wrong: {facts}. What is left is class {best.class_name}, "
        f"{best.ratio:.1f} times the epsilon of random directions."
    )
