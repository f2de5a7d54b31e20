"""The study's script: its tables are what the verbs say, and go into a page between its marks."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
import torch

import repcap
from repcap.errors import RepcapError
from tool_modules import load_tool

GEMMA = "google/gemma-3-270m"


@pytest.fixture(scope="module")
def tool():
    return load_tool("study")


@pytest.fixture
def rows(tmp_path):
    generator = np.random.default_rng(0)
    found = generator.normal(size=(300, 12)).astype(np.float32)
    found[:60] = found[0] + 0.1 * found[:60]
    np.save(tmp_path / "rows.npy", found)
    return found


def test_tables_hold_what_the_verbs_say(tool, rows, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    page, records = tmp_path / "page.md", tmp_path / "r.json"
    page.write_text(f"before\n{tool.MARKS[0]}\nold\n{tool.MARKS[1]}\nafter\n")
    words = [f"made={tmp_path / 'rows.npy'}", "--write", str(page), "--json", str(records)]
    assert tool.main(words) == 0
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    assert capsys.readouterr().out.strip() in text
    pairs = repcap.pairs(torch.from_numpy(rows), gauge=tool.GAUGES)
    for tail in pairs.tails:
        first = f"{tail.points[0].dim:.3g}"
        assert re.search(rf"\| made \| {tail.gauge} \| 12 \| {re.escape(first)} \|", text)
    read = repcap.readout(torch.from_numpy(rows), active=tool.ACTIVE)
    assert f"| made | best linear | {read.best.effective_dim:.1f} | {read.best.most} |" in text
    assert f"| made | | 300 | 12 | {pairs.spread.epsilon:.4f} |" in re.sub(r" +", " ", text)
    (record,) = json.loads(records.read_text())
    random = record["random_pairs"]["tails"][0]["points"][0]["dim"]
    assert random == pytest.approx(12, rel=0.05)
    assert (tmp_path / "figures" / "studies_tail.png").read_bytes()[:4] == b"\x89PNG"


def test_word_vectors_as_text(tool, tmp_path):
    (tmp_path / "w.vec").write_bytes(b"2 3\nthe 1 2 3\ncaf\xe9 bar -1 0.5 1e-3\n")
    assert tool.rows_of(str(tmp_path / "w.vec")).tolist() == [[1, 2, 3], [-1, 0.5, pytest.approx(1e-3)]]
    (tmp_path / "w.vec").write_bytes(b"3 3\nthe 1 2 3\n")
    with pytest.raises(RepcapError, match="says 3 x 3 and holds 1 x 3"):
        tool.rows_of(str(tmp_path / "w.vec"))


def test_a_page_without_marks_is_left_alone(tool):
    with pytest.raises(RepcapError, match="to write between"):
        tool.written("text", "tables")


def test_only_models_whose_package_is_installed(tool):
    assert [model.name for model in tool.chosen([])] == [m.name for m in tool.MODELS if m.version is not None]
    assert tool.chosen(["a=b", "org/name"]) == [tool.Model("a", "b"), tool.Model("org/name", "org/name")]


@pytest.mark.network
@pytest.mark.timeout(3600)
def test_gemma_3_270m(tool):
    """262144 rows of 640 columns, read by their bytes alone; gated: it needs HF_TOKEN."""
    found = tool.study(tool.Model("Gemma 3 270M", GEMMA))
    assert (found["pairs"]["dim"], found["pairs"]["count"] > 260_000) == (640, True)
    stored = found["pairs"]["tails"][0]["points"]
    assert all(point["dim"] < 640 for point in stored)
    for predicted, drawn in zip(found["readout"]["best"]["alarms"], found["readout"]["best"]["simulated"], strict=True):
        assert drawn["rate"] == pytest.approx(predicted["rate"], rel=0.5, abs=1e-4)
