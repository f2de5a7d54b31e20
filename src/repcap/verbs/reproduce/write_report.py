"""The report of a reproduction: report.md, report.html (figures embedded), records.json, and the figures as files."""

from __future__ import annotations

import base64
import html
import importlib.util
import itertools
import os
import re
from collections.abc import Callable, Sequence
from importlib import resources
from pathlib import Path
from string import Template

from repcap._version import __version__
from repcap.errors import InputError
from repcap.files import write_json, write_text
from repcap.laws import curves
from repcap.numerics import format_power
from repcap.text import jsonable
from repcap.verbs.reproduce.claims import STATUSES
from repcap.verbs.reproduce.figure import DRAWINGS
from repcap.verbs.reproduce.study import ARXIV, SOURCE, Claim, Reproduction, TableRow

TITLE = "Representational capacity: published, recomputed, corrected"
COLUMNS = ("claim", "published", "recomputed", "corrected", "status")
MODEL_COLUMNS = ("model", "d", "ε", "times random", "published k", "full", "proven from", "proven to", "what proves it")


def write_report(
    found: Reproduction, directory: str | os.PathLike[str], *, on_progress: Callable[[int, int], None] | None = None
) -> list[Path]:
    """Write the whole report into `directory` (made if missing) and return the paths.

    report.html stands alone (figures embedded); report.md refers to figures/*.png; each figure is there as PNG and SVG;
    records.json holds every number. Without matplotlib there are no figures; the rest is written. Files of an earlier
    run are replaced one by one, each as a whole.

    Raises
    ------
    InputError
        if the directory cannot be made, or `found` does not hold every group.
    """
    if not found.models:
        raise InputError("the report needs every group: call reproduce() without a choice of groups")
    target = Path(directory)
    try:
        (target / "figures").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the directory {target}: {(error.strerror or str(error)).lower()}") from error
    written: list[Path] = []
    drawn = importlib.util.find_spec("matplotlib") is not None
    for position, drawing in enumerate(DRAWINGS if drawn else ()):
        written.extend(drawing.draw(target / "figures" / f"{drawing.name}.png"))
        if on_progress is not None:
            on_progress(position + 1, len(DRAWINGS))
    write_json(target / "records.json", jsonable(found))
    write_text(target / "report.md", markdown(found, drawn))
    write_text(target / "report.html", page(found, target / "figures"))
    return [target / "report.html", target / "report.md", target / "records.json", *written]


# --- words, shared by both formats


def _source() -> str:
    return f"Numbers and data of {SOURCE}, arXiv {ARXIV} (2026), CC BY 4.0 (paper) and MIT (code and data)."


ABSTRACT = (
    "The paper measures how far the token directions of 45 models are from orthogonal (epsilon, the mean plus two "
    "standard deviations of their cosines), fits laws to packings of vectors that an optimiser made, and reads "
    "from them how many near-orthogonal directions a model has room for. Here each of its numbers is computed "
    "again from its own data, then corrected where data, code or a proof say otherwise. The arithmetic holds. "
    "What is built on it does not always: the formula is no upper bound, the comparison of the laws rests on six "
    "cells, and epsilon is not compared with that of random directions."
)
REFERENCES = (
    (f"A. Guha, {SOURCE.partition(', ')[2]}, 2026", f"https://arxiv.org/abs/{ARXIV}"),
    ("L. R. Welch, Lower bounds on the maximum cross correlation of signals, 1974", "https://doi.org/10.1109/TIT.1974.1055219"),
    ("P. Delsarte, J. M. Goethals, J. J. Seidel, Bounds for systems of lines, and Jacobi polynomials, 1975", ""),
    ("V. I. Levenshtein, Universal bounds for codes and designs, in Handbook of Coding Theory, 1998", ""),
    ("A. R. Calderbank, P. J. Cameron, W. M. Kantor, J. J. Seidel, Z4-Kerdock codes, orthogonal spreads, and extremal "
     "Euclidean line-sets, 1997", "https://doi.org/10.1112/S0024611597000403"),
    ("E. N. Gilbert, A comparison of signalling alphabets, 1952", "https://doi.org/10.1002/j.1538-7305.1952.tb01393.x"),
    ("B. Efron, Bootstrap methods: another look at the jackknife, 1979", "https://doi.org/10.1214/aos/1176344552"),
)  # fmt: skip
"""(work, where it is; empty where no address is known to us)."""


def _formulas() -> list[str]:
    """The laws with the constants of the paper."""
    return [
        f"{curve.label}: {law.formula}, "
        + ", ".join(f"{name} = {value:g}" for name, value in {**law.params, **curve.params}.items())
        for law, curve in curves()
    ]


