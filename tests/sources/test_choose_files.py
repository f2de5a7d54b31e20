"""Which files of a directory, or of a folder on the Hub, make up the checkpoint; what a new format takes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from repcap.errors import SourceError
from repcap.sources import formats, inspect_source, open_source
from repcap.sources.choose_files import choose_files

EMBED = "model.embed_tokens.weight"


def fill(folder, value: float, *names: str) -> None:
    """Files of the kind that their names say, each with the embedding at this value."""
    for name in names:
        value += 1
        made = {EMBED: torch.full((4, 3), value)}
        if name.endswith(".safetensors"):
            save_file(made, folder / name)
        elif name.endswith(".npz"):
            np.savez(folder / name, W_dec=made[EMBED].numpy())
        else:
            torch.save(made, folder / name)


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        (["model.safetensors", "pytorch_model.bin"], "model.safetensors"),
        (["consolidated.safetensors", "model.safetensors"], "model.safetensors"),
        (["sae_weights.safetensors", "optimizer.pt"], "sae_weights.safetensors"),
        (["pytorch_model.bin", "training_args.bin", "optimizer.pt"], "pytorch_model.bin"),
        (["consolidated.00.pth", "optimizer.pt"], "consolidated.00.pth"),
        (["ae.pt", "optimizer.pt", "scheduler.pt"], "ae.pt"),
        (["params.npz"], "params.npz"),
    ],
)
def test_order(names, chosen, tmp_path) -> None:
    fill(tmp_path, 0, *names)
    assert inspect_source(tmp_path).tensors[0].file == chosen


@pytest.mark.parametrize(
    ("names", "chosen", "others"),
    [
        (["a.GGUF"], ["a.GGUF"], []),
        (["x-00001-of-00002.safetensors", "x-00002-of-00002.safetensors"], None, []),
        (["model.safetensors", "model.fp16.safetensors"], ["model.safetensors"], ["model.fp16.safetensors"]),
        (["model.safetensors", "foo.safetensors.index.json"], ["model.safetensors"], []),
        (
            ["model.safetensors.index.json", "model.safetensors"],
            ["model.safetensors.index.json"],
            ["model.safetensors"],
        ),
        (["Model.Safetensors", "pytorch_model.bin"], ["Model.Safetensors"], []),
        (["pytorch_model.bin", "pytorch_model-00001-of-00002.bin"], "2 pytorch files", []),
        (["model-00001-of-00002.safetensors", "model-00001-of-00003.safetensors"], "2 safetensors files", []),
        (["x-00001-of-00002.gguf", "x-00002-of-00002.gguf", "y.gguf"], "2 sets of gguf files", []),
        (["consolidated.00.pth", "consolidated.01.pth", "a.gguf"], ["a.gguf"], []),
        (["consolidated.01.pth", "consolidated.00.pth", "b.pt"], ["consolidated.00.pth", "consolidated.01.pth"], []),
        (["a.npy", "b.pt"], "2 weight files", []),
        (["tokenizer.bin", "optimizer.pt", "a.pt"], ["a.pt"], []),
    ],
)
def test_one_rule(names, chosen, others) -> None:
    """Names alone decide, so the rule is the same on the disk and on the Hub."""
    if isinstance(chosen, str):
        with pytest.raises(SourceError, match=f"^here holds {chosen} .*name one, here/"):
            choose_files(names, "here")
        return
    found = choose_files(names, "here")
    assert (list(found.names), list(found.others)) == (chosen or names, others)


def test_a_format_is_a_file_and_a_row(tmp_path, monkeypatch) -> None:
    """The toy keeps one matrix as text."""
    (tmp_path / "toy_format.py").write_text(
        "import numpy as np\n"
        "from repcap.sources.formats.arrays import ArrayCheckpoint\n"
        "def open_files(files):\n"
        "    found = ArrayCheckpoint(np.loadtxt(files.path))\n"
        "    found.spec, found.format = files.spec, 'toy'\n"
        "    return found\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(formats, "FORMATS", (*formats.FORMATS, formats.Format("toy", (".toy",), "toy_format")))
    (tmp_path / "model").mkdir()
    np.savetxt(tmp_path / "model" / "w.toy", np.arange(6.0).reshape(3, 2))
    for source in (tmp_path / "model", tmp_path / "model" / "w.toy"):
        found = inspect_source(source)
        assert (found.format, found.tensors[0].shape) == ("toy", (3, 2))
        assert open_source(source).read(2, 3).tolist() == [[4.0, 5.0]]
    with pytest.raises(SourceError, match=r"\.toy, a \*\.index\.json"):
        open_source(tmp_path)
    with pytest.raises(SourceError, match=r"no such file or directory$"):
        open_source("w.toy")


def test_several_of_one_kind(tmp_path) -> None:
    fill(tmp_path, 0, "a.safetensors", "b.safetensors")
    with pytest.raises(SourceError) as caught:
        open_source(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path} holds 2 safetensors files (a.safetensors, b.safetensors): name one, {tmp_path}/a.safetensors"
    )


def test_no_checkpoint(tmp_path) -> None:
    (tmp_path / "text_encoder").mkdir()
    (tmp_path / "readme.md").touch()
    with pytest.raises(
        SourceError,
        match=r"holds no weights that repcap reads \(.*\); its files: readme.md; its folders, .*: text_encoder",
    ):
        open_source(tmp_path)


@pytest.mark.parametrize("name", ["weights", "readme.md", "tf_model.h5"])
def test_other_kinds_of_file(name, tmp_path) -> None:
    (tmp_path / name).write_bytes(b"something")
    with pytest.raises(SourceError, match=r"is no kind of file that repcap reads: \.safetensors, \.bin, .*, \.gguf"):
        open_source(tmp_path / name)


def test_gguf_directory_leaves_the_projector(gguf_file) -> None:
    path = gguf_file({"token_embd.weight": np.ones((4, 4), np.float32)})
    gguf_file({"v.patch_embd.weight": np.ones((4, 4), np.float32)}, name="mmproj-model.gguf")
    assert open_source(path.parent).info.name == "token_embd.weight"


def test_damaged_config_is_a_warning(save, rng) -> None:
    path = save({EMBED: torch.randn(5, 3, generator=rng)})
    (path.parent / "config.json").write_text('{"tie_word_embeddings": ')
    warnings = open_source(path).info.warnings
    assert len(warnings) == 1
    assert warnings[0].startswith("config.json cannot be read (")


def test_inspection_counts(save, rng) -> None:
    made = {
        EMBED: torch.randn(50, 4, generator=rng),
        "norm.weight": torch.ones(4),
        "up.weight": torch.randn(30, 4, generator=rng),
    }
    config = {"vocab_size": 48, "hidden_size": 4, "model_type": "llama", "quantization_config": {"quant_method": "fp8"}}
    found = inspect_source(save(made, config=config))
    assert (found.tensor_count, found.parameters, found.vocab_size, found.token_count) == (3, 324, 48, None)
    assert [(item.name, item.role) for item in found.candidates] == [(EMBED, "embedding"), ("up.weight", "matrix")]
    assert found.config == {"model_type": "llama", "hidden_size": 4, "quantization": "fp8"}
    assert len(found.tensors) == 3
