"""Modules and transformers models: read in place, with the roles that they declare."""

from __future__ import annotations

import re

import pytest
import torch
from torch import nn

from repcap.errors import InputError, MatrixNotFound, SourceError, VectorsError
from repcap.sources import inspect_source, open_source

transformers = pytest.importorskip("transformers")
V, D = 50, 16


def llama(**options):
    config = transformers.LlamaConfig(
        vocab_size=V, hidden_size=D, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=2, **options,
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config)


def test_untied_model() -> None:
    model = llama(tie_word_embeddings=False)
    with open_source(model) as matrix:
        assert (matrix.info.source, matrix.info.name, matrix.info.tied) == (
            "LlamaForCausalLM", "model.embed_tokens.weight", False,
        )  # fmt: skip
        assert torch.equal(matrix.read(0, V), model.model.embed_tokens.weight.detach())
        assert not matrix.read(0, 1).requires_grad
    with open_source(model, "unembedding") as matrix:
        assert torch.equal(matrix.read(3, 9), model.lm_head.weight[3:9].detach())


def test_tied_model_shares_its_storage() -> None:
    with open_source(llama(tie_word_embeddings=True), "unembedding") as matrix:
        assert (matrix.info.name, matrix.info.tied) == ("lm_head.weight", True)
        assert matrix.info.evidence == "model.embed_tokens.weight and lm_head.weight share one storage"


def test_nothing_is_copied_beforehand() -> None:
    model = llama()
    with open_source(model) as matrix, torch.no_grad():
        model.model.embed_tokens.weight[5] = 7.0
        assert matrix.read(5, 6).tolist() == [[7.0] * D]


def test_a_model_with_names_of_its_own_is_believed() -> None:
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.out = nn.Embedding(V, D), nn.Linear(D, V, bias=False)
            self.other = nn.Embedding(V, D)

        def get_input_embeddings(self):
            return self.words

        def get_output_embeddings(self):
            return self.out

    model = Odd()
    found = inspect_source(model)
    assert found.family == "declared"
    assert [(item.name, item.role) for item in found.candidates[:2]] == [
        ("words.weight", "embedding"), ("out.weight", "unembedding"),
    ]  # fmt: skip


