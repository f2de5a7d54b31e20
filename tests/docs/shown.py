"""The commands that a page shows, and what it shows as their output."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

COMMENT = re.compile(r"\s+#\s.*$")
NUMBER = re.compile(r"[+-]?\d[\d,]*\.?\d*(?:e[+-]?\d+)?")
SECONDS = re.compile(r"\b\d+(\.\d+)? s\b|(?<=seconds)\s+\d+, \d+(\.\d+)?")


class Block(NamedTuple):
    lines: list[str]
    language: str | None
    """What stands behind the fence; None for an indented block."""
    directly: bool
    """Nothing but blank lines between it and the block before."""


class Shown(NamedTuple):
    page: str
    command: str
    """Without the prompt, comments and continued lines; `M=...` lines before it are put in."""
    output: list[str] | None
    """None: the page shows none."""


def blocks(text: str) -> list[Block]:
    """The fenced and the indented blocks of a page in Markdown."""
    found: list[Block] = []
    held: list[str] | None = None
    language: str | None = None
    directly = False
    for line in [*text.split("\n"), "end"]:
        if held is not None and language is not None:  # in a fence
            if line.startswith("```"):
                found.append(Block(held, language, directly))
                held, language, directly = None, None, True
            else:
                held.append(line)
        elif held is not None and (line.startswith("    ") or not line.strip()):
            held.append(line[4:])
        else:
            if held is not None:
                found.append(Block("\n".join(held).rstrip().split("\n"), None, directly))
                held, directly = None, True
            if line.startswith("```"):
                held, language = [], line[3:].strip()
            elif line.startswith("    "):
                held = [line[4:]]
            elif line.strip():
                directly = False
    return found


def commands(page: str, text: str) -> list[Shown]:
    """Every command on the page, in order, with the output that stands under it.

    Output is what follows a `$` line in its fence; or the fence of text directly under a block of one command.
    """
    found: list[Shown] = []
    names: dict[str, str] = {}
    alone = False
    for block in blocks(text):
        joined = re.sub(r"\\\n\s*", "", "\n".join(COMMENT.sub("", line) for line in block.lines)).split("\n")
        prompts = [line for line in joined if line.startswith("$ repcap ")]
        plain = [line for line in joined if line.startswith(("repcap ", "M="))]
        if block.language == "text" and not prompts:
            if alone and block.directly:
                found[-1] = found[-1]._replace(output=block.lines)
            alone = False
            continue
        before = len(found)
        if prompts:
            parts = re.split(r"^\$ ", "\n".join(block.lines), flags=re.MULTILINE)[1:]
            for part in parts:
                words, _, rest = part.partition("\n")
                if words.startswith("repcap "):
                    found.append(
                        Shown(page, COMMENT.sub("", words), rest.rstrip().split("\n") if rest.strip() else None)
                    )
        elif block.language != "text":
            for line in plain:
                if line.startswith("M="):
                    names["$M"] = line[2:].strip()
                else:
                    for name, value in names.items():
                        line = line.replace(name, value)
                    found.append(Shown(page, " ".join(line.split()), None))
        alone = not prompts and len(found) == before + 1
    return found


def in_pages(root: Path) -> list[Shown]:
    """The commands of the README, of CONTRIBUTING and of every page of docs/."""
    pages = [root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").rglob("*.md"))]
    return [shown for page in pages for shown in commands(str(page.relative_to(root)), page.read_text())]


def _close(a: str, b: str) -> bool:
    """Whether two words are one, or numbers that differ by one in the last digit."""
    if a == b:
        return True
    numbers = [(NUMBER.findall(word), NUMBER.split(word)) for word in (a, b)]
    (left, left_rest), (right, right_rest) = numbers
    if left_rest != right_rest or len(left) != len(right):
        return False
    return all(_last_digit(x, y) for x, y in zip(left, right, strict=True))


def _last_digit(a: str, b: str) -> bool:
    x, y = (float(word.replace(",", "")) for word in (a, b))
    mantissa, _, exponent = a.replace(",", "").partition("e")
    places = len(mantissa.partition(".")[2])
    if not places and not exponent:
        return x == y  # a count
    return abs(x - y) <= 1.5 * 10.0 ** (int(exponent or 0) - places)


def same_line(shown: str, printed: str) -> bool:
    a, b = (SECONDS.sub("N s", line).split() for line in (shown, printed))
    return len(a) == len(b) and all(map(_close, a, b))


def departs(shown: list[str], printed: list[str]) -> str | None:
    """The first line that is not as shown, or None. A line `...` stands for any number of lines; blank ones are left
    out."""
    at = 0
    wanted, lines = ([line.rstrip() for line in text if line.strip()] for text in (shown, printed))
    for number, line in enumerate(wanted):
        if line == "...":
            rest = wanted[number + 1 :]
            if not rest:
                return None
            starts = [start for start in range(at, len(lines)) if same_line(rest[0], lines[start])]
            if not starts:
                return f"shown and not printed: {rest[0]!r}"
            at = starts[0]
        elif at >= len(lines):
            return f"shown and not printed: {line!r}"
        elif not same_line(line, lines[at]):
            return f"shown: {line!r}\nprinted: {lines[at]!r}"
        else:
            at += 1
    return None if at == len(lines) else f"printed and not shown: {lines[at]!r}"
