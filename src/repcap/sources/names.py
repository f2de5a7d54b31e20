"""Which tensor is the token embedding, which the unembedding, which an SAE's decoder: one table, by family.

Names stand without `.weight`. A name that starts with `*.` also matches bare and under any single component
(`*.embeddings.word_embeddings` matches `embeddings.word_embeddings` and `roberta.embeddings.word_embeddings`), and
`#` stands for a number.
"""

from __future__ import annotations

import dataclasses
import re


@dataclasses.dataclass(frozen=True)
class Family:
    """Names of one family, the likeliest first."""

    name: str
    embedding: tuple[str, ...]
    unembedding: tuple[str, ...] = ()
    """Empty: the family has no unembedding at all."""
    columns: tuple[str, ...] = ()
    """Those of the names above that keep one vector a column, (d, n)."""


FAMILIES: tuple[Family, ...] = (
    Family("llama", ("model.embed_tokens",), ("lm_head", "model.lm_head")),
    Family(
        "multimodal",
        (
            "language_model.model.embed_tokens",
            "model.language_model.embed_tokens",
            "model.language_model.model.embed_tokens",
            "language_model.embed_tokens",
            "model.text_model.embed_tokens",
            "text_model.embed_tokens",
            "llm.model.embed_tokens",
            "thinker.model.embed_tokens",
            "language_model.model.tok_embeddings",
            "language_model.transformer.wte",
        ),
        (
            "lm_head",
            "language_model.lm_head",
            "model.language_model.lm_head",
            "llm.lm_head",
            "thinker.lm_head",
            "language_model.output",
        ),
    ),
    Family("gpt2", ("transformer.wte", "wte"), ("lm_head",)),
    Family("phi-old", ("transformer.embd.wte", "layers.0.wte"), ("lm_head.linear", "layers.#.linear")),
    Family("gpt-neox", ("gpt_neox.embed_in", "embed_in"), ("embed_out",)),
    Family("bloom", ("transformer.word_embeddings", "word_embeddings"), ("lm_head",)),
    # Before `opt`: T5 and BART hold a copy of `shared` under each half, one of them with the name of OPT.
    Family(
        "t5",
        ("shared", "model.shared", "encoder.embed_tokens", "model.encoder.embed_tokens", "transformer.shared"),
        ("lm_head",),
    ),
    Family(
        "opt",
        ("model.decoder.embed_tokens", "decoder.embed_tokens"),
        ("lm_head", "proj_out", "decoder.output_projection"),
    ),
    Family(
        "bert",
        ("*.embeddings.word_embeddings", "*.embeddings.tok_embeddings", "embeddings.token_embedding"),
        (
            "cls.predictions.decoder",
            "lm_head.decoder",
            "vocab_projector",
            "predictions.decoder",
            "generator_lm_head",
            "decoder",
        ),
    ),
    Family("clip", ("text_model.embeddings.token_embedding", "*.text_model.embeddings.token_embedding")),
    Family("mamba", ("backbone.embeddings", "backbone.embedding"), ("lm_head",)),
    Family("rwkv", ("rwkv.embeddings", "emb", "model.embeddings"), ("head", "lm_head")),
    Family("deepseek-native", ("embed",), ("head",)),
    Family("chatglm", ("transformer.embedding.word_embeddings",), ("transformer.output_layer",)),
    Family("internlm2", ("model.tok_embeddings",), ("output", "lm_head")),
    Family("openelm", ("transformer.token_embeddings",), ("lm_head",)),
    Family(
        "megatron",
        ("language_model.embedding.word_embeddings", "embedding.word_embeddings", "model.embedding.word_embeddings"),
        ("word_embeddings_for_head", "language_model.output_layer", "output_layer", "model.output_layer", "lm_head"),
    ),
    Family("bailing", ("model.word_embeddings",), ("lm_head",)),
    Family("llada", ("model.transformer.wte",), ("model.transformer.ff_out",)),
    Family("consolidated", ("tok_embeddings",), ("output",)),
    Family("gguf", ("token_embd",), ("output",)),
    Family("transformer-lens", ("embed.W_E",), ("unembed.W_U",), columns=("unembed.W_U",)),
    Family("model2vec", ("embeddings",)),
    Family("base", ("embed_tokens", "text_model.model.embed_tokens", "tok_embeddings.tok_embeddings"), ("lm_head",)),
)
"""The order decides where a checkpoint matches several families. `base` is a decoder saved without its wrapper."""


SURE_HEADS = ("lm_head", "embed_out", "lm_head.linear", "lm_head.decoder", "unembed.W_U")
"""Those that are believed under any prefix, without an embedding beside them."""

HEADS = ("lm_head", "embed_out", "output_layer", "proj_out", "lm_head.linear", "lm_head.decoder", "output", "head")
"""Unembeddings under any prefix, believed only with the very shape of the embedding: a head that the family's row does
not know must not pass for a missing one."""


@dataclasses.dataclass(frozen=True)
class Dictionary:
    """Names of a sparse autoencoder: decoder rows are the feature directions."""

    name: str
    decoder: str
    columns: bool
    """The convention: True is (d, k), one feature a column, as nn.Linear(k, d) stores it. Biases' lengths overrule."""
    beside: tuple[str, ...]
    """At least one of these must be there too, else the name proves nothing."""