@pytest.mark.parametrize("error", [NotImplementedError, AttributeError])
def test_a_model_that_declares_nothing_falls_back_to_the_names(error) -> None:
    class Plain(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.transformer = nn.ModuleDict({"wte": nn.Embedding(V, D), "wpe": nn.Embedding(99, D)})

        def get_input_embeddings(self):
            raise error

    assert open_source(Plain()).info.name == "transformer.wte.weight"


@pytest.mark.parametrize("config_class", ["GPT2", "Bert", "GPTNeoX", "OPT", "Bloom", "Mamba"])
def test_other_architectures(config_class) -> None:
    sizes = {
        "GPT2": {"n_embd": D, "n_layer": 1, "n_head": 2, "n_positions": 8},
        "OPT": {
            "hidden_size": D,
            "ffn_dim": 8,
            "word_embed_proj_dim": D,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
        },
        "Bloom": {"hidden_size": D, "n_layer": 1, "n_head": 2},
        "Mamba": {"hidden_size": D, "num_hidden_layers": 1, "state_size": 2},
    }.get(
        config_class,
        {"hidden_size": D, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8},
    )
    config = getattr(transformers, f"{config_class}Config")(vocab_size=V, **sizes)
    head = "BertForMaskedLM" if config_class == "Bert" else f"{config_class}LMHeadModel"
    model_class = getattr(transformers, head, None) or getattr(transformers, f"{config_class}ForCausalLM")
    model = model_class(config)
    with open_source(model) as matrix:
        assert torch.equal(matrix.read(0, V), model.get_input_embeddings().weight.detach())
    with open_source(model, "unembedding") as matrix:
        assert torch.equal(matrix.read(0, V), model.get_output_embeddings().weight.detach())


def test_saved_models_open_like_the_module(tmp_path) -> None:
    model = llama(tie_word_embeddings=True)
    model.save_pretrained(tmp_path)
    with open_source(tmp_path) as matrix:
        assert (matrix.info.name, matrix.info.tied, matrix.info.warnings) == ("model.embed_tokens.weight", True, ())
        assert torch.equal(matrix.read(0, V), model.model.embed_tokens.weight.detach())


def test_zero3_partition() -> None:
    model = llama()
    model.model.embed_tokens.weight.data = torch.empty(0)
    with pytest.raises(SourceError) as caught:
        open_source(model)
    assert str(caught.value) == (
        "LlamaForCausalLM: model.embed_tokens.weight has shape (0,), as DeepSpeed ZeRO-3 leaves a partitioned weight: "
        "gather the parameter first (deepspeed.zero.GatheredParameters)"
    )


def test_wrapped_modules() -> None:
    inner = nn.Sequential(nn.Embedding(V, D))
    wrapped = nn.ModuleDict({"module": nn.ModuleDict({"model": nn.ModuleDict({"embed_tokens": inner[0]})})})
    assert open_source(wrapped).info.name == "module.model.embed_tokens.weight"


class Small(nn.Module):
    """Token matrices of one shape, and a body."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.body, self.lm_head = nn.Embedding(V, D), nn.Linear(D, D), nn.Linear(D, V, bias=False)


def test_integer_weights_are_codes() -> None:
    model = Small()
    codes = torch.randint(-127, 127, (V, D), dtype=torch.int8)
    model.lm_head.weight = nn.Parameter(codes, requires_grad=False)
    assert open_source(model).info.tied is False
    with pytest.raises(SourceError, match=r"lm_head\.weight holds int8 codes of a quantiser: dequantise it first"):
        open_source(model, "unembedding")
    model.lm_head.register_buffer("weight_scale", torch.rand(V, 1) + 0.5)
    with open_source(model, "unembedding") as matrix:  # what its scale makes numbers of
        torch.testing.assert_close(matrix.read(0, V), codes.float() * model.lm_head.weight_scale)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("how", ["quantised", "packed", "weight norm"])
def test_a_head_without_a_weight_of_its_own_is_not_taken_for_tied(how) -> None:
    model = Small()
    if how == "quantised":
        model = torch.ao.quantization.quantize_dynamic(model, {nn.Linear}, dtype=torch.qint8)
    elif how == "packed":  # as bitsandbytes keeps 4 bits
        codes = torch.randint(0, 255, (V * D // 2, 1), dtype=torch.uint8)
        model.lm_head.weight = nn.Parameter(codes, requires_grad=False)
    else:
        nn.utils.parametrizations.weight_norm(model.lm_head)
    info = open_source(model).info
    assert (info.name, info.tied) == ("embed.weight", None)
    own = "the weight of lm_head is no parameter of its own (quantised, or computed"
    parts = "an unembedding is there in a form that is not read (lm_head.parametrizations.weight.original0)"
    said = parts if how == "weight norm" else own
    assert info.evidence.startswith(said)
    with pytest.raises(MatrixNotFound, match=f"holds no unembedding: {re.escape(said)}"):
        open_source(model, "unembedding")


def test_meta_device() -> None:
    with pytest.raises(SourceError, match="is on the meta device and has no values: load the weights first"):
        open_source(nn.Embedding(V, D, device="meta"))


def test_layer_alone() -> None:
    layer = nn.Linear(3, 7)
    with open_source(layer) as matrix:
        assert (matrix.count, matrix.dim, matrix.info.evidence) == (7, 3, "the only 2-d tensor of the source")


def test_module_without_parameters() -> None:
    with pytest.raises(MatrixNotFound, match="ReLU has no parameters"):
        open_source(nn.ReLU())


@pytest.mark.parametrize(
    "dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.int16]
)
def test_tensor(dtype, rng) -> None:
    stored = (torch.randn(9, 4, generator=rng) * 5).to(dtype)
    with open_source(stored) as matrix:
        assert torch.equal(matrix.read(0, 9).double(), stored.double())
        assert torch.equal(matrix.take([8, 0]).double(), stored.double()[[8, 0]])


@pytest.mark.parametrize(
    ("tensor", "words"),
    [
        (torch.zeros(2, 3, 4), "has 3 dimensions"),
        (torch.zeros(2, 3, dtype=torch.complex64), "is complex"),
        (torch.zeros(2, 3, dtype=torch.bool), "is boolean"),
        (torch.eye(3).to_sparse(), r"is sparse: give a dense tensor \(.to_dense\(\)\)"),
    ],
)
def test_no_matrix(tensor, words) -> None:
    with pytest.raises(VectorsError, match=words):
        open_source(tensor)


@pytest.mark.filterwarnings("ignore")
def test_nested_tensor() -> None:
    with pytest.raises(VectorsError, match="tensor is nested: give a dense tensor"):
        open_source(torch.nested.nested_tensor([torch.ones(3, 2), torch.ones(1, 2)]))


@pytest.mark.filterwarnings("ignore")
def test_quantised_tensor() -> None:
    with pytest.raises(SourceError, match="is packed by a quantiser"):
        open_source(torch.quantize_per_tensor(torch.eye(3), 0.1, 0, torch.qint8))


@pytest.mark.parametrize("thing", [3, [[1.0, 2.0]], {"a": 1}, None])
def test_other_objects(thing) -> None:
    with pytest.raises(InputError, match=f"cannot measure a {type(thing).__name__}: give a path"):
        open_source(thing)
