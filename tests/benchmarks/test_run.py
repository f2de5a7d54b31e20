"""The runner of the benchmarks: one table between the marks of a page, whatever fails."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
PAGE = "Before.\n\n<!-- performance: begin (by a script) -->\nformer text\n<!-- performance: end -->\n\nAfter.\n"


def go(page: Path, *words: str, script: Path = BENCHMARKS / "run.py") -> subprocess.CompletedProcess[str]:
    page.write_text(PAGE)
    command = [sys.executable, str(script), "--out", str(page), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def table(page: Path) -> list[list[str]]:
    """The lines of the table, the heading first; the text around it must be what it was."""
    before, rest = page.read_text().split("<!-- performance: begin (by a script) -->")
    inside, after = rest.split("<!-- performance: end -->")
    assert (before, after) == ("Before.\n\n", "\n\nAfter.\n")
    assert "torch" in inside
    assert "former text" not in inside
    return [cells(line) for line in inside.splitlines() if line.startswith("| ")]


def test_the_table(tmp_path):
    page = tmp_path / "page.md"
    done = go(page, "--quick", "--only", "coverage,startup")
    assert done.returncode == 0, done.stderr
    heading, *lines = table(page)
    assert [line[0] for line in lines] == ["`coverage`", "`startup`", "`startup`", "`startup`"]
    assert all(len(line) == len(heading) for line in lines)
    shown = [dict(zip(heading, line, strict=True)) for line in lines]
    assert shown[0]["than"] == "epsilon of all rows"
    assert float(shown[0]["times faster"]) > 0
    assert shown[0]["times the floor"] == ""
    for row in shown[1:]:
        assert row["floor"] == "import typer, rich"
        assert row["seconds"].endswith("s CPU")
        assert float(row["times the floor"]) > 0
    assert float(shown[0]["process, MB"]) > 3 * float(shown[1]["process, MB"]) > 30  # torch in one of them alone


def test_what_fails_has_a_line_and_the_rest_goes_on(tmp_path):
    (tmp_path / "measured.py").symlink_to(BENCHMARKS / "measured.py")
    good = (
        "from measured import Measured\n\ndef rows(quick):\n    return [Measured('n', 's', 2, 1, 'f', 8, 'r', True)]\n"
    )
    (tmp_path / "startup.py").write_text(good)
    (tmp_path / "moments.py").write_text("def rows(quick):\n    raise RuntimeError('a | b')\n")
    (tmp_path / "pairs.py").write_text("import time\n\ndef rows(quick):\n    time.sleep(60)\n")
    script = tmp_path / "run.py"  # no link: the folder of the script is where benchmarks are looked for
    script.write_text((BENCHMARKS / "run.py").read_text())
    page = tmp_path / "page.md"
    done = go(page, "--quick", "--only", "moments,pairs,startup", "--limit", "4", script=script)
    assert done.returncode == 1
    heading, *lines = table(page)
    assert lines[0][1] == "**failed**: RuntimeError: a \\"  # the mark of a column is escaped; `cells` splits there
    assert lines[1][1] == "**failed**: took more than 4 s"
    assert lines[2][:8] == ["`startup`", "n", "s", "2", "2", "f", "> 4", "r"]
    assert len(lines[1]) == len(heading)


def test_a_wrong_name_or_page_is_refused(tmp_path):
    page = tmp_path / "page.md"
    assert "no benchmark nonsense" in go(page, "--only", "nonsense").stderr
    sys.path.insert(0, str(BENCHMARKS))
    try:
        from measured import write_part
    finally:
        sys.path.remove(str(BENCHMARKS))
    page.write_text("no marks\n")
    with pytest.raises(SystemExit, match="once each"):
        write_part(page, "performance", "text")
    assert page.read_text() == "no marks\n"
