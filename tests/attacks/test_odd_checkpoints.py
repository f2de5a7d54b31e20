"""Checkpoints that are whole, and are not what they seem: never a wrong verdict with exit code 0, never a traceback."""

from __future__ import annotations

import json
import os
import re
import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from repcap.errors import MatrixNotFound, SourceError
from repcap.sources import inspect_source, open_source

EMBED, HEAD = "model.embed_tokens.weight", "lm_head.weight"
STEM = EMBED.removesuffix(".weight")
FIRST, SECOND = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
FP8 = torch.float8_e4m3fn
BLOCKS = {"quantization_config": {"weight_block_size": [32, 8]}}


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(tensors, name: str = "model.safetensors", **config) -> None:
    save_file({key: value.contiguous() for key, value in tensors.items()}, name)
    if config:
        Path("config.json").write_text(json.dumps(config))


def index(**where: str) -> None:
    Path("model.safetensors.index.json").write_text(json.dumps({"weight_map": where}))


class TestShards:
    def test_one_name_in_two_shards(self) -> None:
        write({EMBED: normal(64, 16)}, FIRST)
        write({EMBED: normal(60, 16), "a": normal(2, 2)}, SECOND)
        info = open_source(".").info
        assert info.warnings == (f"{EMBED} is in {FIRST} and {SECOND}: that of {FIRST} is read",)
        index(**{EMBED: SECOND, "a": FIRST})
        info = open_source(".").info
        assert (info.count, info.warnings) == (60, (f"{EMBED} is in {FIRST} and {SECOND}: that of {SECOND} is read",))

    def test_a_shard_with_no_rows_of_it(self) -> None:
        write({EMBED: normal(0, 16)}, FIRST)
        write({EMBED: normal(64, 16)}, SECOND)
        with open_source(".") as matrix:
            assert torch.equal(matrix.read(0, 64), normal(64, 16))
        assert matrix.info.warnings == (f"{EMBED} is in {FIRST} and {SECOND}: that of {SECOND} is read",)

    @pytest.mark.parametrize(("other", "missing"), [("00005", True), ("00002", False), ("00000", False)])
    def test_numbers_that_are_none_of_the_set(self, other, missing) -> None:
        write({EMBED: normal(64, 16)}, FIRST)
        write({"a": normal(2, 2)}, f"model-{other}-of-00002.safetensors")
        info = open_source(".").info
        assert (info.tied, info.warnings) == ((None, ("1 of 2 shards are missing",)) if missing else (True, ()))

    def test_an_index_that_writes_paths(self) -> None:
        write({EMBED: normal(64, 16)}, "a.safetensors")
        index(**{EMBED: "./a.safetensors"})
        assert open_source(".").info.warnings == ()

    def test_a_shard_that_is_a_directory(self) -> None:
        Path("a.safetensors").mkdir()
        index(**{EMBED: "a.safetensors"})
        with pytest.raises(SourceError, match=r"^a\.safetensors is no regular file: give the weights themselves$"):
            open_source(".")

    def test_pickles_in_an_index_of_safetensors(self) -> None:
        torch.save({EMBED: normal(64, 16)}, "pytorch_model.bin")
        index(**{EMBED: "pytorch_model.bin"})
        with pytest.raises(SourceError, match=r"^pytorch_model\.bin is not a safetensors file"):
            open_source(".")


class TestTurnedRound:
    @pytest.mark.parametrize("tied", [True, False])
    def test_a_head_of_one_token_a_column(self, tied) -> None:
        table = normal(64, 16)
        write({EMBED: table, HEAD: table.T if tied else normal(16, 64)}, tie_word_embeddings=tied)
        said = f"{HEAD} is 16 x 64, the embedding 64 x 16: it is read as one token a column"
        with open_source(".", "unembedding") as matrix:
            assert (matrix.info.tied, matrix.info.warnings) == (tied, (said,))
            assert torch.equal(matrix.read(0, 64), table if tied else normal(16, 64).T)

    def test_an_embedding_of_one_token_a_column(self) -> None:
        write({EMBED: normal(16, 64)}, vocab_size=64, hidden_size=16)
        with open_source(".") as matrix:
            assert torch.equal(matrix.read(0, 64), normal(16, 64).T)
        assert matrix.info.warnings == (
            f"{EMBED} is 16 x 64, and the config says hidden_size = 16 and vocab_size = 64: it is read as one token a "
            "column",
        )

    def test_a_square_one_is_left_alone(self) -> None:
        write({EMBED: normal(16, 16), HEAD: normal(16, 16).T}, vocab_size=16, hidden_size=16)
        assert open_source(".", "unembedding").info.warnings == ()


