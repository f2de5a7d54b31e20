"""What is there, what is missing, what is the same: sources that used to be read wrongly with exit code 0.

Each is modelled on a public report. Messages are compared whole.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from hubmade import shard
from hubserver import HubServer
from repcap.errors import MatrixNotFound, SourceError
from repcap.sources import inspect_source, open_source

EMBED, HEAD, UP = "model.embed_tokens.weight", "lm_head.weight", "model.layers.0.mlp.up_proj.weight"
SHARD = "model-00001-of-00001.safetensors"


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    """The current directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(tensors, name: str = "model.safetensors", **config) -> None:
    save_file(tensors, name)
    if config:
        Path("config.json").write_text(json.dumps(config))


def index(**where: str) -> None:
    Path("model.safetensors.index.json").write_text(json.dumps({"weight_map": where}))


def refused(outcome, message: str) -> None:
    assert (outcome.code, outcome.out, outcome.err) == (2, "", f"repcap: error: {message}\n")


class TestEmptyTensors:
    @pytest.mark.parametrize(("shape", "said"), [((0, 16), "0 x 16"), ((0,), "(0,)")])
    def test_an_empty_head_is_none(self, shape, said, here, repcap) -> None:
        write({EMBED: normal(64, 16), HEAD: torch.zeros(shape)}, tie_word_embeddings=True)
        found = repcap("measure", ".", "--matrix", "both", "--json").json
        assert (found["matrix"], found["tied"]) == (EMBED, True)
        assert found["warnings"] == [f"{HEAD} is empty ({said}): it is no unembedding"]

    def test_a_config_that_says_untied_is_contradicted(self, here) -> None:
        write({EMBED: normal(64, 16), HEAD: torch.zeros(0, 16)}, tie_word_embeddings=False)
        info = open_source(".").info
        assert info.tied is True
        assert info.warnings[1].startswith("the config says tie_word_embeddings = false, but there is no unembedding")


class TestTheHeadOnly:
    @pytest.mark.parametrize("asked", ["embedding", "unembedding"])
    def test_it_is_measured(self, asked, here) -> None:
        write({HEAD: normal(64, 16), UP: normal(128, 16)}, vocab_size=64, tie_word_embeddings=True)
        info = open_source(".", asked).info
        assert (info.name, info.role, info.tied) == (HEAD, "unembedding", None)
        assert info.evidence == f"{HEAD} is an unembedding by its name"
        said = (f"the source holds no embedding: its unembedding {HEAD} is measured",)
        assert info.warnings == (said if asked == "embedding" else ())

    def test_in_one_shard_of_several_it_does_not_stand_in(self, here, repcap) -> None:
        write({HEAD: normal(64, 16)}, "model-00002-of-00002.safetensors")
        refused(
            repcap("measure", "."),
            ".: 1 of 2 shards are missing, and none here holds the embedding; the unembedding lm_head.weight is here: "
            "--matrix unembedding; fetch the whole checkpoint, or name a tensor with --matrix",
        )
        assert repcap("measure", ".", "--matrix", "unembedding", "--json").json["matrix"] == HEAD

    def test_a_tensor_that_only_the_index_knows(self, here) -> None:
        write({HEAD: normal(64, 16)}, SHARD)
        index(**{HEAD: SHARD, "transformer.wte.weight": SHARD})
        assert open_source(".").info.warnings == (
            "the index names transformer.wte.weight, but no file holds it",
            f"the source holds no embedding: its unembedding {HEAD} is measured",
        )

    def test_the_same_on_the_hub(self, hub: HubServer) -> None:
        where = {"weight_map": {HEAD: SHARD, "transformer.wte.weight": SHARD}}
        files = {SHARD: shard({HEAD: normal(64, 16)}), "model.safetensors.index.json": json.dumps(where).encode()}
        hub.add("org/model", files)
        info = open_source("org/model").info
        assert (info.name, info.role) == (HEAD, "unembedding")
        assert info.warnings[0] == "the index names transformer.wte.weight, but no file holds it"


