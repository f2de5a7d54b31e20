"""Inputs that broke similar tools, through the command line: the exact line, exit code 2, and no traceback.

What a researcher really meets: half-finished downloads, indexes that lie, pointers instead of files.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

EMBED, HEAD, UP = "model.embed_tokens.weight", "lm_head.weight", "model.layers.0.up.weight"


def refused(outcome, message: str) -> None:
    assert (outcome.code, outcome.out, outcome.err) == (2, "", f"repcap: error: {message}\n")


def epsilon64(rows: torch.Tensor) -> float:
    """mean + 2 std over all pairs, by brute force in float64."""
    x = rows.double().numpy()
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    cosines = (unit @ unit.T)[~np.eye(len(x), dtype=bool)]
    return float(cosines.mean() + 2 * cosines.std())


@pytest.fixture
def table(rng) -> torch.Tensor:
    return torch.randn(60, 8, generator=rng)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_index(folder, weight_map) -> None:
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))


def test_index_names_a_tensor_that_another_shard_holds(repcap, folder, table) -> None:
    save_file({UP: table}, folder / "a.safetensors")
    save_file({EMBED: table}, folder / "b.safetensors")
    write_index(folder, {EMBED: "a.safetensors", UP: "b.safetensors"})
    outcome = repcap("measure", ".", "--json")
    assert (outcome.code, outcome.json["count"]) == (0, 60)
    assert outcome.json["epsilon"] == pytest.approx(epsilon64(table), abs=1e-6)


def test_index_names_a_tensor_that_no_shard_holds(repcap, folder, table) -> None:
    save_file({UP: table}, folder / "a.safetensors")
    write_index(folder, {EMBED: "a.safetensors", UP: "a.safetensors"})
    refused(
        repcap("measure", "."),
        "the index places tensor 'model.embed_tokens.weight' in a.safetensors, but neither it nor another shard holds "
        "it: measure another tensor, or take the checkpoint from elsewhere",
    )


def test_index_lists_a_shard_that_is_not_there(repcap, folder, table) -> None:
    save_file({EMBED: table}, folder / "a.safetensors")
    write_index(folder, {EMBED: "a.safetensors", UP: "b.safetensors"})
    assert repcap("measure", ".").code == 0
    refused(repcap("measure", ".", "--matrix", UP), "b.safetensors is missing: the index names it; fetch that shard")


def test_index_points_out_of_its_directory(repcap, folder, table) -> None:
    write_index(folder, {EMBED: "../elsewhere.safetensors"})
    refused(
        repcap("measure", "."),
        "model.safetensors.index.json places tensor 'model.embed_tokens.weight' in '../elsewhere.safetensors', outside "
        "its own directory: do not use this checkpoint",
    )


@pytest.mark.parametrize("name", ["model.safetensors", "model.gguf", "pytorch_model.bin", "x.npy"])
def test_lfs_pointer(name, repcap, folder) -> None:
    (folder / name).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:abc\nsize 1234567\n")
    refused(
        repcap("measure", name),
        f"{name} is a git-lfs pointer, not the file itself: run `git lfs pull` in its repository, or download the file",
    )


def test_lfs_pointer_in_a_directory(repcap, folder) -> None:
    (folder / "model.safetensors").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:abc\nsize 12\n")
    outcome = repcap("measure", ".")
    assert outcome.code == 2
    assert "model.safetensors is a git-lfs pointer" in outcome.err


def test_truncated_shard_whose_embedding_is_whole(repcap, folder, table) -> None:
    save_file({EMBED: table, UP: torch.ones(90, 8)}, folder / "m.safetensors")
    whole = (folder / "m.safetensors").read_bytes()
    (folder / "m.safetensors").write_bytes(whole[:-8])
    refused(
        repcap("measure", "m.safetensors"),
        f"m.safetensors is truncated: {len(whole) - 8} bytes of {len(whole)}; fetch it again, or pass "
        "--allow-truncated to read the tensors that are whole",
    )
    outcome = repcap("measure", "m.safetensors", "--allow-truncated", "--json")
    assert outcome.code == 0
    assert outcome.json["epsilon"] == pytest.approx(epsilon64(table), abs=1e-6)


def test_truncated_where_it_is_wanted(repcap, folder, table) -> None:
    save_file({EMBED: table}, folder / "m.safetensors")
    whole = (folder / "m.safetensors").read_bytes()
    (folder / "m.safetensors").write_bytes(whole[:-8])
    start = len(whole) - table.numel() * 4
    refused(
        repcap("measure", "m.safetensors", "--allow-truncated"),
        f"m.safetensors: tensor 'model.embed_tokens.weight' lies beyond the end of the truncated file (bytes {start} "
        f"to {len(whole)} of {len(whole) - 8}): fetch it again",
    )


def test_tied_model_without_a_head(repcap, folder, table) -> None:
    save_file({EMBED: table}, folder / "model.safetensors")
    outcome = repcap("measure", ".", "--matrix", "unembedding", "--json")
    assert outcome.code == 0
    assert (outcome.json["tied"], outcome.json["count"]) == (True, 60)
    assert outcome.json["epsilon"] == pytest.approx(epsilon64(table), abs=1e-6)


def test_tied_gguf(repcap, folder, gguf_file, table) -> None:
    path = gguf_file({"token_embd.weight": table.numpy()})
    for matrix in ("embedding", "unembedding"):
        outcome = repcap("measure", path, "--matrix", matrix, "--json")
        assert (outcome.code, outcome.json["tied"]) == (0, True)
        assert outcome.json["epsilon"] == pytest.approx(epsilon64(table), abs=1e-6)


def test_zero_and_non_finite_rows(repcap, folder, table) -> None:
    dirty = table.clone()
    dirty[3], dirty[10, 2], dirty[59, 0] = 0, float("nan"), float("inf")
    save_file({EMBED: dirty}, folder / "model.safetensors")
    record = repcap("measure", ".", "--json").json
    assert (record["count"], record["dropped_count"]) == (57, 3)
    assert [item["index"] for item in record["dropped"]] == [3, 10, 59]
    kept = [index for index in range(60) if index not in (3, 10, 59)]
    assert record["epsilon"] == pytest.approx(epsilon64(table[kept]), abs=1e-6)


def test_tiny_and_all_negative_rows_are_directions(repcap, folder, table) -> None:
    scaled = table.double() * torch.logspace(-30, 0, 60, dtype=torch.float64)[:, None]
    scaled[5] = -scaled[5].abs()
    save_file({EMBED: scaled.float()}, folder / "model.safetensors")
    record = repcap("measure", ".", "--json").json
    assert (record["count"], record["dropped_count"]) == (60, 0)
    assert record["epsilon"] == pytest.approx(epsilon64(scaled.float()), abs=1e-6)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64])
def test_each_precision_agrees_with_float64(dtype, repcap, folder, table) -> None:
    save_file({EMBED: table.to(dtype)}, folder / "model.safetensors")
    record = repcap("measure", ".", "--json").json
    assert record["dtype"] == str(dtype).removeprefix("torch.")
    assert record["epsilon"] == pytest.approx(epsilon64(table.to(dtype)), abs=1e-5)


def test_dictionary_with_bad_rows_and_any_norms(repcap, folder, table) -> None:
    folded = table * torch.linspace(0.1, 9, 60)[:, None]
    folded[7], folded[8, 0] = 0, float("nan")
    save_file({"W_dec": folded, "b_enc": torch.zeros(60)}, folder / "sae_weights.safetensors")
    record = repcap("measure", ".", "--json").json
    assert (record["matrix"], record["count"], record["dropped_count"]) == ("W_dec", 58, 2)
    kept = [index for index in range(60) if index not in (7, 8)]
    assert record["epsilon"] == pytest.approx(epsilon64(table[kept]), abs=1e-6)


def test_pickle_that_runs_code(repcap, folder) -> None:
    import os

    class Runs:
        def __reduce__(self):
            return os.mkdir, (str(folder / "it-ran"),)

    torch.save({"model.embed_tokens.weight": Runs()}, folder / "pytorch_model.bin")
    refused(
        repcap("measure", "pytorch_model.bin"),
        f"pytorch_model.bin is a pickle that asks for {os.mkdir.__module__}.mkdir to be called; repcap runs no code "
        "from files: use a safetensors copy, or save model.state_dict() alone",
    )
    assert not (folder / "it-ran").exists()


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((2, 3, 4), "x.npy has 3 dimensions (2 x 3 x 4): give a matrix, one vector a row"),
        ((2, 3), "x.npy is complex (complex128): cosines are defined for real rows; give real and imaginary parts"),
    ],
)
def test_no_matrix_of_real_numbers(shape, message, repcap, folder) -> None:
    np.save(folder / "x.npy", np.zeros(shape, complex if len(shape) == 2 else float))
    refused(repcap("measure", "x.npy"), message)


@pytest.mark.parametrize("rows", [0, 1])
def test_too_few_rows(rows, repcap, folder) -> None:
    np.save(folder / "x.npy", np.ones((rows, 3)))
    outcome = repcap("measure", "x.npy")
    assert outcome.code == 2
    assert outcome.err.startswith("repcap: error: ")
    assert outcome.err.count("\n") == 1


def test_packed_weights(repcap, folder) -> None:
    save_file({"model.embed_tokens.qweight": torch.zeros(8, 4, dtype=torch.int32)}, folder / "model.safetensors")
    refused(
        repcap("measure", "model.safetensors"),
        "model.safetensors: model.embed_tokens.qweight is packed (GPTQ or AWQ, int32 8 x 4): its bytes are no "
        "directions; use an unquantised or a GGUF copy of the model",
    )


def test_unknown_names(repcap, folder) -> None:
    save_file({"vocab.table": torch.zeros(40, 4), "square": torch.zeros(4, 4)}, folder / "m.safetensors")
    refused(
        repcap("measure", "m.safetensors"),
        "m.safetensors has no embedding under a known name; 2-d tensors of a vocabulary-like shape: vocab.table "
        "(40 x 4); pick one with --matrix NAME",
    )


@pytest.mark.parametrize("verb", ["measure", "inspect"])
def test_a_directory_with_the_name_of_a_file(verb, repcap, folder) -> None:
    (folder / "model.safetensors").mkdir()
    outcome = repcap(verb, "model.safetensors")
    assert (outcome.code, outcome.out) == (2, "")
    assert "model.safetensors holds no weights that repcap reads" in outcome.err
