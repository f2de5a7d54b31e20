"""What a reproduced claim is, and when a number agrees with a printed one."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Sequence
from typing import Any, Literal

from repcap.errors import InputError
from repcap.numerics import format_power

Status = Literal["agrees", "departs", "inferred", "contradicted", "unsupported", "added"]
STATUSES: dict[str, str] = {
    "agrees": "equal to the published number at its printed precision",
    "departs": "not equal to it; --check fails",
    "inferred": "the inputs are inferred, so a difference proves nothing",
    "contradicted": "the released code, the data or a proof say otherwise",
    "unsupported": "the data do not bear it out",
    "added": "not in the published work",
}

_PRINTED = re.compile(r"([+-]?\d+(?:\.(\d+))?)(?:e([+-]?\d+))?\s*(%?)")


@dataclasses.dataclass(frozen=True)
class Claim:
    """One published statement and what the data say."""

    key: str
    group: str
    title: str
    published: str
    recomputed: str
    """The paper's own way: its cells, its formula, its constants."""
    corrected: str
    """What should be said instead, or beside it; empty where there is nothing to add."""
    status: Status
    values: dict[str, Any]
    """Every number behind the three columns, unrounded."""
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def _parse(printed: str) -> tuple[float, float, bool]:
    """(value, unit of the last digit, is it a percentage) of a printed number."""
    found = _PRINTED.fullmatch(printed.strip())
    if found is None:
        raise InputError(f"{printed!r} is no printed number such as 0.9985, 2e20, 3.99e7 or 7.9 %")
    mantissa, decimals, exponent, percent = found.groups()
    power = int(exponent or 0)
    scale = 0.01 if percent else 1.0
    value = float(f"{mantissa}e{power}") * scale
    return value, 10.0 ** (power - len(decimals or "")) * scale, bool(percent)


def matches(printed: str, value: float) -> bool:
    """Does `value` round to the printed number at the precision that it is printed with?

    >>> matches("0.9985", 0.99849), matches("3.99e7", 3.98e7), matches("7.9 %", 0.0795)
    (True, False, True)
    """
    number, unit, _ = _parse(printed)
    # A tie may round either way; 1e-9 absorbs the rounding of the halves themselves.
    return math.isfinite(value) and abs(value - number) <= 0.5 * unit * (1.0 + 1e-9)


def show(printed: str, value: float, extra: int = 1) -> str:
    """`value` in the style of the printed number with `extra` more digits, and as many more as decide.

    A number that is shown as a tie between two printed ones, such as 3.0295 beside 3.029, looks as if it departed: it
    gets digits until it lies on one side.

    >>> show("0.9985", 0.998494), show("2e20", 2.045e20), show("975 %", 9.75342), show("3.029", 3.02947)
    ('0.99849', '2.0e20', '975.3 %', '3.02947')
    """
    number, unit, _ = _parse(printed)
    for digits in range(extra, extra + 6):
        text = _with_digits(printed, value, digits)
        if abs(abs(_parse(text)[0] - number) / unit - 0.5) > 1e-6:
            break
    return text


def _with_digits(printed: str, value: float, extra: int) -> str:
    _, unit, percent = _parse(printed)
    if "e" in printed:
        digits = len(printed.partition("e")[0].partition(".")[2]) + extra
        mantissa, _, power = f"{value:.{digits}e}".partition("e")
        return f"{mantissa}e{int(power)}"
    scale = 100.0 if percent else 1.0
    decimals = max(0, round(-math.log10(unit * scale))) + extra
    return f"{value * scale:.{decimals}f}" + (" %" if percent else "")


def counted(claims: Sequence[Claim], agreeing_rows: int, indeterminate: int, rows: int) -> str:
    """What was checked, what agrees, and what was left out, in whole numbers.

    agreeing_rows, indeterminate, rows: of the table of models, those that agree, those that the paper prints no number
    for, and all.
    """
    checked = [claim for claim in claims if claim.status in ("agrees", "departs")]
    agreeing = sum(claim.status == "agrees" for claim in checked)
    parts = [f"{agreeing} of {len(checked)} numbers agree"] if checked else []
    if rows:
        parts.append(
            f"{agreeing_rows} of {rows} rows of Table 1 agree ({rows - indeterminate} with a capacity, {indeterminate} "
            "called indeterminate)"
        )
    left = {status: sum(claim.status == status for claim in claims) for status in STATUSES}
    words = [f"{number} {status}" for status, number in left.items() if number and status not in ("agrees", "departs")]
    if words:
        how = "claims are not counted" if checked else "claims, set beside what is proven"
        parts.append(f"{len(claims) - len(checked)} {how}: {', '.join(words)}")
    return "; ".join(parts)


def interval(bounds: tuple[float, float] | list[float], digits: int = 4) -> str:
    """A confidence interval in words."""
    return f"{bounds[0]:.{digits}g} to {bounds[1]:.{digits}g}"


def between(low_log10: float, high_log10: float) -> str:
    """A proven bracket of k in words, both ends by their log10."""
    return f"{format_power(low_log10)} to {format_power(high_log10)}"


def numeric(
    key: str,
    group: str,
    title: str,
    published: str,
    value: float,
    *,
    corrected: str = "",
    compare: str | None = None,
    inferred: bool = False,
    note: str = "",
    values: dict[str, Any] | None = None,
) -> Claim:
    """A claim about one number. `compare` is what must be matched where not all printed digits mean something."""
    agrees = matches(compare or published, value)
    status: Status = "inferred" if inferred else "agrees" if agrees else "departs"
    return Claim(
        key=key,
        group=group,
        title=title,
        published=published,
        recomputed=show(compare or published, value),
        corrected=corrected,
        status=status,
        values={"recomputed": value, "matches_published": agrees, **(values or {})},
        note=note,
    )