class TestPackedHeads:
    @pytest.mark.parametrize(
        ("part", "kind"),
        [
            ("lm_head.trellis", "EXL3"),
            ("lm_head.q_weight", "EXL2"),
            ("lm_head._weight_qdata", "torchao"),
            ("lm_head.codes", "AQLM"),
        ],
    )
    def test_a_known_form(self, part, kind, here, repcap) -> None:
        write({EMBED: normal(64, 16), part: torch.zeros(1, 4, 96, dtype=torch.int16)}, tie_word_embeddings=True)
        refused(
            repcap("measure", ".", "--matrix", "unembedding"),
            f".: {part} is packed ({kind}, int16 1 x 4 x 96): its bytes are no directions; use an unquantised or a "
            "GGUF copy of the model",
        )
        assert repcap("measure", ".", "--json").json["tied"] is None

    @pytest.mark.parametrize("part", ["lm_head.weight._new_form", "lm_head.suh", "wrapped.lm_head.bits"])
    def test_any_part_of_a_head_proves_that_it_exists(self, part, here) -> None:
        write({EMBED: normal(64, 16), part: torch.ones(16)}, tie_word_embeddings=True)
        reason = f"an unembedding is there in a form that is not read ({part})"
        info = open_source(".").info
        assert (info.tied, info.warnings) == (None, (reason,))
        with pytest.raises(MatrixNotFound, match="holds no unembedding: an unembedding is there in a form that is not"):
            open_source(".", "unembedding")

    @pytest.mark.parametrize(
        "part", ["lm_head.bias", "lm_head.dense.weight", "lm_head.layer_norm.weight", "lm_head.lora_A.weight"]
    )
    def test_what_is_no_part_of_its_weight_proves_nothing(self, part, here) -> None:
        write({EMBED: normal(64, 16), part: torch.ones(16)})
        assert open_source(".").info.tied is True


class TestSeveralSets:
    def test_the_index_wins(self, here, repcap) -> None:
        write({EMBED: normal(64, 16)}, SHARD)
        write({EMBED: normal(64, 16) + 2})
        index(**{EMBED: SHARD})
        outcome = repcap("measure", ".", "--json")
        warning = "model.safetensors.index.json is read; other weights beside it are not: model.safetensors"
        assert outcome.json["warnings"] == [warning]
        assert outcome.json["epsilon"] < 1.0

    def test_without_an_index_one_has_to_be_named(self, here, repcap) -> None:
        write({EMBED: normal(64, 16)}, SHARD)
        write({EMBED: normal(64, 16) + 2})
        refused(
            repcap("measure", "."),
            f". holds 2 safetensors files ({SHARD}, model.safetensors): name one, ./{SHARD}",
        )

    def test_the_same_on_the_hub(self, hub: HubServer) -> None:
        one, other = shard({EMBED: normal(64, 16)}), shard({EMBED: normal(64, 16) + 2})
        hub.add("org/model", {SHARD: one, "model.safetensors": other})
        with pytest.raises(
            SourceError, match=r"^hf://org/model holds 2 safetensors files .*name one, hf://org/model/m"
        ):
            open_source("org/model")
        where = json.dumps({"weight_map": {EMBED: SHARD}}).encode()
        hub.add("org/index", {SHARD: one, "model.safetensors": other, "model.safetensors.index.json": where})
        assert open_source("org/index").info.warnings == (
            "model.safetensors.index.json is read; other weights beside it are not: model.safetensors",
        )

    def test_an_adapter_is_no_second_set(self, here) -> None:
        write({EMBED: normal(64, 16)})
        write({"a": normal(4, 4)}, "adapter_model.safetensors")
        assert open_source(".").info.warnings == ()


class TestTokenizers:
    def test_an_added_token_is_text_as_it_stands(self, here, repcap) -> None:
        write({EMBED: normal(64, 16)})
        coding = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
        vocab = {"Ġcat": 0, "Ċ": 1, "cafÃ©": 2, **{f"t{i}": i for i in range(3, 63)}}
        added = [{"id": 63, "content": "naïve", "special": False}]
        model = {"type": "BPE", "vocab": vocab, "merges": []}
        made = {"version": "1.0", "added_tokens": added, "decoder": coding, "pre_tokenizer": coding, "model": model}
        Path("tokenizer.json").write_text(json.dumps(made))
        tokens = open_source(".").tokens
        assert [tokens.text(row) for row in (0, 1, 2, 63)] == [" cat", "\n", "café", "naïve"]
        found = repcap("neighbours", ".", "--token", "naïve", "--json").json
        assert found["tokens"][0]["row"] == 63

    def test_added_tokens_beside_a_vocabulary(self, here) -> None:
        write({EMBED: normal(4, 16)})
        Path("vocab.json").write_text(json.dumps({"Ġa": 0, "b": 1}))
        Path("added_tokens.json").write_text(json.dumps({"é": 3}))
        tokens = open_source(".").tokens
        assert (tokens.count, [tokens.text(row) for row in range(4)]) == (4, [" a", "b", None, "é"])

    def test_more_ids_than_rows(self, here, repcap) -> None:
        write({EMBED: normal(64, 16)})
        Path("vocab.json").write_text(json.dumps({f"t{i}": i for i in range(90)}))
        refused(repcap("neighbours", ".", "--token", "t70"), f'"t70" is token 70, and {EMBED} has 64 rows: it has none')
        warning = "the tokenizer knows 90 ids, the matrix has 64 rows: 26 ids have no row"
        assert open_source(".").info.warnings == (warning,)
        assert inspect_source(".").warnings == (warning,)

    def test_tokens_that_share_rows(self, here) -> None:
        """model2vec's `mapping` gives the row of each token."""
        write({"embeddings": normal(2, 16), "mapping": torch.tensor([1, 0, 1])})
        Path("vocab.json").write_text(json.dumps({"a": 0, "b": 1, "c": 2}))
        with open_source(".") as matrix:
            assert (matrix.info.role, matrix.info.tied) == ("embedding", None)
            assert (matrix.tokens.count, matrix.tokens.text(0), matrix.tokens.text(1)) == (2, "b", "a")


