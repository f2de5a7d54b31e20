"""A measurement as tables of 80 columns. Every number comes from the record; only percentages are formed here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.text import Text

from repcap.console.bracket_view import bracket_rows, bracket_words
from repcap.console.common import new_table
from repcap.text import printable, shorten, visible

if TYPE_CHECKING:
    from rich.console import RenderableType

    from repcap.geometry.epsilon.epsilon import Spread
    from repcap.geometry.epsilon.influence import RowInfluence
    from repcap.geometry.epsilon.sample import Estimate
    from repcap.geometry.measurement.measurement import Measurement, RowFindings, RowNote
    from repcap.studies.measured import Measured

WIDTH = 80
_SHOWN = 5
_BORDERS = {"high": "epsilon > 0.2", "between": "0.1 to 0.2", "low": "epsilon < 0.1"}
_LABELS = {
    "all": "all rows",
    "sample": "sampled rows",
    "tokenizer": "tokenizer rows only",
    "distinct": "without duplicates",
    "tokenizer, distinct": "tokenizer, no duplicates",
    "centred": "without the mean row",
}


def overview(measured: Sequence[Measured]) -> RenderableType:
    """One line a matrix, each with the bracket of its k: the law alone would be one number."""
    heads = ("source", "matrix", ">n", ">d", ">epsilon", ">times\nrandom", "class", ">log10 k, at\nleast to most")
    rows = [
        (
            shorten(found.info.name if found.info.role == "matrix" else found.info.role, 11),
            str(found.count),
            str(found.dim),
            ("~" if found.estimate else "") + f"{found.epsilon:.4f}",
            f"{found.epsilon_ratio:.2f}" if found.spread.null else "-",
            found.class_name,
            bracket_words(found.capacity),
        )
        for found in measured
    ]
    columns = zip(*rows, (head.removeprefix(">").split("\n")[-1] for head in heads[1:]), strict=True)
    taken = sum(max(map(len, column)) + 2 for column in columns)
    table = new_table(None, *heads)
    for found, row in zip(measured, rows, strict=True):
        table.add_row(Text(shorten(found.info.source, max(12, WIDTH - taken))), *row)
    return table


def detail(found: Measured) -> Iterator[RenderableType]:
    """Everything about one matrix, part by part."""
    yield _title(found)
    yield from _numbers(found)
    yield _capacity(found)
    if found.reading:
        yield _prose(found.reading)
    if found.common:
        yield _prose(found.common)
    if found.variants:
        yield _variants(found)
    yield from _rows(found.findings)
    if found.influence is not None:
        yield _influence("tokens that raise epsilon most", found.influence.raises)
        yield _influence("tokens that lower it most", found.influence.lowers)
    for text in (*found.notes, *found.info.warnings):
        yield _prose(f"Note: {text}.")
    read = found.bytes_read
    yield Text(f"\n{found.seconds:.1f} s, {read / 1e6:,.1f} MB read, {found.device}", style="dim")


def _title(found: Measurement) -> RenderableType:
    info = found.info
    name = Text(shorten(info.source, WIDTH), style="bold")
    facts = [shorten(info.name, WIDTH), f"{info.count} x {info.dim}", info.dtype]
    if info.role != "matrix":
        facts.insert(0, info.role)
    if info.tied is not None:
        facts.append("tied" if info.tied else "not tied")
    if info.revision:
        facts.append(f"@{info.revision[:12]}")
    return Text("\n").join([name, Text(printable(", ".join(facts)))])


def _numbers(found: Measurement) -> Iterator[RenderableType]:
    table = new_table(None, "", ">", "")
    spread, se = found.spread, found.epsilon_se
    z = f"{spread.z:g}"
    error = "" if se is None else f"± {se:.2g}"
    table.add_row("mean cosine", f"{spread.mean:.6f}", f"over all pairs of {spread.count} rows")
    table.add_row("std", f"{spread.std:.6f}", "")
    table.add_row("epsilon", Text(f"{spread.epsilon:.6f}", style="bold"), f"mean + {z} std  {error}".rstrip())
    if found.estimate is not None:
        bounds = f"{found.estimate.low:.4f} .. {found.estimate.high:.4f}"
        table.add_row("95 % interval", bounds, _drawn(found.estimate))
    table.add_row("random directions", f"{spread.null:.6f}", f"{z}/sqrt(d)")
    if spread.null:
        table.add_row("times random", f"{spread.ratio:.3f}", "epsilon over that of random directions")
    table.add_row("class", found.class_name, _BORDERS[found.class_name])
    table.add_row("effective dimension", f"{spread.effective_dim:.1f}", f"of {spread.dim}")
    if found.readout is not None:
        limit, most = found.readout.linear_limit, found.readout.s_limit
        told = f"dimensions at most; at best ~{int(most)} rows at once"
        if limit is None:
            told = "every row can be read exactly"
        table.add_row("linear readout", "-" if limit is None else f"{limit:.1f}", told)
    if found.spectrum.top_share is not None:
        table.add_row("strongest direction", f"{100 * found.spectrum.top_share:.1f} %", "of the rows' squared length")
    yield Padding(table, (1, 0, 0, 0))
    if se is not None:
        yield _prose(" ".join([_error_says(found, se), *_drift(found)]))


def _error_says(found: Measurement, se: float) -> str:
    """What ± is, and what it is not."""
    if found.estimate is not None:
        return f"± {se:.2g}: standard error (jackknife) of this estimate, from {found.estimate.rows} of the rows."
    which = "all pairs were used" if found.se_rows == found.count else f"from {found.se_rows} rows; all pairs were used"
    return (
        f"± {se:.2g}: by how much epsilon would move (one standard error, jackknife) if as many tokens were drawn anew "
        f"at random. It is no error of the sum: {which}."
    )


def _drift(found: Measurement) -> list[str]:
    """That ids are no random sample, where epsilon of the first of them shows it.

    It does where one of them lies five standard errors of as many random rows away from that of all.
    """
    if not found.drift or not found.epsilon_se:
        return []
    last = found.drift[-1][0]
    away = (abs(epsilon - found.epsilon) / found.epsilon_se * (ids / last) ** 0.5 for ids, epsilon in found.drift[1:])
    if max(away) < 5.0:
        return []
    first = ", ".join(f"{epsilon:.3f} ({ids})" for ids, epsilon in found.drift[:-1])
    return [f"Ids are no random sample: of the first ones alone epsilon is {first}."]


def _drawn(estimate: Estimate) -> str:
    """How the rows of an estimate were drawn."""
    if estimate.block_rows == 1:
        return f"from {estimate.blocks} single rows of {estimate.population}"
    return f"from {estimate.blocks} blocks of {estimate.block_rows} rows"


def _capacity(one: Measured) -> RenderableType:
    if one.capacity is None:
        return _prose(f"No capacity: {'; '.join(one.capacity_warnings)}.")
    table = new_table(f"k, directions with every |cosine| <= {one.epsilon:.4f}", "", ">k", "from")
    for label, k, source in bracket_rows(one.capacity):
        table.add_row(label, k, Text(source))
    return Padding(table, (1, 0, 0, 0))


def _variants(found: Measurement) -> RenderableType:
    table = new_table("the same on other rows", "rows", ">n", ">mean", ">std", ">epsilon", ">times\nrandom", "class")
    for spread in (found.spread, *found.variants):
        table.add_row(
            _label(spread),
            str(spread.count),
            f"{spread.mean:.5f}",
            f"{spread.std:.5f}",
            f"{spread.epsilon:.5f}",
            f"{spread.ratio:.2f}" if spread.null else "-",
            spread.class_name,
        )
    return Padding(table, (1, 0, 0, 0))


def _label(spread: Spread) -> str:
    name = spread.rows
    if name.startswith("top "):
        label = "without the top direction" if name == "top 1" else f"without the {name} directions"
    elif name.startswith("centred, "):
        label = f"no mean, then no {name.removeprefix('centred, ')}"
    else:
        label = _LABELS.get(name, name)
    return f"{label} (sample)" if spread.sampled and name != "sample" else label


def _rows(findings: RowFindings) -> Iterator[RenderableType]:
    """Dropped, tiny and repeated rows, each with some examples."""
    if findings.padding_rows:
        yield _prose(f"{findings.padding_rows} rows lie beyond the {findings.tokenizer_count} ids of the tokenizer.")
    if findings.dropped_count:
        yield _prose(f"{findings.dropped_count} rows have no direction and are left out: {_examples(findings.dropped)}")
    if findings.tiny_count:
        yield _prose(f"{findings.tiny_count} rows are tiny (kept): {_examples(findings.tiny)}")
    if findings.repeat_rows:
        table = new_table(f"rows that repeat another row's direction exactly: {findings.repeat_rows}", ">rows", "which")
        for group in findings.repeats[:_SHOWN]:
            names = [_named(index, token) for index, token in zip(group.indices, group.tokens, strict=True)]
            table.add_row(str(group.size), Text(_listed(names, group.size)))
        if len(findings.repeats) > _SHOWN:
            table.add_row("", f"and {len(findings.repeats) - _SHOWN} more groups (--json has them)")
        yield Padding(table, (1, 0, 0, 0))


def _examples(rows: Sequence[RowNote]) -> str:
    texts = [f"{_named(row.index, row.token)} ({row.reason})" for row in rows[:_SHOWN]]
    return ", ".join(texts) + (", ..." if len(rows) > _SHOWN else "")


def _named(index: int, token: str | None) -> str:
    return str(index) if token is None else f"{index} {visible(token)}"


def _listed(names: Sequence[str], total: int) -> str:
    shown = ", ".join(names[:_SHOWN])
    return shown + (f", and {total - _SHOWN} more" if total > _SHOWN else "")


def _influence(title: str, rows: Sequence[RowInfluence]) -> RenderableType:
    table = new_table(title, ">row", "token", ">change of epsilon")
    for row in rows:
        table.add_row(str(row.index), Text("" if row.token is None else visible(row.token)), f"{row.influence:+.2e}")
    return Padding(table, (1, 0, 0, 0))


def _prose(text: str) -> RenderableType:
    """Text in lines of 80 characters, also where the output is no terminal."""
    import textwrap

    return Text("\n" + "\n".join(textwrap.wrap(printable(text), WIDTH)))