DICTIONARIES: tuple[Dictionary, ...] = (
    Dictionary("sae", "W_dec", False, ()),
    Dictionary("sae", "decoder", True, ("encoder", "encoder.bias", "b_enc", "pre_bias", "latent_bias", "b_dec")),
    Dictionary("sae", "decoder_weight", True, ("encoder_weight", "encoder_bias")),
    Dictionary("sae", "decoder_linear", True, ("encoder_linear", "encoder_linear.bias", "decoder_linear.bias")),
    Dictionary("sae", "dictionary", False, ("encoder", "encoder_bias")),
)

FEATURE_BIASES = (
    "b_enc",
    "encoder.bias",
    "encoder_bias",
    "encoder_linear.bias",
    "latent_bias",
    "threshold",
    "log_threshold",
)
"""Vectors of length k beside a decoder."""
INPUT_BIASES = ("b_dec", "decoder.bias", "decoder_linear.bias", "pre_bias", "decoder_bias")
"""Vectors of length d beside a decoder."""

WRAPPERS = re.compile(r"^(?:module\.|_orig_mod\.|base_model\.model\.|_fsdp_wrapped_module\.|_forward_module\.)+")
INSIDE = re.compile(
    r"(?<=\.)(?:_orig_mod|_fsdp_wrapped_module|_checkpoint_wrapped_module|base_layer|modules_to_save\.[^.]+)\."
)
"""Names that wrappers (DDP, torch.compile, FSDP, PEFT) put into a tensor's name."""

LEFT_OUT = re.compile(
    r"position|patch|token_type|token_embd_norm|embed_tokens_per_layer|per_layer_token_embd|\bwpe\b|segment"
    r"|pos_embed|relative_attention|original_module|lora_|absmax|quant_map|quant_state|rotary|norm\b|[Ll]ayer_?[Nn]orm"
)
"""Never a token embedding, whatever its shape."""


OWNERS: tuple[tuple[str, str], ...] = (
    (r"gpt2(-medium|-large|-xl)?|openai-gpt", "openai-community"),
    (r"bert-(base|large)-.*", "google-bert"),
    (r"(xlm-)?roberta-.*", "FacebookAI"),
    (r"distil(bert|roberta|gpt2).*", "distilbert"),
    (r"albert-.*", "albert"),
    (r"t5-(small|base|large|3b|11b)", "google-t5"),
    (r"smollm.*", "HuggingFaceTB"),
    (r"qwen.*", "Qwen"),
    (r"(pythia|gpt-neo|gpt-j).*", "EleutherAI"),
    (r"opt-.*", "facebook"),
    (r"phi-.*", "microsoft"),
    (r"gemma-.*", "google"),
    (r"(meta-)?llama-.*", "meta-llama"),
    (r"(mistral|mixtral|ministral)-.*", "mistralai"),
    (r"olmoe?-.*", "allenai"),
    (r"bloom.*", "bigscience"),
    (r"mamba-.*", "state-spaces"),
    (r"falcon.*", "tiiuae"),
    (r"gpt-oss-.*", "openai"),
    (r"deepseek-.*", "deepseek-ai"),
)
"""Names of models as people write them -> whose they are."""


def likely_name(name: str) -> str | None:
    """`org/name` that a name without an organisation probably means, or None.

    >>> likely_name("gpt2"), likely_name("my-model")
    ('openai-community/gpt2', None)
    """
    owner = next((owner for form, owner in OWNERS if re.fullmatch(form, name, re.IGNORECASE)), None)
    return f"{owner}/{name}" if owner else None


def below(name: str, module: str) -> bool:
    """Whether a plain name is a part of the weight of `module`, such as the codes of a quantiser.

    >>> below("lm_head.trellis", "lm_head"), below("lm_head.parametrizations.weight.original0", "lm_head")
    (True, True)
    >>> below("lm_head.bias", "lm_head"), below("lm_head.layer_norm.weight", "lm_head")
    (False, False)
    """
    if not name.startswith(module + "."):
        return False
    first, _, rest = name[len(module) + 1 :].partition(".")
    return first in ("weight", "parametrizations") if rest else first != "bias" and not LEFT_OUT.search(first)


NOT_TEXT = re.compile(r"vision|visual|image|audio|encoder\.block|speech")
"""Parts of a multimodal model that read no text, by their names."""


def plain(name: str) -> str:
    """`name` without wrapper prefixes and without `.weight`.

    >>> plain("module.model.embed_tokens.weight"), plain("base_model.model.lm_head.modules_to_save.default.weight")
    ('model.embed_tokens', 'lm_head')
    """
    stripped = INSIDE.sub("", WRAPPERS.sub("", name))
    return WRAPPERS.sub("", stripped).removesuffix(".weight")


def matches(pattern: str, name: str) -> bool:
    """Whether a plain name is meant by a name of the table."""
    if "#" in pattern:
        return re.fullmatch(re.escape(pattern).replace(r"\#", r"\d+"), name) is not None
    if not pattern.startswith("*."):
        return name == pattern
    tail = pattern[2:]
    return name == tail or (name.endswith("." + tail) and "." not in name[: -len(tail) - 1])