def gguf_part(path: str, tail: bytes = b"", **numbers: int) -> None:
    """A GGUF file with a token embedding of 64 x 16 and whole numbers (uint16) as metadata."""

    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value)) + value.encode()

    pairs = b"".join(text(key.replace("_", ".")) + struct.pack("<IH", 2, value) for key, value in numbers.items())
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, len(numbers)) + pairs
    head += text("token_embd.weight") + struct.pack("<IQQIQ", 2, 16, 64, 0, 0)
    Path(path).write_bytes(head + bytes(-len(head) % 32) + normal(64, 16).numpy().tobytes() + tail)


class TestGguf:
    def test_a_part_by_its_own_metadata(self, here, repcap) -> None:
        gguf_part("model.gguf", split_no=0, split_count=2)
        said = "part 1 of 2 by its own metadata (split.count): the others are missing"
        info = open_source("model.gguf").info
        assert (info.tied, info.evidence) == (None, f"{said}; the config does not say")
        assert info.warnings == (said,)
        refused(
            repcap("measure", "model.gguf", "--matrix", "unembedding"),
            f"model.gguf holds no unembedding: {said}; the config does not say; measure --matrix embedding",
        )

    def test_fewer_tensors_than_it_counts(self, here) -> None:
        gguf_part("model.gguf", split_tensors_count=3)
        assert open_source("model.gguf").info.warnings == (
            "1 of 3 tensors by its own metadata (split.tensors.count): parts are missing",
        )

    def test_all_parts(self, here) -> None:
        gguf_part("model.gguf", split_no=0, split_count=1)
        info = open_source("model.gguf").info
        assert (info.tied, info.warnings) == (True, ())

    def test_bytes_after_the_last_tensor(self, here) -> None:
        gguf_part("model.gguf", tail=bytes(1000))
        assert open_source("model.gguf").info.warnings == ("model.gguf has 1000 bytes after its last tensor",)
        gguf_part("padded.gguf", tail=bytes(31))
        assert open_source("padded.gguf").info.warnings == ()

    def test_bytes_after_the_last_tensor_of_safetensors(self, here) -> None:
        write({EMBED: normal(64, 16)})
        with Path("model.safetensors").open("ab") as file:
            file.write(bytes(7))
        assert open_source(".").info.warnings == ("model.safetensors has 7 bytes after its last tensor",)