class TestScales:
    def test_blocks_without_scales(self) -> None:
        write({EMBED: normal(64, 16).to(FP8)}, **BLOCKS)
        said = r"is float8_e4m3fn, its config speaks of scales for blocks of 32 x 8, and none is beside it: fetch the"
        with pytest.raises(SourceError, match=said):
            open_source(".")

    @pytest.mark.parametrize("dtype", [FP8, torch.int8, torch.uint8])
    def test_no_scale_is_said(self, dtype) -> None:
        write({EMBED: (20 * normal(64, 16)).to(dtype)})
        name = str(dtype).removeprefix("torch.")
        said = (f"{EMBED} is {name} and no scale is beside it: it is measured as it is stored",)
        assert open_source(".").info.warnings == said

    def test_scales_in_a_shard_that_is_missing(self) -> None:
        write({EMBED: normal(64, 16).to(FP8)}, "a.safetensors")
        index(**{EMBED: "a.safetensors", f"{STEM}.weight_scale_inv": "b.safetensors"})
        with pytest.raises(SourceError, match=r"^b\.safetensors is missing"):
            open_source(".")

    def test_scales_that_are_no_numbers(self, repcap) -> None:
        write({EMBED: normal(64, 16).to(FP8), f"{STEM}.weight_scale": torch.full((1,), float("nan"))})
        outcome = repcap("measure", ".")
        assert (outcome.code, outcome.err.count("\n")) == (2, 1)
        assert "64 non-finite left out" in outcome.err


class TestForms:
    @pytest.mark.parametrize("part", ["parametrizations.weight.original1", "weight_v", "trellis"])
    def test_a_head_in_another_form_is_not_missing(self, part) -> None:
        write({EMBED: normal(64, 16), f"lm_head.{part}": normal(64, 16)})
        assert open_source(".").info.tied is None
        with pytest.raises((MatrixNotFound, SourceError), match=r"in a form that is not read|is packed"):
            open_source(".", "unembedding")

    @pytest.mark.parametrize("part", ["parametrizations.weight.original1", "weight_v"])
    def test_an_embedding_in_another_form_is_not_missing(self, part) -> None:
        write({f"{STEM}.{part}": normal(64, 16), HEAD: normal(64, 16)})
        with pytest.raises(MatrixNotFound, match=r"^\.: an embedding is there in a form that is not read \(model\.emb"):
            open_source(".")
        assert open_source(".", "unembedding").info.name == HEAD

    @pytest.mark.parametrize("others", [("policy.", "reference."), ("", "module."), ("ema.", "student.")])
    def test_two_models_in_one_file(self, others) -> None:
        write({f"{prefix}{EMBED}": normal(64, 16) + place for place, prefix in enumerate(others)})
        one, other = (f"{prefix}{EMBED}" for prefix in others)
        assert open_source(".").info.warnings == (f"{other} could be the embedding, too: {one} is taken",)
        assert open_source(f"model.safetensors::{other}").count == 64

    def test_a_part_of_the_vocabulary(self) -> None:
        write({EMBED: normal(64, 16)}, text_config={"vocab_size": 128})
        said = ("the config says vocab_size = 128, the matrix has 64 rows: it may be a part of one",)
        assert (open_source(".").info.warnings, inspect_source(".").warnings) == (said, said)