def _headlines(found: Reproduction) -> list[tuple[str, str]]:
    """A number and what it is, for the top of the report."""
    table = found.claim("table.capacity").values
    kerdock = found.claim("upper.kerdock").values
    trend = found.claim("trend.null").values["spearman"]
    return [
        (
            f"{found.claim('ratio.factor').values['on_k_above_d']:.1f} times",
            f"is what ratio gains over jl, not {found.claim('ratio.factor').published}, without six cells of residue",
        ),
        (
            f"{kerdock['explicit']['k']} > {kerdock['ratio']:.0f}",
            "lines in R^64 at coherence 1/8, against the formula called an upper bound",
        ),
        (f"{table['below_proven']} of {table['finite']}", "finite capacities that lie below a set proven to exist"),
        (f"ρ = {trend['rho']:+.2f}", "d against times random: larger models are less random"),
    ]


def _method(found: Reproduction) -> list[str]:
    return [
        "Nothing in the recomputed and corrected columns is typed in: each is computed when the report is made, from "
        "the published data (166 optimised and 256 random packings, 45 models).",
        "A number agrees if it rounds to the printed one. For Table 1, epsilon is known to five decimals only, so the "
        "capacity over the epsilons that round to the printed one must reach the printed capacity.",
        f"Intervals are 95 % percentiles of {found.bootstrap} bootstrap draws over whole d. Cells of one d are "
        "no independent sample.",
        "NRMSE is the RMSE over the range of epsilon. MAPE weighs every cell's relative error the same, so cells with "
        "epsilon near 0 rule it.",
        "Proven from: the larger of the best explicit set and random coding. Proven to: the least of Welch, "
        "orthoplex and Levenshtein. A law in between is an interpolation of what one optimiser reached.",
        "epsilon is mean + 2 standard deviations of the cosines, a quantile of them; the laws speak of the largest. "
        "The published data do not hold the largest cosine of a model, so this report cannot correct for it.",
    ]


def _row_cells(row: TableRow) -> tuple[str, ...]:
    low = max(row.explicit_log10_k, row.exists_log10_k)
    return (
        row.model,
        str(row.d),
        f"{row.epsilon:.5f}",
        f"{row.epsilon_ratio:.2f}",
        row.published,
        f"({format_power(row.log10_k)})" if row.indeterminate else format_power(row.log10_k),
        format_power(low),
        format_power(row.upper_log10_k),
        row.explicit if low == row.explicit_log10_k else f"random coding ({row.explicit})",
    )


MODELS_NOTE = (
    "times random: epsilon over 2/√d, the value of random directions. full: recomputed at the printed epsilon, whose "
    "rounding moves the last digit; in brackets where epsilon ≥ 0.1, for which the paper prints no number. "
)


def _notes(claims: list[Claim]) -> list[str]:
    """The note of each claim; empty where it repeats one above it."""
    seen: set[str] = set()
    shown = []
    for claim in claims:
        shown.append("" if claim.note in seen else claim.note)
        seen.add(claim.note)
    return shown


def _groups(found: Reproduction) -> list[tuple[str, list[Claim]]]:
    return [(group, list(claims)) for group, claims in itertools.groupby(found.claims, key=lambda claim: claim.group)]


# --- Markdown


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def markdown(found: Reproduction, drawn: bool = True) -> str:
    """The report as GitHub-flavoured Markdown; figures, where they were drawn, are referred to as figures/NAME.png."""
    lines = [f"# {TITLE}", "", _source(), "", ABSTRACT, "", f"{found.reading}", ""]
    lines += [f"- **{number}**: {words}" for number, words in _headlines(found)]
    lines += ["", "## How to read this", ""]
    lines += [f"- **{status}**: {words}" for status, words in STATUSES.items()]
    lines += ["", *(f"- {words}" for words in _method(found))]
    lines += ["", "The laws, natural logarithms:", "", *(f"- `{words}`" for words in _formulas())]
    for group, claims in _groups(found):
        lines += ["", f"## {group}", "", _line(COLUMNS), _line(["---"] * len(COLUMNS))]
        lines += [_line((c.title, c.published, c.recomputed, c.corrected, c.status)) for c in claims]
        notes = [f"- *{c.title}*: {note}" for c, note in zip(claims, _notes(claims), strict=True) if note]
        lines += ["", *notes] if notes else []
        for drawing in (one for one in DRAWINGS if drawn and one.group == group):
            image = f"![{drawing.title}](figures/{drawing.name}.png)"
            lines += ["", image, "", f"**{drawing.title}.** {drawing.caption}"]
    lines += ["", "## Table 1: the models", "", MODELS_NOTE + _departing(found), ""]
    lines += [_line(MODEL_COLUMNS), _line(["---", *["---:"] * 7, "---"])]
    lines += [_line(_row_cells(row)) for row in found.models]
    lines += ["", "## References", ""]
    lines += [f"- [{work}]({address})" if address else f"- {work}" for work, address in REFERENCES]
    lines += ["", f"Made by repcap {__version__}.", ""]
    return "\n".join(lines)


