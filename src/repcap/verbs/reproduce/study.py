"""Recompute every published number that needs no GPU, the paper's way and corrected, from the data in the package.

    import repcap
    done = repcap.reproduce()
    done.departures                     # claims that depart from the published number: none
    done.claim("ratio.factor").corrected

Source: A. Guha, arXiv 2606.02765 (2026). One module a group of claims; `claims.py` says what a claim is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Annotated, Any

from repcap.errors import InputError
from repcap.options import Option, verb
from repcap.result import Result
from repcap.verbs.reproduce import capacities, fits, models, others, packings
from repcap.verbs.reproduce.claims import STATUSES, Claim, counted
from repcap.verbs.reproduce.models import TableRow

__all__ = ["GROUPS", "Claim", "Reproduction", "TableRow", "reproduce"]

SOURCE = "A. Guha, Representational Capacity: Geometric Limits on Feature Representation in Transformer Language Models"
ARXIV = "2606.02765"
GROUPS = ("random", "optimised", "capacities", "packings", "models")
"""What `reproduce` can be limited to."""
OTHERS = "others"
"""A group beside them: claims of others against the bracket. It is computed where it is asked for."""
BOOTSTRAP = 300


@dataclasses.dataclass(frozen=True, repr=False)
class Reproduction(Result):
    """Published, recomputed and corrected, side by side."""

    kind = "reproduce"

    claims: tuple[Claim, ...]
    models: tuple[TableRow, ...]
    """The table of models; empty where the group was not asked for."""
    bootstrap: int

    @property
    def departures(self) -> tuple[str, ...]:
        """Keys of claims, and names of models, whose recomputed number departs from the published one."""
        claims = [claim.key for claim in self.claims if claim.status == "departs"]
        return (*claims, *(f"Table 1: {row.model}" for row in self.models if not row.agrees))

    def claim(self, key: str) -> Claim:
        """The claim of that key."""
        for claim in self.claims:
            if claim.key == key:
                return claim
        raise InputError(f"no claim {key!r}: there are {', '.join(claim.key for claim in self.claims)}")

    @property
    def title(self) -> str:
        return f"arXiv {ARXIV}, recomputed"

    @property
    def reading(self) -> str:
        agreeing = sum(row.agrees for row in self.models)
        said = counted(self.claims, agreeing, sum(row.indeterminate for row in self.models), len(self.models))
        return f"{said}."

    def rows(self) -> list[dict[str, Any]]:
        """One row a claim."""
        keys = ("key", "group", "title", "published", "recomputed", "corrected", "status")
        return [{key: getattr(claim, key) for key in keys} for claim in self.claims]

    def values(self) -> dict[str, Any]:
        return {
            "source": SOURCE,
            "arxiv": ARXIV,
            "bootstrap": self.bootstrap,
            "seed": 0,
            "statuses": STATUSES,
            "departures": list(self.departures),
            "claims": [claim.to_dict() for claim in self.claims],
            "rows": [row.to_dict() for row in self.models],
        }


@verb
def reproduce(
    groups: Annotated[Iterable[str], Option("What to recompute.", flags=("--only",))] = GROUPS,
    *,
    bootstrap: Annotated[int, Option("Draws behind each interval; 0 for none.", least=0)] = BOOTSTRAP,
    on_progress: Callable[[int, int], None] | None = None,
) -> Reproduction:
    """Recompute the published numbers of these groups.

    Time: a few seconds, most of it the bootstrap of the four-constant law. The seed is fixed: same numbers each time.

    Raises
    ------
    InputError
        unknown group.
    """
    groups = tuple(groups)
    unknown = [group for group in groups if group not in (*GROUPS, OTHERS)]
    if unknown:
        raise InputError(f"no group {unknown[0]!r}: use {', '.join((*GROUPS, OTHERS))}")
    rows = models.table_rows() if "models" in groups else []
    work: dict[str, Callable[[], list[Claim]]] = {
        "random": lambda: fits.random_claims(bootstrap),
        "optimised": lambda: fits.optimised_claims(bootstrap),
        "capacities": capacities.claims,
        "packings": packings.claims,
        "models": lambda: models.claims(rows),
        OTHERS: others.claims,
    }
    wanted = [group for group in (*GROUPS, OTHERS) if group in groups]
    claims: list[Claim] = []
    for position, group in enumerate(wanted):
        claims.extend(work[group]())
        if on_progress is not None:
            on_progress(position + 1, len(wanted))
    return Reproduction(tuple(claims), tuple(rows), bootstrap)
