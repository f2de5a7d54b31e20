"""Checkpoints that hold the same bytes are named: published runs serve one file under many steps."""

from __future__ import annotations

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
    assert second.measurement.epsilon == third.measurement.epsilon != first.measurement.epsilon
    assert (third.to_first, third.to_previous.mean) == (second.to_first, 1.0)
    assert third.measurement.info.revision == commits[2]
    sent = [request.sent for request in hub.asked("store") if f"/{commits[2]}/" in request.path]
    assert sum(sent) < 500  # its header alone
    again = track([f"org/run@step{place}" for place in range(3)])  # headers come from the cache now
    assert again.notes == found.notes
