"""`repcap measure` and `repcap inspect` of what is far away, through the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hubmade import checkpoint, environment, sparse_shard
from hubserver import HubServer


def test_measures_what_a_local_copy_measures(hub: HubServer, repcap: Any, tmp_path: Path) -> None:
    files, embedding = checkpoint(rows=3000, dim=48)
    commit = hub.add("org/model", files)
    for name, content in files.items():
        assert isinstance(content, bytes)
        (tmp_path / name).write_bytes(content)
    far = repcap("measure", "org/model", "--json")
    assert far.code == 0, far.err
    near = repcap("measure", tmp_path, "--json")
    for key in ("mean", "std", "epsilon", "epsilon_se", "count", "dim", "class", "tied", "dtype", "capacity"):
        assert far.json[key] == near.json[key]
    assert far.json["revision"] == commit
    assert far.json["bytes_read"] >= embedding.nbytes
    shown = repcap("measure", "org/model")
    assert shown.code == 0
    assert shown.err == ""


def test_a_quick_look(hub: HubServer, repcap: Any) -> None:
    files, embedding = checkpoint(rows=20_000, dim=32)
    hub.add("org/model", files)
    found = repcap("measure", "org/model", "--rows", "2000", "--json")
    assert found.code == 0, found.err
    assert sum(r.sent for r in hub.asked("store")) < 0.12 * embedding.nbytes


def test_both_matrices_are_of_one_commit(hub: HubServer, repcap: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The branch moves after the first matrix has been measured."""
    from repcap.studies import measured as study

    files, _ = checkpoint(rows=300, dim=16, tied=False)
    first = hub.add("org/model", files)
    measured = study.with_capacity

    def then_move(*measurement: Any) -> Any:
        hub.add("org/model", checkpoint(rows=300, dim=16, seed=9, tied=False)[0])
        return measured(*measurement)

    monkeypatch.setattr(study, "with_capacity", then_move)
    found = repcap("measure", "org/model", "--matrix", "both", "--json")
    assert [one["revision"] for one in found.json] == [first, first]
    assert hub.repos["org/model"].refs["main"] != first


def test_inspect(hub: HubServer, repcap: Any) -> None:
    files, _ = checkpoint(rows=3000, dim=48, tied=False)
    commit = hub.add("org/model", files)
    shown = repcap("inspect", "org/model")
    assert shown.code == 0, shown.err
    assert "lm_head.weight" in shown.out
    assert commit[:12] in shown.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["org/nothing"], "org/nothing is not at"),
        (["org/model@nowhere"], "org/model has no revision 'nowhere'"),
        (["org/gated"], "org/gated is gated"),
        (["org/lies"], "pass --allow-full-download"),
        (["http://example.org/model.safetensors"], "use https"),
    ],
)
def test_errors_are_one_line(hub: HubServer, repcap: Any, arguments: list[str], words: str) -> None:
    files, _ = checkpoint(rows=64, dim=16)
    for name in ("org/model", "org/gated", "org/lies"):
        hub.add(name, files)
    hub.repos["org/gated"].gated = True
    hub.fault("ignore_range", path="org/lies", times=None)
    for verb in ("measure", "inspect"):
        found = repcap(verb, *arguments)
        assert found.code == 2
        assert found.out == ""
        assert found.err.startswith("repcap: error: ")
        assert found.err.count("\n") == 1
        assert words in found.err


def test_full_download_where_it_is_allowed(hub: HubServer, repcap: Any) -> None:
    files, _ = checkpoint(rows=64, dim=16)
    hub.add("org/lies", files)
    hub.fault("ignore_range", times=None)
    assert repcap("measure", "org/lies", "--allow-full-download", "--json").json["count"] == 64


RUN = """
import sys
from repcap.cli import run
code = run(sys.argv[1:])
# The peak of this program, not of the process that it was forked from.
with open("/proc/self/status") as status:
    print(next(line.split()[1] for line in status if line.startswith("VmHWM")), file=sys.stderr)
sys.exit(code)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_two_gigabytes_of_which_64_mb_count(hub: HubServer, tmp_path: Path) -> None:
    """A quick look and the whole, in processes of their own: 65 MB over the wire together, under 400 MB of memory."""
    rows, dim = 125_000, 256
    header = sparse_shard(tmp_path / "model.safetensors", rows, dim, 2_000_000_000)
    hub.add("org/large", {"model.safetensors": tmp_path / "model.safetensors", "config.json": b"{}"})

    def measure(*options: str) -> tuple[Any, int]:
        command = [sys.executable, "-c", RUN, "measure", "org/large", "--json", *options]
        variables = {**os.environ, **environment(hub, tmp_path)}
        done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=200, check=True)
        return json.loads(done.stdout), int(done.stderr.split()[-1])

    quick, _ = measure("--rows", "4000")
    assert hub.sent <= header + 4100 * dim * 2 + 2000
    whole, kilobytes = measure()
    assert (whole["count"], whole["dim"]) == (rows, dim)
    assert quick["epsilon"] == pytest.approx(whole["epsilon"], abs=5 * quick["epsilon_se"])
    assert header + rows * dim * 2 <= hub.sent <= 65_000_000
    assert kilobytes < 400_000