def _departing(found: Reproduction) -> str:
    wrong = [row.model for row in found.models if not row.agrees]
    return f"Departing rows: {', '.join(wrong)}." if wrong else "No row departs."


# --- HTML


def _e(text: str) -> str:
    """Escaped, with `names` in code type."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text))


def page(found: Reproduction, figures: Path) -> str:
    """The report as one HTML file; the PNG files of `figures` are embedded."""
    template = Template(
        resources.files("repcap.verbs.reproduce").joinpath("templates/reproduce.html").read_text("utf-8")
    )
    lead = "".join(f"<div><b>{_e(number)}</b><span>{_e(words)}</span></div>" for number, words in _headlines(found))
    return template.substitute(
        title=_e(TITLE),
        source=_e(_source()),
        summary=f'<p>{_e(ABSTRACT)}</p><p><b>{_e(found.reading)}</b></p><div class="lead">{lead}</div>',
        claims="\n".join(
            f"{_html_group(group, claims)}\n{_html_figures(figures, group)}" for group, claims in _groups(found)
        ),
        rows=_html_rows(found),
        method=_html_method(found),
        references=_html_references(),
        footer=_e(f"Made by repcap {__version__}. Every number, unrounded: records.json."),
    )


def _html_group(group: str, claims: list[Claim]) -> str:
    body = []
    for claim, note in zip(claims, _notes(claims), strict=True):
        cells = "".join(f"<td>{_e(text)}</td>" for text in (claim.title, claim.published, claim.recomputed))
        status = f'<td class="status {claim.status}">{claim.status}</td>'
        kind = ' class="has-note"' if note else ""
        body.append(f"<tr{kind}>{cells}<td>{_e(claim.corrected)}</td>{status}</tr>")
        if note:
            body.append(f'<tr class="note"><td colspan="5">{_e(note)}</td></tr>')
    head = "".join(f"<th>{column}</th>" for column in COLUMNS)
    table = f'<table class="claims"><thead><tr>{head}</tr></thead><tbody>{"".join(body)}</tbody></table>'
    return f'<h2>{_e(group)}</h2>\n<div class="scroll">{table}</div>'


def _html_figures(figures: Path, group: str) -> str:
    """Those of a group that were drawn: without matplotlib none."""
    drawn = [one for one in DRAWINGS if one.group == group and (figures / f"{one.name}.png").is_file()]
    return "\n".join(_html_figure(figures, drawing.name, drawing.title, drawing.caption) for drawing in drawn)


def _html_references() -> str:
    works = (f'<a href="{_e(address)}">{_e(work)}</a>' if address else _e(work) for work, address in REFERENCES)
    return "<ul>" + "".join(f"<li>{work}</li>" for work in works) + "</ul>"


def _html_figure(figures: Path, name: str, title: str, caption: str) -> str:
    data = base64.b64encode((figures / f"{name}.png").read_bytes()).decode("ascii")
    image = f'<img alt="{_e(title)}" src="data:image/png;base64,{data}">'
    return f"<figure>{image}<figcaption><b>{_e(title)}.</b> {_e(caption)}</figcaption></figure>"


def _html_rows(found: Reproduction) -> str:
    head = "".join(f"<th>{_e(column)}</th>" for column in MODEL_COLUMNS)
    body = "".join(
        "<tr>" + "".join(f"<td>{_e(cell)}</td>" for cell in _row_cells(row)) + "</tr>" for row in found.models
    )
    table = f'<table class="models"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    return f'<p>{_e(MODELS_NOTE + _departing(found))}</p><div class="scroll">{table}</div>'


def _html_method(found: Reproduction) -> str:
    terms = "".join(f'<dt class="{status}">{status}</dt><dd>{_e(words)}</dd>' for status, words in STATUSES.items())
    points = "".join(f"<li>{_e(words)}</li>" for words in _method(found))
    laws = "".join(f"<li><code>{html.escape(words)}</code></li>" for words in _formulas())
    return f"<dl>{terms}</dl><ul>{points}</ul><p>The laws, natural logarithms:</p><ul>{laws}</ul>"
