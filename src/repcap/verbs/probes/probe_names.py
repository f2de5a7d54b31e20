"""Which weights read from the residual stream and which write to it: one table, by the names that families use.

Names stand as `sources.names.plain` leaves them, without the part that numbers the block; `#` stands for a number.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Literal

from repcap.sources import names

Layout = Literal["whole", "concat", "heads", "groups", "quarters", "pairs"]
"""How the rows of a fused weight are shared out.

whole: not fused. concat: one part after the other (q then k then v, gate then up). heads: head by head, each q, k, v.
groups: key-value group by group, each its queries, then k, then v. quarters: four times q then v then k (codegen).
pairs: gate, up, gate, up ...
"""


@dataclasses.dataclass(frozen=True)
class Weight:
    """A weight of a block. parts: what its rows are, in order. writes: its columns are what is written."""

    name: str
    parts: tuple[str, ...]
    writes: bool = False
    layout: Layout = "whole"


Q, K, V, O, GATE, UP, DOWN = "q", "k", "v", "o", "gate", "up", "down"
ROUTER, KV, FUSED, O_GATE, MIX_IN, MIX_OUT = "router", "kv", "qkv", "o_gate", "mix_in", "mix_out"
PARTS = (Q, K, V, KV, FUSED, O_GATE, O, MIX_IN, MIX_OUT, GATE, UP, DOWN, ROUTER)
"""In the order of a block: what reads for attention, what it writes, the same of the feed-forward part.

