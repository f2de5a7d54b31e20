"""Small checkpoints from fixed seeds for `tools/freeze.py`, made with numpy and the file formats' own packages.

Nothing of repcap is used here: what is measured must not depend on what measures it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]
WORDS = ["the", "cat", "sat", "on", "mat", "and", "saw", "one", "dog", "run", "by", "it", "lay", "in", "sun"]
STORY = "the cat sat on the mat and saw one dog run by . it lay in the sun and saw the cat run on . "


def rows(seed: int, count: int, d: int, common: float = 0.3) -> Array:
    """`count` random rows with a common direction, (count, d)."""
    rng = np.random.default_rng(seed)
    made = rng.standard_normal((count, d)) + common * rng.standard_normal(d)
    return made.astype(np.float32)


def odd_rows() -> Array:
    """Rows with everything that goes wrong: a zero row, one that is not a number, a tiny one, equal directions."""
    made = rows(5, 200, 16)
    made[3] = 0.0
    made[7, 2] = np.nan
    made[11] *= 1e-6
    made[20] = made[19]
    made[40] = 2.5 * made[19]
    made[60] = -made[59]
    return made


def write(folder: Path, tensors: dict[str, Any], config: dict[str, Any] | None, name: str = "model") -> None:
    """One safetensors file, and a config.json beside it."""
    from safetensors.numpy import save_file

    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / f"{name}.safetensors")
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config))


def llama(count: int, d: int, tied: bool, **more: Any) -> dict[str, Any]:
    return {"model_type": "llama", "vocab_size": count, "hidden_size": d, "tie_word_embeddings": tied, **more}


def sharded(folder: Path) -> None:
    """Three shards and their index; the head lies in the last."""
    parts = {
        "model-00001-of-00003": {"model.embed_tokens.weight": rows(8, 300, 24)},
        "model-00002-of-00003": {"model.layers.0.mlp.up_proj.weight": rows(9, 48, 24)},
        "model-00003-of-00003": {"lm_head.weight": rows(10, 300, 24, 0.1)},
    }
    for name, tensors in parts.items():
        write(folder, tensors, llama(300, 24, False), name)
    held = {tensor: f"{name}.safetensors" for name, tensors in parts.items() for tensor in tensors}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": held}))


def torch_file(folder: Path) -> None:
    """A pytorch_model.bin in bfloat16."""
    import torch

    folder.mkdir(parents=True, exist_ok=True)
    embedding, head = (torch.from_numpy(rows(seed, 250, 20)).bfloat16() for seed in (12, 13))
    torch.save({"transformer.wte.weight": embedding, "lm_head.weight": head}, folder / "pytorch_model.bin")
    config = {"model_type": "gpt2", "vocab_size": 250, "n_embd": 20, "tie_word_embeddings": False}
    (folder / "config.json").write_text(json.dumps(config))


def gguf_file(path: Path) -> None:
    """A GGUF with a quantised embedding and a half-precision head."""
    import gguf

    kind = gguf.GGMLQuantizationType.Q8_0
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_embedding_length(32)
    writer.add_tensor("token_embd.weight", gguf.quants.quantize(rows(14, 320, 32), kind), raw_dtype=kind)
    writer.add_tensor("output.weight", rows(15, 320, 32, 0.1).astype(np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def run(folder: Path) -> None:
    """A training run of four checkpoints: a common direction fades and the rows turn."""
    rng = np.random.default_rng(16)
    start, goal, common = rng.standard_normal((200, 16)), rng.standard_normal((200, 16)), rng.standard_normal(16)
    for number, step in enumerate((0, 10, 20, 40)):
        made = start + 0.4 * number * goal + (0.8 - 0.2 * number) * common
        tensors = {"gpt_neox.embed_in.weight": made.astype(np.float32)}
        config = {"model_type": "gpt_neox", "vocab_size": 200, "hidden_size": 16, "tie_word_embeddings": False}
        write(folder / f"checkpoint-{step}", tensors, config)


def transformer(folder: Path) -> None:
    """A Llama of two blocks with a tokenizer of words, as transformers would save it."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    d, inner, rng = 16, 24, np.random.default_rng(17)

    def weight(*shape: int) -> Array:
        return (0.2 * rng.standard_normal(shape)).astype(np.float32)

    tensors = {"model.embed_tokens.weight": rows(18, 40, d), "model.norm.weight": np.ones(d, np.float32)}
    sizes = {"q": (d, d), "k": (d // 2, d), "v": (d // 2, d), "o": (d, d)}
    for block in range(2):
        at = f"model.layers.{block}"
        tensors |= {f"{at}.self_attn.{name}_proj.weight": weight(*size) for name, size in sizes.items()}
        tensors |= {f"{at}.mlp.{name}_proj.weight": weight(inner, d) for name in ("gate", "up")}
        tensors[f"{at}.mlp.down_proj.weight"] = weight(d, inner)
        for norm in ("input_layernorm", "post_attention_layernorm"):
            tensors[f"{at}.{norm}.weight"] = 1 + np.abs(weight(d))
    config = llama(40, d, True, intermediate_size=inner, num_hidden_layers=2, num_attention_heads=4)
    config |= {"num_key_value_heads": 2, "max_position_embeddings": 64, "architectures": ["LlamaForCausalLM"]}
    write(folder, tensors, {**config, "rms_norm_eps": 1e-6, "torch_dtype": "float32"})
    vocab = {"<unk>": 0, "<s>": 1, **{word: number + 2 for number, word in enumerate(WORDS)}}
    tokenizer = Tokenizer(models.WordLevel(vocab, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "unk_token": "<unk>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))


def make(folder: Path) -> None:
    """Every input of the cases, under `folder`."""
    folder.mkdir(parents=True)
    write(folder / "tied", {"model.embed_tokens.weight": rows(1, 400, 32)}, llama(400, 32, True))
    both = {"model.embed_tokens.weight": rows(2, 300, 24, 0.8), "lm_head.weight": rows(3, 300, 24, 0.1)}
    write(folder / "untied", both, llama(300, 24, False))
    copy = {"model.embed_tokens.weight": rows(4, 100, 8), "lm_head.weight": rows(4, 100, 8)}
    write(folder / "copied", copy, llama(100, 8, False))
    write(folder / "odd", {"model.embed_tokens.weight": odd_rows()}, llama(200, 16, True))
    np.save(folder / "rows.npy", rows(6, 150, 12))
    sharded(folder / "sharded")
    torch_file(folder / "bin")
    gguf_file(folder / "model.gguf")
    decoder = rows(11, 120, 32, 0.0)
    decoder[[4, 9]] = 0.0
    sae = {"W_enc": decoder.T.copy(), "W_dec": decoder, "b_enc": np.zeros(120, np.float32)}
    write(folder / "sae", {**sae, "b_dec": np.zeros(32, np.float32)}, None, "sae")
    run(folder / "run")
    transformer(folder / "transformer")
    (folder / "story.txt").write_text(STORY * 30)
    np.save(folder / "lines.npy", rows(19, 60, 12, 0.0))
    k, d, levels = np.array([40, 60, 80, 120, 200, 400, 800]), np.array([8, 12, 16, 24, 32]), np.random.default_rng(20)
    cells = [(a, b, 1.1 * ((a - b) / (b * (a - 1))) ** 0.5 + 0.004 * levels.random()) for b in d for a in k]
    lines = [f"{a},{b},{float(epsilon)!r}" for a, b, epsilon in cells]
    (folder / "cells.csv").write_text("\n".join(["k,d,epsilon", *lines]) + "\n")
    models = ["made/tied", "made/untied", "made/sharded", "made/copied", "made/odd"]
    (folder / "models.txt").write_text("\n".join(models) + "\n")
