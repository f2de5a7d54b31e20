"""What `probes` finds in transformers' own models, against what their modules receive and give as they run."""

from __future__ import annotations

import pytest
import torch

from repcap.sources.formats.memory import TensorsCheckpoint
from repcap.sources.opening import open_checkpoint
from repcap.sources.roles.select import choose
from repcap.verbs.probes.probe_names import BEFORE_ATTENTION, WRITES
from repcap.verbs.probes.probe_weights import find_weights, open_part
from repcap.verbs.probes.study import probes

transformers = pytest.importorskip("transformers")

BASE = {
    "vocab_size": 41,
    "hidden_size": 24,
    "intermediate_size": 20,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "max_position_embeddings": 32,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
OLD = {"vocab_size": 41, "n_embd": 24, "n_layer": 2, "n_head": 4, "n_positions": 32}
LINEAR = {
    "linear_num_value_heads": 4,
    "linear_num_key_heads": 2,
    "linear_key_head_dim": 4,
    "linear_value_head_dim": 4,
    "layer_types": ["linear_attention", "full_attention"],
}
MANY = {"num_experts": 3, "num_experts_per_tok": 2, "moe_intermediate_size": 12}
FAMILIES = {
    "llama": ("Llama", {"head_dim": 6}),
    "gemma2": ("Gemma2", {"head_dim": 8}),
    "olmo2": ("Olmo2", {}),
    "phi": ("Phi", {"num_key_value_heads": 6}),
    "phi3": ("Phi3", {}),
    "nemotron": ("Nemotron", {}),
    "apertus": ("Apertus", {}),
    "glm4": ("Glm4", {"head_dim": 4}),
    "persimmon": ("Persimmon", {"num_key_value_heads": 6, "qk_layernorm": False}),
    "gpt_neox": ("GPTNeoX", {}),
    "gpt_bigcode, one key": ("GPTBigCode", OLD | {"multi_query": True}),
    "gpt_bigcode, many keys": ("GPTBigCode", OLD | {"multi_query": False}),
    "codegen": ("CodeGen", OLD | {"rotary_dim": 2}),
    "gptj": ("GPTJ", OLD | {"rotary_dim": 2}),
    "gpt2": ("GPT2LMHead", OLD),
    "falcon, new": (
        "Falcon",
        {
            **{key: BASE[key] for key in ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads")},
            "num_kv_heads": 2,
            "new_decoder_architecture": True,
        },
    ),
    "qwen3_moe": ("Qwen3Moe", {**MANY, "head_dim": 8}),
    "qwen3_next": ("Qwen3Next", {**MANY, **LINEAR, "head_dim": 4, "shared_expert_intermediate_size": 12}),
    "jamba": ("Jamba", {"attn_layer_period": 2, "attn_layer_offset": 1, "num_experts": 2, "use_mamba_kernels": False}),
    "mamba": ("Mamba", {key: BASE[key] for key in ("vocab_size", "hidden_size", "num_hidden_layers")}),
}
QK_NORM = ("olmo2", "apertus", "qwen3_moe", "qwen3_next")


def build(family):
    name, options = FAMILIES[family]
    whole = options if "vocab_size" in options else BASE | options
    config = getattr(transformers, name.removesuffix("LMHead") + "Config")(**whole)
    torch.manual_seed(0)
    model = getattr(transformers, name + ("Model" if name.endswith("LMHead") else "ForCausalLM"))(config)
    model = model.eval().float()
    for key, weight in model.named_parameters():
        if weight.dim() > 1:
            torch.nn.init.normal_(weight, 0.0, 1.0 if "emb" in key or "wte" in key else weight.shape[-1] ** -0.5)
        else:
            torch.nn.init.normal_(weight, 0.7, 0.3) if "weight" in key else torch.nn.init.zeros_(weight)
    return model


def found_in(model):
    checkpoint = open_checkpoint(model)
    with choose(checkpoint, "embedding") as embedding:
        return checkpoint, find_weights(checkpoint, embedding.dim)


def watch(model, ids):
    """First tensor that each module receives, first tensor that it gives, as the model reads these ids."""
    received, given = {}, {}

    def hook(name):
        def keep(_module, args, kwargs, output):
            tensors = [item for item in (*args, *kwargs.values()) if torch.is_tensor(item)]
            if tensors:
                received[name] = tensors[0].detach()
            output = output[0] if isinstance(output, tuple) else output
            if torch.is_tensor(output):
                given[name] = output.detach()

        return keep

    handles = [part.register_forward_hook(hook(name), with_kwargs=True) for name, part in model.named_modules()]
    with torch.no_grad():
        model(torch.tensor([ids]), use_cache=False)
    for handle in handles:
        handle.remove()
    return received, given


ATTENTION = [name for name in FAMILIES if name not in ("gpt2", "gptj", "falcon, new", "mamba", "jamba")]


@pytest.mark.parametrize("family", ATTENTION)
def test_queries_keys_and_values_are_those_that_attention_receives(family):
    """At position 0, where the rotation is none, attention receives what the rows of q, k and v read."""
    from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    seen = []

    def attention(module, query, key, value, *_args, **_kwargs):
        seen.append((module, query, key, value))
        return value.repeat_interleave(query.shape[1] // value.shape[1], 1).transpose(1, 2).contiguous(), None

    ALL_ATTENTION_FUNCTIONS.register("seen", attention)
    ALL_MASK_ATTENTION_FUNCTIONS.register("seen", ALL_MASK_ATTENTION_FUNCTIONS["eager"])
    model = build(family)
    for part in model.modules():
        if hasattr(part, "config"):
            part.config._attn_implementation = "seen"
    checkpoint, found = found_in(model)
    received, _ = watch(model, [5])
    names = {id(part): name for name, part in model.named_modules()}
    assert seen
    for module, *three in seen:
        layer = int(next(piece for piece in names[id(module)].split(".") if piece.isdigit()))
        for part, states in zip("qkv", three, strict=True):
            if part in "qk" and family in QK_NORM:
                continue  # normalised on the way
            pieces = found.parts[layer, part]
            rows = open_part(checkpoint, pieces).read(0, sum(piece.count for piece in pieces)).float()
            read = rows @ received[pieces[0].tensor.removesuffix(".weight")].ravel()
            torch.testing.assert_close(read, states.ravel(), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
def test_gains_are_those_of_the_norms_before_the_weights(family):
    """The norm whose gain is folded into a weight is the one that feeds it, and the gain is what it multiplies by."""
    model = build(family)
    checkpoint, found = found_in(model)
    modules = dict(model.named_modules())
    received, given = watch(model, [5, 9, 7, 30])
    gains = {(gain.layer, gain.place): gain for gain in found.gains}
    assert (None, "final") in gains
    checked = 0
    for (layer, part), pieces in found.parts.items():
        if part in WRITES:
            continue
        place = "attn in" if part in BEFORE_ATTENTION else "mlp in"
        gain = gains.get((layer, place)) or gains.get((layer, "attn in"))
        name = pieces[0].tensor.removesuffix(".weight")
        while name not in received:  # experts are no modules of their own
            name = name.rpartition(".")[0]
        norms = [key for key, out in given.items() if "norm" in type(modules[key]).__name__.lower()]
        feeding = [key for key in norms if given[key].numel() == received[name].numel()]
        feeding = [key for key in feeding if torch.allclose(given[key].ravel(), received[name].ravel())]
        assert (gain is None) == (not feeding), (layer, part, feeding)
        assert gain is None or gain.tensor.removesuffix(".weight") in feeding
        checked += gain is not None
    assert checked or family == "olmo2"
    for gain in found.gains:
        norm = modules[gain.tensor.removesuffix(".weight")]
        state = torch.randn(3, 24)
        with torch.no_grad():
            out = norm(state)
        flat = state - state.mean(1, keepdim=True) if getattr(norm, "bias", None) is not None else state
        expected = flat / flat.square().mean(1, keepdim=True).sqrt() * (checkpoint.small(gain.tensor) + gain.offset)
        torch.testing.assert_close(out, expected, atol=1e-3, rtol=1e-3)


def epsilon(rows):
    units = torch.nn.functional.normalize(rows.detach().double(), dim=1)
    cosines = (units @ units.T)[~torch.eye(len(rows), dtype=torch.bool)]
    return float(cosines.mean() + 2 * cosines.std(correction=0))


def largest(rows, embedding):
    unit = torch.nn.functional.normalize
    return float((unit(rows.detach().double(), dim=1) @ unit(embedding.detach().double(), dim=1).T).abs().max())


def same(found, layer, expected, embedding):
    for name, rows in expected.items():
        part = found.of(layer, name)
        assert part.count == len(rows), name
        assert part.spread.epsilon == pytest.approx(epsilon(rows), abs=1e-6), name
        assert part.aligned.largest == pytest.approx(largest(rows, embedding), abs=1e-6), name


def test_experts_in_one_tensor_as_gpt_oss_stores_them(tmp_path):
    """(experts, d, 2 i), gate and up one column each in turn; (experts, i, d): rows are what is written."""
    config = transformers.GptOssConfig(**BASE, num_local_experts=3, num_experts_per_tok=2, head_dim=4)
    torch.manual_seed(1)
    model = transformers.GptOssForCausalLM(config).float()
    torch.nn.init.normal_(model.model.layers[0].mlp.experts.gate_up_proj)
    torch.nn.init.normal_(model.model.layers[0].mlp.experts.down_proj)
    model.save_pretrained(tmp_path)
    experts = model.model.layers[0].mlp.experts
    columns = experts.gate_up_proj.transpose(1, 2)
    expected = {
        "gate": columns[:, ::2].reshape(-1, 24),
        "up": columns[:, 1::2].reshape(-1, 24),
        "down": experts.down_proj.reshape(-1, 24),
        "router": model.model.layers[0].mlp.router.weight,
    }
    same(probes(tmp_path, device="cpu"), 0, expected, model.model.embed_tokens.weight)


def test_experts_in_one_tensor_as_llama_4_and_granite_store_them(tmp_path):
    options = BASE | {"num_local_experts": 3, "num_experts_per_tok": 1}
    torch.manual_seed(2)
    model = transformers.GraniteMoeForCausalLM(transformers.GraniteMoeConfig(**options)).float()
    model.save_pretrained(tmp_path)
    moe = model.model.layers[1].block_sparse_moe
    gate, up = moe.experts.gate_up_proj.chunk(2, dim=1)
    down = moe.experts.down_proj.transpose(1, 2)
    expected = {name: rows.reshape(-1, 24) for name, rows in {"gate": gate, "up": up, "down": down}.items()}
    same(probes(tmp_path, device="cpu"), 1, expected, model.model.embed_tokens.weight)

    config = transformers.Llama4TextConfig(**options, head_dim=4, intermediate_size_mlp=16, interleave_moe_layer_step=2)
    model = transformers.Llama4ForCausalLM(config).float()
    for weight in model.parameters():
        torch.nn.init.normal_(weight)
    found = probes(model, device="cpu", align_rows=7)
    block = model.model.layers[1].feed_forward
    gate, up = block.experts.gate_up_proj.transpose(1, 2).chunk(2, dim=1)
    gate, up, down = (rows.reshape(-1, 24) for rows in (gate, up, block.experts.down_proj))
    shared = block.shared_expert
    expected = {
        "gate": torch.cat([gate, shared.gate_proj.weight]),
        "up": torch.cat([up, shared.up_proj.weight]),
        "down": torch.cat([down, shared.down_proj.weight.T]),
    }
    for name, rows in expected.items():
        part = found.of(1, name)
        assert part.spread.epsilon == pytest.approx(epsilon(rows), abs=1e-6), name
        assert part.aligned.rows == 7
        alone = largest(rows[part.aligned.vector][None], model.model.embed_tokens.weight)
        assert part.aligned.largest == pytest.approx(alone, abs=1e-6)
    assert found.of(0, "gate").count == 16


def tensors(**named):
    torch.manual_seed(3)
    shapes = {"token_embd.weight": (40, 6), "blk.0.attn_q.weight": (8, 6), "blk.0.attn_output.weight": (6, 8), **named}
    return {name: torch.randn(shape) for name, shape in shapes.items()}


class Gguf(TensorsCheckpoint):
    format = "gguf"


@pytest.mark.parametrize(
    ("norms", "kind", "expected"),
    [
        (("attn_norm", "ffn_norm"), "llama", {"attn_norm": "attn in", "ffn_norm": "mlp in"}),
        (("attn_norm", "post_attention_norm"), "gpt-oss", {"post_attention_norm": "mlp in"}),
        (("post_attention_norm", "post_ffw_norm"), "olmo2", {"post_attention_norm": "attn out"}),
        (("attn_norm", "attn_norm_2"), "falcon", {"attn_norm": "mlp in", "attn_norm_2": "attn in"}),
    ],
)
def test_where_the_norms_of_gguf_files_stand(norms, kind, expected):
    named = tensors(**{f"blk.0.{norm}.weight": (6,) for norm in norms})
    _, found = found_in(Gguf("x", named, {"model_type": kind}))
    places = {gain.tensor.split(".")[2]: gain.place for gain in found.gains}
    assert expected.items() <= places.items()


def test_experts_and_gates_of_gguf_files():
    named = tensors(
        **{
            "blk.0.ffn_gate_exps.weight": (3, 5, 6),
            "blk.0.ffn_down_exps.weight": (3, 6, 5),
            "blk.0.ffn_gate_inp_shexp.weight": (6,),
            "blk.0.ffn_gate_inp.weight": (3, 6),
        }
    )
    found = probes(Gguf("x", named, {"model_type": "qwen2moe"}), device="cpu")
    expected = {
        "gate": named["blk.0.ffn_gate_exps.weight"].reshape(-1, 6),
        "down": named["blk.0.ffn_down_exps.weight"].transpose(1, 2).reshape(-1, 6),
        "router": torch.cat([named["blk.0.ffn_gate_inp_shexp.weight"][None], named["blk.0.ffn_gate_inp.weight"]]),
    }
    assert found.of(0, "router").count == 4
    same(found, 0, {name: expected[name] for name in ("gate", "down")}, named["token_embd.weight"])
    assert found.of(0, "router").spread.epsilon == pytest.approx(epsilon(expected["router"]), abs=1e-6)


def test_weights_that_no_name_tells_of_are_said():
    """A matrix of a block that has the stream's width is measured or listed, never passed over in silence."""
    named = tensors(
        **{
            "blk.0.secret.weight": (9, 6),
            "blk.0.stack": (2, 9, 6),
            "blk.0.conv.weight": (6, 1, 4),
            "blk.0.side.weight": (5, 4),
            "blk.0.attn_k.qweight": (3, 6),
        }
    )
    found = probes(Gguf("x", named), device="cpu", align_rows=0)
    reasons = dict(found.skipped)
    assert set(reasons) == {"blk.0.secret.weight", "blk.0.stack", "blk.0.attn_k.qweight"}
    assert "no known name" in reasons["blk.0.secret.weight"]
    assert "packed" in reasons["blk.0.attn_k.qweight"]
    assert any("3 weights are left out" in note for note in found.notes)


def test_blocks_of_another_width_than_the_embedding():
    config = transformers.OPTConfig(
        vocab_size=41, hidden_size=24, ffn_dim=20, num_hidden_layers=1, num_attention_heads=4, word_embed_proj_dim=12
    )
    from repcap.errors import MatrixNotFound

    with pytest.raises(MatrixNotFound, match="no side of the embedding's 12"):
        probes(transformers.OPTForCausalLM(config), device="cpu")