kv: keys and values before they are told apart (deepseek); qkv: a fused weight whose layout the source does not say.
o_gate: the gate on what attention gives out. mix_in, mix_out: what stands in place of attention (state-space layers,
linear attention, convolutions); router: which experts a state goes to.
"""
WRITES = (O, MIX_OUT, DOWN)
BEFORE_ATTENTION = (Q, K, V, KV, FUSED, O_GATE, MIX_IN)
"""Parts that read what the norm before attention makes of the stream."""
QKV = (Q, K, V)

WEIGHTS: tuple[Weight, ...] = (
    # llama, mistral, qwen, gemma, olmo, phi-1/2 and most others of transformers
    Weight("self_attn.q_proj", (Q,)),
    Weight("self_attn.k_proj", (K,)),
    Weight("self_attn.v_proj", (V,)),
    Weight("self_attn.o_proj", (O,), writes=True),
    Weight("mlp.gate_proj", (GATE,)),
    Weight("mlp.up_proj", (UP,)),
    Weight("mlp.down_proj", (DOWN,), writes=True),
    Weight("self_attn.dense", (O,), writes=True),
    Weight("mlp.fc1", (UP,)),
    Weight("mlp.fc2", (DOWN,), writes=True),
    # phi-3, glm-4
    Weight("self_attn.qkv_proj", QKV, layout="concat"),
    Weight("mlp.gate_up_proj", (GATE, UP), layout="concat"),
    # opt
    Weight("self_attn.out_proj", (O,), writes=True),
    Weight("fc1", (UP,)),
    Weight("fc2", (DOWN,), writes=True),
    # gpt2 (weights stored the other way round), gpt-bigcode, gpt-neo, gpt-j, qwen-1
    Weight("attn.c_attn", QKV, layout="concat"),
    Weight("attn.c_proj", (O,), writes=True),
    Weight("mlp.c_fc", (UP,)),
    Weight("mlp.c_proj", (DOWN,), writes=True),
    Weight("mlp.w1", (UP,)),
    Weight("mlp.w2", (GATE,)),
    Weight("attn.attention.q_proj", (Q,)),
    Weight("attn.attention.k_proj", (K,)),
    Weight("attn.attention.v_proj", (V,)),
    Weight("attn.attention.out_proj", (O,), writes=True),
    Weight("attn.q_proj", (Q,)),
    Weight("attn.k_proj", (K,)),
    Weight("attn.v_proj", (V,)),
    Weight("attn.out_proj", (O,), writes=True),
    Weight("mlp.fc_in", (UP,)),
    Weight("mlp.fc_out", (DOWN,), writes=True),
    Weight("attn.qkv_proj", QKV, layout="quarters"),  # codegen
    # gpt-neox, bloom, falcon, chatglm, persimmon
    Weight("self_attn.query_key_value", QKV, layout="heads"),
    Weight("attention.query_key_value", QKV, layout="heads"),
    Weight("attention.dense", (O,), writes=True),
    Weight("self_attention.query_key_value", QKV, layout="heads"),
    Weight("self_attention.dense", (O,), writes=True),
    Weight("mlp.dense_h_to_4h", (UP,)),
    Weight("mlp.dense_4h_to_h", (DOWN,), writes=True),
    # mpt, dbrx
    Weight("attn.Wqkv", QKV, layout="concat"),
    Weight("ffn.up_proj", (UP,)),
    Weight("ffn.down_proj", (DOWN,), writes=True),
    Weight("norm_attn_norm.attn.Wqkv", QKV, layout="concat"),
    Weight("norm_attn_norm.attn.out_proj", (O,), writes=True),
    Weight("ffn.router.layer", (ROUTER,)),
    Weight("ffn.experts.mlp.w1", (GATE,)),
    Weight("ffn.experts.mlp.v1", (UP,)),
    Weight("ffn.experts.mlp.w2", (DOWN,), writes=True),
    # internlm2
    Weight("attention.wqkv", QKV, layout="groups"),
    # Meta and Mistral consolidated
    Weight("attention.wq", (Q,)),
    Weight("attention.wk", (K,)),
    Weight("attention.wv", (V,)),
    Weight("attention.wo", (O,), writes=True),
    Weight("feed_forward.w1", (GATE,)),
    Weight("feed_forward.w3", (UP,)),
    Weight("feed_forward.w2", (DOWN,), writes=True),
    # llama-4, jamba, bamba, falcon-h1
    Weight("feed_forward.gate_proj", (GATE,)),
    Weight("feed_forward.up_proj", (UP,)),
    Weight("feed_forward.down_proj", (DOWN,), writes=True),
    # mixtures of experts: the rows of all experts of a block are taken together
    Weight("block_sparse_moe.gate", (ROUTER,)),
    Weight("block_sparse_moe.experts.#.w1", (GATE,)),
    Weight("block_sparse_moe.experts.#.w3", (UP,)),
    Weight("block_sparse_moe.experts.#.w2", (DOWN,), writes=True),
    Weight("mlp.gate", (ROUTER,)),
    Weight("mlp.router", (ROUTER,)),
    Weight("mlp.shared_expert_gate", (ROUTER,)),
    Weight("feed_forward.router", (ROUTER,)),
    Weight("block_sparse_moe.router", (ROUTER,)),
    Weight("block_sparse_moe.router.layer", (ROUTER,)),
    *(
        weight
        for where in (
            *("mlp.experts.#", "mlp.shared_experts", "mlp.shared_expert"),
            *("feed_forward.experts.#", "feed_forward.shared_expert"),
        )
        for weight in (
            Weight(f"{where}.gate_proj", (GATE,)),
            Weight(f"{where}.up_proj", (UP,)),
            Weight(f"{where}.down_proj", (DOWN,), writes=True),
        )
    ),
    Weight("shared_mlp.input_linear", (GATE, UP), layout="concat"),
    Weight("shared_mlp.output_linear", (DOWN,), writes=True),
    # all experts of a block in one tensor of three dimensions
    Weight("mlp.experts.gate_up_proj", (GATE, UP), layout="concat"),
    Weight("mlp.experts.down_proj", (DOWN,), writes=True),
    Weight("feed_forward.experts.gate_up_proj", (GATE, UP), layout="concat"),
    Weight("feed_forward.experts.down_proj", (DOWN,), writes=True),
    Weight("block_sparse_moe.experts.gate_up_proj", (GATE, UP), layout="concat"),
    Weight("block_sparse_moe.experts.down_proj", (DOWN,), writes=True),
    Weight("block_sparse_moe.input_linear", (GATE, UP), layout="concat"),
    Weight("block_sparse_moe.output_linear", (DOWN,), writes=True),
    Weight("ffn_gate_exps", (GATE,)),
    Weight("ffn_up_exps", (UP,)),
    Weight("ffn_gate_up_exps", (GATE, UP), layout="concat"),
    Weight("ffn_down_exps", (DOWN,), writes=True),
    # gates on attention's output, and what stands in place of attention: mamba, linear attention, convolutions
    Weight("self_attn.gate_proj", (O_GATE,)),
    Weight("self_attn.output_gate", (O_GATE,)),
    Weight("attn_gate", (O_GATE,)),
    *(
        weight
        for where in ("mixer", "mamba", "conv", "shortconv")
        for weight in (Weight(f"{where}.in_proj", (MIX_IN,)), Weight(f"{where}.out_proj", (MIX_OUT,), writes=True))
    ),
    *(Weight(f"linear_attn.in_proj_{name}", (MIX_IN,)) for name in ("qkvz", "ba", "qkv", "z", "a", "b")),
    Weight("linear_attn.out_proj", (MIX_OUT,), writes=True),
    *(Weight(f"ssm_{name}", (MIX_IN,)) for name in ("in", "ba", "alpha", "beta")),
    Weight("ssm_out", (MIX_OUT,), writes=True),
    # recurrentgemma
    Weight("temporal_block.linear_x", (MIX_IN,)),
    Weight("temporal_block.linear_y", (MIX_IN,)),
    Weight("temporal_block.linear_out", (MIX_OUT,), writes=True),
    Weight("temporal_block.q_proj", (Q,)),
    Weight("temporal_block.k_proj", (K,)),
    Weight("temporal_block.v_proj", (V,)),
    Weight("temporal_block.o_proj", (O,), writes=True),
    Weight("mlp_block.gate_proj", (GATE,)),
    Weight("mlp_block.up_proj", (UP,)),
    Weight("mlp_block.down_proj", (DOWN,), writes=True),
    # deepseek: what is read is compressed first
    Weight("self_attn.q_a_proj", (Q,)),
    Weight("self_attn.kv_a_proj_with_mqa", (KV,)),
    # GGUF (its converters bring every fused q, k, v into the order q then k then v)
    Weight("attn_q", (Q,)),
    Weight("attn_k", (K,)),
    Weight("attn_v", (V,)),
    Weight("attn_qkv", QKV, layout="concat"),
    Weight("attn_q_a", (Q,)),
    Weight("attn_kv_a_mqa", (KV,)),
    Weight("attn_output", (O,), writes=True),
    Weight("ffn_gate", (GATE,)),
    Weight("ffn_up", (UP,)),
    Weight("ffn_down", (DOWN,), writes=True),
    Weight("ffn_gate_inp", (ROUTER,)),
    Weight("ffn_gate_inp_shexp", (ROUTER,)),
    Weight("ffn_gate_shexp", (GATE,)),
    Weight("ffn_up_shexp", (UP,)),
    Weight("ffn_down_shexp", (DOWN,), writes=True),
)

ATTN_IN, MLP_IN, ATTN_OUT, MLP_OUT, FINAL = "attn in", "mlp in", "attn out", "mlp out", "final"

NORMS: dict[str, str] = {
    "input_layernorm": ATTN_IN,
    "post_attention_layernorm": MLP_IN,
    "pre_feedforward_layernorm": MLP_IN,
    "post_feedforward_layernorm": MLP_OUT,
    "self_attn_layer_norm": ATTN_IN,
    "final_layer_norm": MLP_IN,
    "ln_1": ATTN_IN,
    "ln_2": MLP_IN,
    "ln_attn": ATTN_IN,
    "ln_mlp": MLP_IN,
    "norm_1": ATTN_IN,
    "norm_2": MLP_IN,
    "attention_norm": ATTN_IN,
    "ffn_norm": MLP_IN,
    "attention_layernorm": ATTN_IN,
    "feedforward_layernorm": MLP_IN,
    "post_self_attn_layernorm": ATTN_OUT,
    "post_mlp_layernorm": MLP_OUT,
    "pre_mlp_layernorm": MLP_IN,
    "pre_ff_layernorm": MLP_IN,
    "operator_norm": ATTN_IN,
    "temporal_pre_norm": ATTN_IN,
    "channel_pre_norm": MLP_IN,
    "norm": ATTN_IN,
    "norm_attn_norm.norm_1": ATTN_IN,
    "norm_attn_norm.norm_2": MLP_IN,
    "attn_norm": ATTN_IN,
    "attn_norm_2": ATTN_IN,
    "post_attention_norm": ATTN_OUT,
    "post_ffw_norm": MLP_OUT,
}
"""Norm of a block -> where it stands: before or after attention, before or after the feed-forward part.

