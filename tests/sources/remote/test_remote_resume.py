"""Killed in mid-download, and several processes at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from hubmade import checkpoint, environment
from hubserver import HubServer
from repcap.sources import open_source

READ = """
import sys, torch
from repcap.sources.remote import transfer
from repcap.sources import open_source
transfer.PLAN = transfer.Plan(workers=4, chunk_least=1 << 18, chunk_most=1 << 18, commit=1 << 16)
from repcap.sources.remote.cache import TensorFile
TensorFile.FLUSH_SECONDS = 0.05
with open_source("org/model") as matrix:
    print("open", flush=True)
    matrix.prefetch([(0, matrix.count)])
    torch.save(matrix.read(0, matrix.count), sys.argv[1])
"""


def start(hub: HubServer, tmp_path: Path, out: str) -> subprocess.Popen[str]:
    """A process that reads the embedding of org/model and saves it as `out`."""
    variables = {**os.environ, **environment(hub, tmp_path)}
    command = [sys.executable, "-c", READ, str(tmp_path / out)]
    return subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def tensor_bytes(hub: HubServer) -> int:
    return sum(r.sent for r in hub.asked("store") if r.range and r.range[1] - r.range[0] > 4096)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL on this system")
def test_killed_in_the_middle(hub: HubServer, tmp_path: Path) -> None:
    """SIGKILL at a third of 8 MB: the next run fetches what is missing, and not the rest again."""
    files, embedding = checkpoint(rows=1 << 14, dim=256)
    hub.add("org/model", files)
    hub.fault("slow", delay=0.05, times=None, min_length=4096)
    first = start(hub, tmp_path, "first.pt")
    assert first.stdout is not None
    assert first.stdout.readline() == "open\n", first.communicate()
    while tensor_bytes(hub) < embedding.nbytes // 3:
        time.sleep(0.01)
    first.kill()
    assert first.wait() == -signal.SIGKILL
    first.communicate()
    sent_before = tensor_bytes(hub)
    assert sent_before < embedding.nbytes  # it did not get to the end
    hub.heal()
    hub.forget()
    second = start(hub, tmp_path, "second.pt")
    out, err = second.communicate(timeout=60)
    assert second.returncode == 0, out + err
    assert torch.equal(torch.load(tmp_path / "second.pt"), embedding)
    # At most what four workers had not put on record yet comes twice: 64 kB and what 50 ms brought, each.
    assert tensor_bytes(hub) <= embedding.nbytes - sent_before + (1 << 20)
    assert tensor_bytes(hub) < 0.85 * embedding.nbytes


def test_two_processes_fetch_once(hub: HubServer, tmp_path: Path) -> None:
    files, embedding = checkpoint(rows=1 << 13, dim=256)
    hub.add("org/model", files)
    hub.fault("slow", delay=0.02, times=None, min_length=4096)
    both = [start(hub, tmp_path, name) for name in ("one.pt", "two.pt")]
    for process in both:
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, out + err
    for name in ("one.pt", "two.pt"):
        assert torch.equal(torch.load(tmp_path / name), embedding)
    assert tensor_bytes(hub) == embedding.nbytes


def test_an_interrupt_keeps_what_is_there(hub: HubServer) -> None:
    """Ctrl-C is raised in the thread that waits, whatever the workers do."""
    files, embedding = checkpoint(rows=1 << 13, dim=256)
    hub.add("org/model", files)
    hub.fault("slow", delay=0.02, times=None, min_length=4096)

    def interrupt(done: int, total: int) -> None:
        if done > total // 4:
            raise KeyboardInterrupt

    with open_source("org/model", on_progress=interrupt) as matrix, pytest.raises(KeyboardInterrupt):
        matrix.read(0, matrix.count)
    hub.heal()
    hub.forget()
    with open_source("org/model") as matrix:
        assert torch.equal(matrix.read(0, matrix.count), embedding)
    assert tensor_bytes(hub) < 0.9 * embedding.nbytes
