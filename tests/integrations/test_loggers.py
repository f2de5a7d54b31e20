"""The callback beside the loggers that people have: what TensorBoard and W&B write to the disk, read back."""

from __future__ import annotations

import importlib.util
import json
import math
import struct
from pathlib import Path

import pytest

from repcap.integrations.watch import CLASS_NUMBERS

STEPS = [2, 4, 6]


def needs(package):
    return pytest.mark.skipif(importlib.util.find_spec(package) is None, reason=f"needs {package}")


def check(found):
    """found: name -> [(step, value)]."""
    assert {name for name in found if name.startswith("repcap/")} == {
        "repcap/epsilon",
        "repcap/epsilon_ratio",
        "repcap/class",
    }
    for name in ("repcap/epsilon", "repcap/epsilon_ratio", "repcap/class"):
        assert [step for step, _ in found[name]] == STEPS
    for (_, epsilon), (_, ratio) in zip(found["repcap/epsilon"], found["repcap/epsilon_ratio"], strict=True):
        assert ratio == pytest.approx(epsilon * math.sqrt(8) / 2, rel=1e-5)
    assert all(value in CLASS_NUMBERS.values() for _, value in found["repcap/class"])


def train(trainer, **options):
    from repcap.integrations import EpsilonCallback

    run = trainer(**options)
    EpsilonCallback(every=2).attach(run)
    run.train()
    return {step["step"]: step["repcap/epsilon"] for step in run.state.log_history if "repcap/epsilon" in step}


@needs("tensorboard")
def test_tensorboard_draws_what_was_measured(trainer, tmp_path, monkeypatch):
    monkeypatch.setenv("TENSORBOARD_LOGGING_DIR", str(tmp_path / "board"))
    logged = train(trainer, report_to="tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    (events,) = (tmp_path / "board").rglob("events.out.tfevents.*")
    board = EventAccumulator(str(events.parent))
    board.Reload()
    # The Trainer puts a folder before each name that it does not know.
    tags = {tag.removeprefix("train/"): tag for tag in board.Tags()["scalars"]}
    found = {name: [(event.step, event.value) for event in board.Scalars(tag)] for name, tag in tags.items()}
    check(found)
    assert dict(found["repcap/epsilon"]) == pytest.approx(logged, rel=1e-5)


@needs("wandb")
def test_wandb_keeps_what_was_measured_offline(trainer, tmp_path, monkeypatch):
    for name, value in {"MODE": "offline", "DIR": str(tmp_path), "SILENT": "true", "WATCH": "false"}.items():
        monkeypatch.setenv(f"WANDB_{name}", value)
    for name in ("CACHE_DIR", "CONFIG_DIR", "DATA_DIR", "ARTIFACT_DIR"):
        monkeypatch.setenv(f"WANDB_{name}", str(tmp_path / name))
    import wandb

    logged = train(trainer, report_to="wandb", run_name="run")
    wandb.finish()
    found: dict[str, list[tuple[int, float]]] = {}
    for row in history(next((tmp_path / "wandb").rglob("run-*.wandb"))):
        for name, value in row.items():
            found.setdefault(name.removeprefix("train/"), []).append((row["train/global_step"], value))
    check(found)
    assert dict(found["repcap/epsilon"]) == pytest.approx(logged, rel=1e-5)


def history(path: Path):
    """The rows that an offline run of W&B holds."""
    from wandb.proto.wandb_internal_pb2 import Record

    for data in pieces(path.read_bytes()):
        record = Record()
        record.ParseFromString(data)
        if record.WhichOneof("record_type") == "history":
            items = ((item.key or "/".join(item.nested_key), item.value_json) for item in record.history.item)
            yield {key: json.loads(value) for key, value in items}


def pieces(body: bytes):
    """The records of a log in LevelDB's format, after a header of seven bytes: blocks of 32 KiB, parts in a chain."""
    assert body[:4] == b":W&B"
    block, at, joined = 1 << 15, 7, b""
    while at + 7 <= len(body):
        if block - at % block < 7:  # no room for a header: the rest of the block is empty
            at += block - at % block
            continue
        _, size, kind = struct.unpack_from("<IHB", body, at)
        if kind == 0:
            break
        joined += body[at + 7 : at + 7 + size]
        at += 7 + size
        if kind in (1, 4):  # whole, or the last part
            yield joined
            joined = b""