`AFTER_WITH` names those that stand elsewhere in some blocks.
"""

AFTER_WITH: dict[str, tuple[str, tuple[str, ...], bool]] = {
    "post_attention_layernorm": (
        ATTN_OUT,
        ("pre_feedforward_layernorm", "post_feedforward_layernorm", "pre_mlp_layernorm"),
        True,
    ),
    "post_attention_norm": (MLP_IN, ("ffn_norm", "post_ffw_norm"), False),
    "attn_norm": (MLP_IN, ("attn_norm_2",), True),
}
"""Norm -> (other place, names, whether it stands there if the block has one of these or if it has none).

gemma 2 and 3, olmo 2 and afmoe have norms of their own around the feed-forward part; GGUF files of qwen3-next and
gpt-oss call the norm before it `post_attention_norm`; those of falcon 40b call the norm before attention `attn_norm_2`.
"""

FINAL_NORMS = (
    "model.norm",
    "norm",
    "output_norm",
    "transformer.ln_f",
    "ln_f",
    "transformer.norm_f",
    "norm_f",
    "gpt_neox.final_layer_norm",
    "final_layer_norm",
    "model.decoder.final_layer_norm",
    "decoder.final_layer_norm",
    "model.layer_norm",
    "biogpt.layer_norm",
    "layer_norm",
    "backbone.norm_f",
    "model.embedding_norm",
    "model.final_layernorm",
    "model.final_norm",
    "transformer.encoder.final_layernorm",
    "language_model.model.norm",
    "model.language_model.norm",
)

ONE_PLUS = frozenset(
    {"gemma", "gemma2", "gemma3", "gemma3_text", "recurrent_gemma", "vaultgemma"}
    | {"qwen3_next", "qwen3_5", "qwen3_5_text", "qwen3_5_moe", "qwen3_5_moe_text"}
    | {"nemotron", "step3p5", "step3p7", "minimax_m3_vl", "minimax_m3_vl_text"}
)
"""model_type of configurations whose norms multiply by 1 + the stored gain (GGUF files have the 1 added already)."""

CONFIGURED: tuple[tuple[str, str | None, bool, Layout], ...] = (
    ("falcon", "new_decoder_architecture", True, "groups"),
    ("falcon", "multi_query", True, "concat"),
    ("chatglm", None, True, "concat"),
    ("gpt_bigcode", "multi_query", False, "heads"),
    ("gpt_oss", None, True, "pairs"),
)
"""(model_type, key of the configuration, its value, layout) of fused weights that differ from the table above; the
first that holds decides. Not in GGUF files, whose converters bring all into one order.
"""

GATED_QUERIES = ("qwen3_next", "qwen3_5", "qwen3next", "qwen35")
"""Beginnings of model_type where `q` holds, head by head, the queries and then as many rows of the output's gate."""

_BLOCK = re.compile(r"^(?P<prefix>(?:.*?\.)?)(?:layers|h|blocks|blk)\.(?P<layer>\d+)\.(?P<inner>.+)$")
_PATTERNS = {weight: re.compile(re.escape(weight.name).replace(r"\#", r"\d+")) for weight in WEIGHTS}


def in_block(name: str) -> tuple[int, str] | None:
    """(number of the block, name inside it) of a tensor of a text model's block; None for any other.

    >>> in_block("model.layers.3.mlp.up_proj.weight"), in_block("blk.0.attn_q.weight"), in_block("lm_head.weight")
    ((3, 'mlp.up_proj'), (0, 'attn_q'), None)
    """
    found = _BLOCK.match(names.plain(name))
    if found is None or names.NOT_TEXT.search(found["prefix"]):
        return None
    return int(found["layer"]), found["inner"]


def weight_of(inner: str) -> Weight | None:
    """The row of the table that a name inside a block matches."""
    return next((weight for weight, pattern in _PATTERNS.items() if pattern.fullmatch(inner)), None)
