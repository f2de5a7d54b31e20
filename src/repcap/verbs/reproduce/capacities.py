"""The capacities in the published text, each beside what is proven at the same (d, epsilon)."""

from __future__ import annotations

import math

from repcap.bracket.interval import Bracket, bracket
from repcap.laws import full, jl, ratio
from repcap.numerics import LN10, format_power
from repcap.verbs.reproduce.claims import Claim, between, numeric

GROUP = "Capacities in the text"
LLAMA = (4096, 0.0645)
WIDER = ((2048, 0.09), (3072, 0.09))
LOOSER = ((8192, 0.05), (8192, 0.09))
NOTES = {
    "wider": "Inputs inferred: the step from d = 2048 to 3072 at epsilon = 0.09 gives both numbers under `full`.",
    "looser": "Inputs inferred: at d = 8192, epsilon = 0.09 gives the second number; 0.05 gives the first only if "
    "it was cut off to two digits instead of rounded.",
}


def _proven(found: Bracket) -> str:
    return between(found.proven[0], found.upper.log10_k)


def claims() -> list[Claim]:
    llama = bracket(*LLAMA)
    big = bracket(2048, 0.25)
    proven = _proven(llama)
    return [
        numeric(
            "llama.jl_proven", GROUP, "Llama 2 7B, jl, C = 8", "8.4", math.exp(jl.log_k(*LLAMA)),
            corrected=proven, note="Corrected: best proven lower bound to best proven upper bound on k.",
            values={"bracket": llama.to_dict()},
        ),
        numeric(
            "llama.jl_random", GROUP, "Llama 2 7B, jl, C = 3.029", "277",
            math.exp(jl.log_k(*LLAMA, C=jl.C_RANDOM)), corrected=proven,
        ),
        numeric(
            "llama.full", GROUP, "Llama 2 7B, full", "3.99e7", math.exp(full.log_k(*LLAMA)), corrected=proven,
            note=f"ratio, the one-constant law, gives {format_power(ratio.log_k(*LLAMA) / LN10)} at the same point. "
            f"An explicit set ({llama.explicit.name}) has {llama.explicit.k} lines.",
            values={"ratio": math.exp(ratio.log_k(*LLAMA))},
        ),
        numeric(
            "wide.full", GROUP, "full at (2048, 0.25)", "2e20", math.exp(full.log_k(2048, 0.25)),
            corrected=_proven(big),
            note=f"Random coding alone gives {format_power(big.exists)}; ratio gives "
            f"{format_power(big.laws['ratio'])}.",
            values={"bracket": big.to_dict()},
        ),
        *_pair("wider", WIDER, ("2.0e7", "6.0e8")),
        *_pair("looser", LOOSER, ("2.4e8", "2.0e14")),
        *_where_coding_wins(),
    ]  # fmt: skip


def _pair(key: str, inputs: tuple[tuple[int, float], tuple[int, float]], published: tuple[str, str]) -> list[Claim]:
    """Two capacities that the text gives as a step; which (d, epsilon) it means is inferred here."""
    found = []
    for place, (d, eps), printed in zip(("from", "to"), inputs, published, strict=True):
        at = bracket(d, eps)
        value = math.exp(full.log_k(d, eps))
        found.append(
            numeric(
                f"{key}.{place}", GROUP, f"full at ({d}, {eps:g})", printed, value,
                corrected=_proven(at), inferred=True, note=NOTES[key],
                values={"d": d, "epsilon": eps, "bracket": at.to_dict()},
            )
        )  # fmt: skip
    return found


def _where_coding_wins() -> list[Claim]:
    """Where even random coding has more lines than `full`, which is called an upper bound."""
    from scipy.optimize import brentq

    from repcap.laws.limits.existence import gilbert_varshamov

    dims = (1024, 2048, 4096, 8192)
    crossings = {
        d: float(brentq(lambda e, d=d: gilbert_varshamov(d, e) - full.log_k(d, e) / LN10, 0.03, 0.6, xtol=1e-10))
        for d in dims
    }
    least, most = min(crossings.values()), max(crossings.values())
    return [
        Claim(
            "upper.coding",
            GROUP,
            "full bounds k: any epsilon",
            "upper bound",
            f"fails past ε = {most:.3f} to {least:.3f}",
            "print the bracket",
            "contradicted",
            {"crossings": {str(d): eps for d, eps in crossings.items()}},
            "Beyond that epsilon even random coding (Gilbert-Varshamov) proves more lines than the formula allows: "
            + ", ".join(f"{eps:.4f} for d = {d}" for d, eps in crossings.items())
            + ".",
        )
    ]