def test_a_mapping_to_no_rows() -> None:
    Path("vocab.json").write_text(json.dumps({f"t{place}": place for place in range(3)}))
    write({"embeddings": normal(4, 16), "mapping": torch.tensor([-1, 1, 1 << 40])})
    matrix = open_source(".")
    assert matrix.tokens is None
    assert matrix.info.warnings == (f"no token texts: mapping names rows from -1 to {1 << 40}",)


class TestAdapters:
    FACTS = "adapter_config.json"

    def test_what_was_trained_of_a_prompt_is_no_model(self) -> None:
        write({"prompt_embeddings": normal(20, 16)}, "adapter_model.safetensors")
        Path(self.FACTS).write_text('{"base_model_name_or_path": "org/base", "peft_type": "PROMPT_TUNING"}')
        with pytest.raises(MatrixNotFound, match=r"^\. holds the parts of an adapter for org/base and no weights of"):
            open_source(".")
        assert open_source(".", "prompt_embeddings").count == 20

    def test_a_trained_embedding_says_nothing_of_the_head(self) -> None:
        name = f"base_model.model.{STEM}.modules_to_save.default.weight"
        write({name: normal(64, 16)}, "adapter_model.safetensors")
        info = open_source(".").info
        assert (info.name, info.tied) == (name, None)
        assert info.evidence == "an adapter holds only what was trained; the config does not say"

    def test_an_adapter_over_an_adapter(self) -> None:
        name = f"base_model.model.base_model.model.{STEM}.base_layer.base_layer.weight"
        write({name: normal(64, 16), f"base_model.model.base_model.model.{STEM}.lora_embedding_A": normal(4, 64)})
        assert open_source(".").info.name == name

    def test_its_base_cannot_forge_a_line(self, repcap) -> None:
        write({f"base_model.model.q.lora_{x}.weight": normal(4, 16) for x in "AB"}, "adapter_model.safetensors")
        Path(self.FACTS).write_text(json.dumps({"base_model_name_or_path": "x\x1b[2J\nrepcap: fine"}))
        outcome = repcap("measure", ".")
        assert (outcome.code, outcome.err.count("\n")) == (2, 1)
        assert "\x1b" not in outcome.err


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def gguf(name="m.gguf", pairs=(), tensors=(("token_embd.weight", 64, 0),), align=32) -> None:
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(pairs))
    head += b"".join(text(key) + struct.pack("<II", 4, value) for key, value in pairs)
    for tensor, rows, at in tensors:
        head += text(tensor) + struct.pack("<IQQIQ", 2, 16, rows, 0, at)
    Path(name).write_bytes(head + bytes(-len(head) % align) + bytes(1 << 14))


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ({"pairs": [("general.alignment", 64)], "tensors": [("token_embd.weight", 64, 32)]}, "no multiple of its alig"),
        ({"pairs": [("general.alignment", 7)], "align": 7}, r"damaged header \(alignment 7\)"),
        ({"pairs": [("a", 1), ("a", 2)]}, r"damaged header \('a' occurs twice\)"),
        (
            {"tensors": [("token_embd.weight", 64, 0), ("output.weight", 64, 32)]},
            "'output.weight' overlap: the file is",
        ),
        ({"tensors": [("a", 64, 0), ("a", 64, 4096)]}, r"tensor 'a' occurs twice"),
    ],
)
def test_gguf_that_contradicts_itself(made, said) -> None:
    gguf(**made)
    with pytest.raises(SourceError, match=said):
        open_source("m.gguf")


def test_one_name_in_two_parts_of_gguf() -> None:
    for part, rows in ((1, 64), (2, 32)):
        gguf(f"m-0000{part}-of-00002.gguf", tensors=[("token_embd.weight", rows, 0)])
    with pytest.raises(SourceError, match=r"'token_embd\.weight' is in m-00001-of-00002\.gguf and in m-00002-of-00002"):
        open_source("m-00001-of-00002.gguf")


