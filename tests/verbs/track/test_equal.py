"""Checkpoints that hold the same bytes are named: published runs serve one file under many steps."""

from __future__ import annotations

import io
import json

import torch

from hubmade import shard
from hubserver import HubServer
from repcap.verbs.track.study import track

EMBED = "model.embed_tokens.weight"


def table(seed: int) -> torch.Tensor:
    return torch.randn(600, 16, generator=torch.Generator().manual_seed(seed))


def test_equal_rows_on_disk(checkpoint, tmp_path, repcap) -> None:
    for step, seed in ((100, 1), (200, 2), (300, 2), (400, 2), (500, 1)):
        checkpoint(f"run/checkpoint-{step}", table(seed))
    found = track(str(tmp_path / "run"))
    assert found.notes[:2] == ("steps 100, 500 hold the same bytes", "steps 200 to 400 hold the same bytes")
    hashes = [point["tensor_sha256"] for point in json.loads(json.dumps(found.to_dict()))["points"]]
    assert hashes[1] == hashes[2] == hashes[3]
    assert len(set(hashes)) == 2
    assert "Note: steps 200 to 400 hold the same bytes." in repcap("track", str(tmp_path / "run")).out


def test_equal_sources_without_steps(checkpoint, tmp_path) -> None:
    for name in ("a", "b"):
        checkpoint(name, table(1))
    paths = [str(tmp_path / name) for name in ("a", "b")]
    assert f"{paths[0]}, {paths[1]} hold the same bytes" in track(paths).notes


def test_equal_files_on_the_hub_are_fetched_once(hub: HubServer) -> None:
    commits = [hub.add("org/run", {"model.safetensors": shard({EMBED: table(seed)})}) for seed in (1, 2, 2)]
    refs = hub.repos["org/run"].refs
    refs.update({f"step{place}": commit for place, commit in enumerate(commits)})
    found = track([f"org/run@step{place}" for place in range(3)])
    assert found.notes == ("steps 1, 2 hold the same bytes",)
    first, second, third = found.points
    assert second.epsilon == third.epsilon != first.epsilon
    assert (third.to_first, third.to_previous.mean) == (second.to_first, 1.0)
    assert third.revision == commits[2]
    sent = [request.sent for request in hub.asked("store") if f"/{commits[2]}/" in request.path]
    assert sum(sent) < 500  # its header alone
    again = track([f"org/run@step{place}" for place in range(3)])  # headers come from the cache now
    assert again.notes == found.notes


def saved(seed: int) -> bytes:
    out = io.BytesIO()
    torch.save({EMBED: table(seed), "model.layers.0.weight": torch.zeros(1 << 18)}, out)
    return out.getvalue()


def test_equal_pytorch_files_are_fetched_once(hub: HubServer) -> None:
    bodies = [saved(seed) for seed in (1, 2, 2)]
    commits = [hub.add("org/run", {"pytorch_model.bin": body}) for body in bodies]
    hub.repos["org/run"].refs.update({f"step{place}": commit for place, commit in enumerate(commits)})
    found = track([f"org/run@step{place}" for place in range(3)])
    assert found.notes == ("steps 1, 2 hold the same bytes",)
    assert [point.revision for point in found.points] == commits
    sent = [sum(r.sent for r in hub.asked("store") if f"/{commit}/" in r.path) for commit in commits]
    assert sent[2] < sent[1] - 600 * 16 * 4 + 100  # its directory and its pickle, no row of it


def test_a_whole_run_of_one_file(hub: HubServer) -> None:
    """The rows are fetched once, and every step is in the curve."""
    files = {"model.safetensors": shard({EMBED: table(1)})}
    commits = [hub.add("org/run", {**files, "about.txt": str(step).encode()}) for step in range(5)]
    hub.repos["org/run"].refs.update({f"step{step}": commit for step, commit in enumerate(commits)})
    found = track([f"org/run@step{step}" for step in range(5)])
    assert found.notes == ("steps 0 to 4 hold the same bytes",)
    assert [point.to_first and point.to_first.mean for point in found.points] == [None, 1.0, 1.0, 1.0, 1.0]
    assert hub.sent < 600 * 16 * 4 + 10_000
