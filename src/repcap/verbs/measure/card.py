"""A measurement as a section of a model card: Markdown that goes below what a card on the Hub already says."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from repcap.console.bracket_view import bracket_rows
from repcap.console.derive import flag
from repcap.options import parameters
from repcap.options.checking import written
from repcap.studies.measured import Measured, measure
from repcap.text import legible, markdown

PAPER = "https://arxiv.org/abs/2606.02765"


def card(measured: Sequence[Measured]) -> str:
    """The section of these measurements of one model, or of several; ends with a line break."""
    parts = ["## Geometry of the vectors", *(_one(found) for found in measured), _origin(measured)]
    return legible("\n\n".join(parts)) + "\n"


def command_line(found: Measured) -> str:
    """The command that measures this once more: the source, its matrix, and what was not at its default."""
    words = ["repcap", "measure", found.info.source]
    matrix = str(found.options.get("matrix", "embedding"))
    if matrix != "embedding":
        words += ["--matrix", matrix]
    for name, item in parameters(measure).items():
        value = found.options.get(name)
        if name == "matrix" or item.option.silent or value in (None, "", [], False, written(item, item.default)):
            continue
        words += [flag(item)] if value is True else [flag(item), str(value)]
    return shlex.join(words)


def _one(found: Measured) -> str:
    info, spread = found.info, found.spread
    error = "" if found.epsilon_se is None else f" ± {found.epsilon_se:.2g}"
    how = "" if found.estimate is None else f", estimated from {found.estimate.rows} rows"
    rows = {
        "rows x columns": f"{info.count} x {info.dim}, {info.dtype}{how}",
        "tied": {True: "yes", False: "no", None: "not known"}[info.tied],
        "epsilon": f"{spread.epsilon:.4f}{error} (mean {spread.mean:.4f} + {spread.z:g} std {spread.std:.4f})",
        "class": found.class_name,
        "random directions": f"{spread.null:.4f}",
        **({"times random": f"{spread.ratio:.2f}"} if spread.null else {}),
        "effective dimension": f"{spread.effective_dim:.1f} of {spread.dim}",
    }  # fmt: skip
    if found.capacity is not None:
        words = {label: (k, name) for label, k, name in bracket_rows(found.capacity)}
        rows |= {f"directions, {label}": f"{k} ({name})" for label, (k, name) in words.items()}
    if info.revision:
        rows["commit"] = f"`{info.revision}`"
    if found.tensor_sha256:
        rows["SHA-256 of the rows"] = f"`{found.tensor_sha256}`"
    lines = [f"| {markdown(info.role)} | {markdown(info.name)} |", "|---|---|"]
    lines += [f"| {label} | {markdown(value)} |" for label, value in rows.items()]
    return "\n".join([*lines, "", markdown(found.reading)]).rstrip()


def _origin(measured: Sequence[Measured]) -> str:
    lines = "\n".join(dict.fromkeys(command_line(found) for found in measured))
    fence = "`" * max(
        3, 1 + max((len(run) for run in lines.replace("`", " ` ").split() if set(run) == {"`"}), default=0)
    )
    return (
        f"Measured with repcap {measured[0].version}, from the weights alone. epsilon = mean + z std of the cosines "
        f"between all pairs of rows; the words and laws: [arXiv:2606.02765]({PAPER}). The same numbers again:\n\n"
        f"{fence}sh\n{lines}\n{fence}"
    )