def test_one_name_twice_in_npz_and_onnx() -> None:
    import zipfile
    from io import BytesIO

    body = BytesIO()
    np.save(body, np.ones((3, 2)))
    with zipfile.ZipFile("a.npz", "w") as archive:
        archive.writestr("w.npy", body.getvalue())
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("w.npy", body.getvalue())
    with pytest.raises(SourceError, match=r"a\.npz is not a readable \.npz file \('w' occurs twice\)"):
        open_source("a.npz")
    tensor = b"\x08\x02\x08\x02\x10\x01\x42\x01w\x4a\x10" + bytes(16)
    graph = 2 * (b"\x2a" + bytes([len(tensor)]) + tensor)
    Path("a.onnx").write_bytes(b"\x3a" + bytes([len(graph)]) + graph)
    with pytest.raises(SourceError, match=r"a\.onnx is no readable ONNX file \('w' occurs twice\)"):
        open_source("a.onnx")


def test_a_stray_file_is_not_the_model() -> None:
    """`pytorch_model.bin` is what libraries load, whatever else lies beside it; `model.safetensors` goes before it."""
    torch.save({EMBED: normal(64, 16)}, "pytorch_model.bin")
    write({"emb": normal(64, 16)}, "learned_embeds.safetensors")
    assert open_source(".").info.name == EMBED
    write({HEAD: normal(64, 16)})
    assert open_source(".").info.name == HEAD


def test_names_that_go_in_circles(repcap) -> None:
    for one, other in (("a", "b"), ("b", "a"), ("config.json", "config.json"), ("tokenizer.json", "vocab.json")):
        Path(one).symlink_to(other)
    outcome = repcap("measure", "a")
    assert (outcome.code, outcome.err) == (
        2,
        "repcap: error: a is a link to b, which is not there: fetch the file again\n",
    )
    write({EMBED: normal(64, 16)})
    assert open_source(".").info.warnings == ("config.json is a link to config.json, which is not there",)


def test_side_files_that_are_none(repcap) -> None:
    write({EMBED: normal(64, 16)})
    for name in ("config.json", "tokenizer.json", "vocab.json", "model.safetensors.index.json"):
        Path(name).mkdir()
    assert open_source(".").info.warnings == ()
    for name in ("config.json", "tokenizer.json"):
        Path(name).rmdir()
        Path(name).write_text("")
    config, tokens = inspect_source(".").warnings
    assert config.startswith("config.json cannot be read (Expecting value")
    assert tokens.startswith("no token texts: tokenizer.json is no readable tokenizer (Expecting value")


def test_a_config_of_no_numbers(repcap) -> None:
    write({EMBED: normal(64, 16)})
    numbers = '"vocab_size": NaN, "hidden_size": Infinity, "tie_word_embeddings": NaN, "n_embd": ' + "9" * 4000
    Path("config.json").write_text("{" + numbers + ', "model_type": "\\u001b[2Jx\\ny"}')
    outcome = repcap("inspect", ".")
    assert outcome.code == 0
    assert "\x1b" not in outcome.out
    assert max(map(len, outcome.out.splitlines())) < 320
    record = json.loads(repcap("inspect", ".", "--json").out, parse_constant=pytest.fail)
    assert (record["vocab_size"], record["tied"]) == (None, True)


@pytest.mark.skipif(not hasattr(os, "fork") or os.geteuid() != 0, reason="needs a user who may not read")
def test_files_that_may_not_be_read(here) -> None:
    """Root reads everything, so a child gives its rights away."""
    write({EMBED: normal(64, 16)})
    Path("model.safetensors").chmod(0)
    here.chmod(0o755)
    read, written = os.pipe()
    child = os.fork()
    if child == 0:
        os.setuid(65534)
        try:
            open_source(".")
        except SourceError as error:
            os.write(written, str(error).encode())
        finally:
            os._exit(0)
    os.close(written)
    os.waitpid(child, 0)
    assert os.read(read, 1000).decode() == "model.safetensors cannot be read: permission denied"


def test_the_list_of_reports_names_tests_that_are_there() -> None:
    attacks = Path(__file__).parent
    named = re.findall(r"`((?:tests/)?[\w/]*test_\w+)`", (attacks / "README.md").read_text())
    roots = (attacks, attacks.parent / "sources", attacks.parents[1])
    assert len(named) > 30
    assert [name for name in named if not any((root / f"{name}.py").is_file() for root in roots)] == []
