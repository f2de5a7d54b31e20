"""The words of the page: what its data say, what the definitions are, what to be careful with. Returns HTML.

Every text from a record is escaped here.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING

from repcap._version import __version__
from repcap.errors import InputError
from repcap.numerics import CLASS_HIGH, CLASS_LOW
from repcap.page.page_rows import Row

if TYPE_CHECKING:
    from repcap.laws.fitting.correlation import Spearman

PAPER = '<a href="https://arxiv.org/abs/2606.02765">arXiv 2606.02765</a>'


def description(rows: Sequence[Row]) -> str:
    """The page in a sentence, for link previews and search engines."""
    what = f"{len(rows)} language models" if len(rows) > 1 else rows[0].label
    return (
        f"How far the token directions of {what} are from random, and how many near-orthogonal directions fit beside "
        "them: measured by repcap, with proven limits on both sides."
    )


def lede(rows: Sequence[Row]) -> str:
    """One paragraph: what these models say about epsilon."""
    nearest = min(rows, key=lambda row: (abs(row.epsilon_ratio - 1), row.label))
    farthest = max(rows, key=lambda row: (row.epsilon_ratio, row.label))
    text = (
        "A transformer writes its features as directions of one vector space. How many fit depends on how much overlap "
        "is accepted, and the model's own token directions say how much it accepts. "
    )
    if len(rows) == 1:
        return text + (
            f"Here: <strong>{_escaped(nearest)}</strong>, whose ε is {nearest.epsilon_ratio:.2f} times that of random "
            f"directions of its width."
        )
    return text + (
        f"Of these {len(rows)}, <strong>{_escaped(nearest)}</strong> is the nearest to random directions of its width "
        f"(ε is {nearest.epsilon_ratio:.2f} times theirs), <strong>{_escaped(farthest)}</strong> the farthest "
        f"({farthest.epsilon_ratio:.1f} times). {_trend(rows)}"
    )


def _trend(rows: Sequence[Row]) -> str:
    """Does epsilon fall with width in class low? Said only where there are enough models to ask."""
    from repcap.laws.fitting.correlation import spearman

    low = [row for row in rows if row.klass == "low"]
    if len(low) < 8:
        return ""
    widths = [row.d for row in low]
    try:
        plain = spearman(widths, [row.epsilon for row in low])
        ratio = spearman(widths, [row.epsilon_ratio for row in low])
    except InputError:
        return ""
    return (
        f"In class low, ε {_verdict(plain)} with width ({_correlation(plain)}); "
        f"measured against random, it {_verdict(ratio)} ({_correlation(ratio)})."
    )


def _verdict(found: Spearman) -> str:
    if found.p >= 0.05:
        return "does not clearly change"
    return "rises" if found.rho > 0 else "falls"


def _correlation(found: Spearman) -> str:
    p = (
        f"{found.p:.2f}"
        if found.p >= 0.01
        else f"{found.p:.0e}".replace("e-0", "\u00a0×\u00a010^−").replace("e-", "\u00a0×\u00a010^−")
    )
    head, _, exponent = p.partition("^")
    p = f"{head}<sup>{exponent}</sup>" if exponent else head
    return f"rank correlation {found.rho:+.2f}, p\u00a0=\u00a0{p}".replace("-", "−")


_LONGEST = 80


def _escaped(row: Row) -> str:
    return html.escape(row.label if len(row.label) <= _LONGEST else f"{row.label[: _LONGEST - 1]}…")


_NOTES = (
    (
        "What is measured",
        "The rows of the token embedding (or another matrix) are taken as directions; rows without one are left out "
        "and counted. Mean and standard deviation are over all pairs of rows. ε is the mean plus z standard "
        "deviations, z = 2 unless said otherwise; for random directions it is z/√d.",
    ),
    (
        "Classes",
        f"High: ε above {CLASS_HIGH}. Low: ε below {CLASS_LOW}. These published borders do not depend on d: random "
        "directions alone are above 0.1 for d below 400, and above 0.2 for d below 100. Judge a small model by its "
        "times random: ε over that of random directions.",
    ),
    (
        "The bracket",
        "At least: the larger of two proven numbers, the best explicit set whose coherence is at most ε (Kerdock, "
        "Delsarte–Goethals, BCH and others), and what random coding proves to exist without writing it down "
        "(Gilbert–Varshamov, a ring). The bar begins there. At most: the best of the bounds of Welch, Rankin and "
        "Levenshtein. The truth lies on the bar. A large k is no praise: k grows because more overlap is accepted.",
    ),
    (
        "The law",
        "The law <em>full</em> interpolates packings that one optimiser reached. It has been called an upper bound; it "
        "is not one: where its diamond stands left of the bar, more directions are proven to exist than it allows. "
        "From ε = 0.1 on the published work calls its value indeterminate, and so does this page.",
    ),
    (
        "ε and the laws",
        "ε is close to a quantile of the cosines, the laws and bounds speak of the largest one. Where the largest "
        "|cosine| was measured, a model's card shows it.",
    ),
    (
        "Budget",
        "Separate embedding and unembedding take two directions for each token of the vocabulary, k = 2V + features; "
        "tied ones take one, k = V + features.",
    ),
)

_PUBLISHED = (
    "These data",
    f"ε and d_model are the per-model table of A. Guha, “Representational Capacity”, {PAPER} (CC BY 4.0). The paper "
    "reports ε to about four digits and no rows, spread or tying; brackets and ratios are computed by repcap.",
)


def notes(rows: Sequence[Row]) -> str:
    """The closing notes, as HTML blocks."""
    blocks = [*_NOTES, *([_PUBLISHED] if any(row.published for row in rows) else [])]
    return "\n".join(f"<div><h3>{title}</h3><p>{text}</p></div>" for title, text in blocks)


def foot(rows: Sequence[Row], origin: str, skipped: Sequence[str]) -> str:
    """The last line: what made the page, from what, and what is not on it."""
    versions = sorted({row.version for row in rows if row.version and not row.published})
    text = f"Made by repcap {html.escape(__version__)}"
    if origin:
        text += f" from {html.escape(origin)}"
    if versions:
        text += f"; measured with repcap {html.escape(', '.join(versions))}"
    text += f". Method: {PAPER}."
    if skipped:
        text += f" Not shown: {html.escape('; '.join(skipped))}."
    return text