class TestIncomplete:
    def test_the_only_matrix_of_a_part_is_not_the_embedding(self, here, repcap) -> None:
        write({UP: normal(64, 16), "model.norm.weight": torch.ones(16)}, "model-00002-of-00003.safetensors")
        refused(
            repcap("measure", "."),
            ".: 2 of 3 shards are missing, and none here holds the embedding; fetch the whole checkpoint, or name a "
            "tensor with --matrix",
        )

    def test_a_link_that_leads_nowhere(self, here, repcap) -> None:
        Path("model.safetensors").symlink_to("../../blobs/0123abcd")
        Path("config.json").symlink_to("../../blobs/4567")
        line = "model.safetensors is a link to ../../blobs/0123abcd, which is not there: fetch the file again"
        refused(repcap("measure", "."), line)
        refused(repcap("measure", "model.safetensors"), line)
        Path("model.safetensors").unlink()
        write({EMBED: normal(64, 16)})
        assert open_source(".").info.warnings == ("config.json is a link to ../../blobs/4567, which is not there",)

    def test_a_linked_shard(self, here, repcap) -> None:
        Path(SHARD).symlink_to("../blob")
        index(**{EMBED: SHARD})
        refused(repcap("measure", "."), f"{SHARD} is a link to ../blob, which is not there: fetch the file again")

    @pytest.mark.parametrize("base", ["org/base", None])
    def test_an_adapter_alone_says_whose_it_is(self, base, here, repcap) -> None:
        parts = {f"base_model.model.model.layers.0.q.lora_{x}.weight": normal(4, 16) for x in "AB"}
        write(parts, "adapter_model.safetensors")
        if base:
            Path("adapter_config.json").write_text(json.dumps({"base_model_name_or_path": base}))
        whose = f"an adapter for {base}" if base else "an adapter (its base model is not named)"
        refused(
            repcap("measure", "."),
            f". holds the LoRA parts of {whose} and no weights of their own: measure {base or 'its base model'}, or "
            "merge the adapter into it first",
        )


class TestDecoders:
    def test_three_dimensions(self, here, repcap) -> None:
        write({"W_dec": normal(48, 3, 16), "W_enc": normal(48, 16), "b_dec": torch.zeros(3, 16)}, "clt.safetensors")
        refused(
            repcap("dictionary", "."),
            ".: the decoder W_dec has 3 dimensions (48 x 3 x 16), several matrices in one: save the one that you mean, "
            "one feature a row",
        )

    @pytest.mark.parametrize("shape", [(48,), (1, 48), (48, 1)])
    def test_biases_of_two_dimensions_decide_the_orientation(self, shape, here) -> None:
        write({"W_dec": normal(16, 48), "b_enc": torch.zeros(shape)})
        with open_source(".") as matrix:
            assert (matrix.count, matrix.dim, matrix.info.role) == (48, 16, "decoder")
            assert "b_enc has 48 entries, one for each feature" in matrix.info.evidence

    def test_a_linear_decoder(self, here) -> None:
        write({"decoder_linear.weight": normal(16, 48), "encoder_linear.weight": normal(48, 16)})
        with open_source(".") as matrix:
            assert (matrix.count, matrix.info.name) == (48, "decoder_linear.weight")


class TestPaths:
    def test_a_home_and_a_file_address(self, here, monkeypatch) -> None:
        monkeypatch.setenv("HOME", str(here))
        write({EMBED: normal(64, 16)}, "a b.safetensors")
        for source in (
            "~/a b.safetensors",
            f"file://{here}/a%20b.safetensors",
            f"file://localhost{here}/a%20b.safetensors",
        ):
            assert open_source(source).count == 64
        assert open_source(f"~/a b.safetensors::{EMBED}").count == 64

    def test_what_is_no_path(self, here, repcap) -> None:
        refused(repcap("inspect", "~nobody-here/x"), "~nobody-here/x: there is no such home directory")
        refused(
            repcap("inspect", "file://server/x.gguf"),
            "file://server/x.gguf: a file on another machine (server): write file:///path",
        )

    @pytest.mark.parametrize(
        ("name", "likely"),
        [
            ("gpt2-xl", ", perhaps openai-community/gpt2-xl"),
            ("Qwen2.5-0.5B", ", perhaps Qwen/Qwen2.5-0.5B"),
            ("mine", ""),
        ],
    )
    def test_a_name_without_its_organisation(self, name, likely, here, repcap) -> None:
        refused(
            repcap("measure", name), f"{name}: no such file or directory; a Hub checkpoint is written org/name{likely}"
        )


def test_a_figure_does_not_depend_on_the_notebook_around_it(here) -> None:
    write({EMBED: normal(64, 16)})
    environment = {**os.environ, "MPLBACKEND": "module://matplotlib_inline.backend_inline"}
    command = [sys.executable, "-m", "repcap", "pairs", ".", "--plot", "y.png"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "wrote y.png\n")
    assert Path("y.png").read_bytes().startswith(b"\x89PNG")


def test_rows_are_those_of_the_file(here) -> None:
    """The embedding of the shards, not of the stray file: by values."""
    kept = normal(64, 16)
    write({EMBED: kept}, SHARD)
    write({EMBED: kept + 2})
    index(**{EMBED: SHARD})
    with open_source(".") as matrix:
        assert np.array_equal(matrix.read(0, 64).numpy(), kept.numpy())
