"""GGUF on the Hub by ranges; pickles whole, and only where that is allowed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from hubserver import HubServer
from repcap.errors import RemoteError, SourceError
from repcap.sources import inspect_source, open_source

FIRST, SECOND, THIRD = (f"model-0000{part}-of-00003.safetensors" for part in (1, 2, 3))


def header_bytes(content: bytes | Path) -> int:
    """Length prefix and header of a safetensors file."""
    assert isinstance(content, bytes)
    return 8 + int.from_bytes(content[:8], "little")


def rows_of(source: str, **options: Any) -> torch.Tensor:
    with open_source(source, **options) as matrix:
        return matrix.read(0, matrix.count)


def weights_sent(hub: HubServer) -> int:
    return sum(request.sent for request in hub.asked("store"))


# GGUF and pickles


def gguf(tmp_path: Path, vocabulary: int = 3000, dim: int = 64) -> tuple[bytes, np.ndarray]:
    """(file, embedding as dequantised) of a GGUF with Q8_0 rows and a vocabulary."""
    from gguf import GGMLQuantizationType, GGUFWriter
    from gguf.quants import dequantize, quantize

    rng = np.random.default_rng(5)
    stored = quantize(rng.standard_normal((vocabulary, dim), dtype=np.float32), GGMLQuantizationType.Q8_0)
    path = tmp_path / "made.gguf"
    writer = GGUFWriter(path, "llama")
    writer.add_token_list([f"token-number-{i}" for i in range(vocabulary)])
    writer.add_tokenizer_model("gpt2")
    writer.add_tensor("token_embd.weight", stored, raw_dtype=GGMLQuantizationType.Q8_0)
    writer.add_tensor("blk.0.ffn_up.weight", np.zeros((1024, 1024), dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path.read_bytes(), dequantize(stored, GGMLQuantizationType.Q8_0)


@pytest.mark.parametrize("vocabulary", [300, 40_000])  # the header fits into the first piece, and does not
def test_gguf_by_ranges(hub: HubServer, tmp_path: Path, vocabulary: int) -> None:
    content, wanted = gguf(tmp_path, vocabulary, 32)
    hub.add("org/gguf", {"model-q8_0.gguf": content})
    with open_source("org/gguf") as matrix:
        assert (matrix.info.dtype, matrix.info.role, matrix.info.tied) == ("Q8_0", "embedding", True)
        assert np.array_equal(matrix.read(0, matrix.count).numpy(), wanted)
        assert matrix.tokens is not None
        assert matrix.tokens.text(7) == "token-number-7"
        stored = matrix.bytes_read
    assert stored == vocabulary * 34
    assert weights_sent(hub) <= stored + max(1 << 19, 2 * 25 * vocabulary)
    assert weights_sent(hub) < len(content) // 2
    hub.forget()
    with open_source("org/gguf") as matrix:
        assert np.array_equal(matrix.read(0, matrix.count).numpy(), wanted)
        assert matrix.tokens is not None
    assert not hub.asked("store")


def test_gguf_in_parts(hub: HubServer, tmp_path: Path) -> None:
    from gguf import GGUFWriter

    rng = np.random.default_rng(5)
    tensors = {f"{name}.weight": rng.standard_normal((400, 32), dtype=np.float32) for name in ("output", "token_embd")}
    writer = GGUFWriter(tmp_path / "made.gguf", "llama", split_max_tensors=1)
    for name, rows in tensors.items():
        writer.add_tensor(name, rows)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    parts: dict[str, bytes | Path] = {path.name: path.read_bytes() for path in tmp_path.glob("made-*.gguf")}
    assert len(parts) == 2
    hub.add("org/parts", parts)
    with open_source("org/parts") as matrix:
        assert np.array_equal(matrix.read(0, 400).numpy(), tensors["token_embd.weight"])
        assert matrix.info.tied is False
    assert np.array_equal(rows_of("org/parts", matrix="unembedding").numpy(), tensors["output.weight"])
    del hub.repos["org/parts"].commits[hub.repos["org/parts"].refs["main"]][max(parts)]
    hub.add("org/lacking", {min(parts): parts[min(parts)]})
    assert any("parts are missing" in warning for warning in inspect_source("org/lacking").warnings)


def test_several_gguf_files_are_a_choice_for_the_user(hub: HubServer, tmp_path: Path) -> None:
    content, wanted = gguf(tmp_path)
    hub.add("org/gguf", {"m-Q4_0.gguf": content, "m-Q8_0.gguf": content})
    with pytest.raises(SourceError, match=r"2 gguf files \(m-Q4_0.gguf, m-Q8_0.gguf\): name one"):
        open_source("org/gguf")
    assert np.array_equal(rows_of("hf://org/gguf/m-Q8_0.gguf").numpy(), wanted)


def test_gguf_that_is_cut_short(hub: HubServer, tmp_path: Path) -> None:
    content, wanted = gguf(tmp_path)
    hub.add("org/gguf", {"m.gguf": content[:-1000]})
    with pytest.raises(SourceError, match="truncated"):
        open_source("org/gguf")
    assert np.array_equal(rows_of("org/gguf", allow_truncated=True).numpy(), wanted)
    hub.add("org/short", {"m.gguf": content[:3000]})
    with pytest.raises(SourceError, match="truncated inside its header"):
        open_source("org/short")


def pickled(tmp_path: Path, tensors: dict[str, torch.Tensor]) -> bytes:
    path = tmp_path / "made.bin"
    torch.save(tensors, path, _use_new_zipfile_serialization=False)  # newer ones are read by ranges
    return path.read_bytes()


def test_pickles_only_where_allowed(hub: HubServer, tmp_path: Path) -> None:
    embedding = torch.randn(100, 8)
    content = pickled(tmp_path, {"model.embed_tokens.weight": embedding, "x": torch.zeros(1_000_000)})
    commit = hub.add("org/old", {"pytorch_model.bin": content, "config.json": b'{"tie_word_embeddings": true}'})
    with pytest.raises(RemoteError, match=r"would download 4 MB: pass --allow-full-download"):
        open_source("org/old")
    assert weights_sent(hub) < 100
    calls: list[tuple[int, int]] = []
    with open_source(
        "org/old", allow_full_download=True, on_progress=lambda done, total: calls.append((done, total))
    ) as matrix:
        assert torch.equal(matrix.read(0, matrix.count), embedding)
        assert matrix.info.revision == commit
    assert calls[-1] == (len(content), len(content))
    assert torch.equal(rows_of("org/old"), embedding)  # it is in the cache now


def test_sharded_pickles_download_the_shard_that_holds_it(hub: HubServer, tmp_path: Path) -> None:
    embedding = torch.randn(100, 8)
    files: dict[str, bytes | Path] = {
        "pytorch_model-00001-of-00002.bin": pickled(tmp_path, {"model.embed_tokens.weight": embedding}),
        "pytorch_model-00002-of-00002.bin": pickled(tmp_path, {"model.norm.weight": torch.zeros(8)}),
    }
    index = {
        "model.embed_tokens.weight": "pytorch_model-00001-of-00002.bin",
        "model.norm.weight": "pytorch_model-00002-of-00002.bin",
    }
    files["pytorch_model.bin.index.json"] = json.dumps({"weight_map": index}).encode()
    hub.add("org/old", files)
    with pytest.raises(RemoteError, match="--allow-full-download"):
        open_source("org/old")
    assert torch.equal(rows_of("org/old", allow_full_download=True), embedding)
    assert sum(request.sent for request in hub.asked(path="pytorch_model-00002-of-00002.bin")) < 100
