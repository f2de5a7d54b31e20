"""`latents` against stacking every state, on small random models; once on the demo model."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from demo import SMOLLM2, needs_demo
from repcap.errors import InputError, SourceError
from repcap.sources.package import package_path
from repcap.verbs.latents import study as study
from repcap.verbs.latents.study import latents

transformers = pytest.importorskip("transformers")

WORDS = ["the", "cat", "sat", "on", "mat", "and", "saw", "one", "dog", "run", "by", "it", "lay", "in", "sun"]


def config(**changes):
    options = {
        "vocab_size": 40,
        "hidden_size": 16,
        "intermediate_size": 24,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 64,
        **changes,
    }
    return transformers.LlamaConfig(**options)


@pytest.fixture
def model():
    torch.manual_seed(0)
    return transformers.LlamaModel(config()).eval()


@pytest.fixture
def folder(model, tmp_path):
    """The model with a tokenizer of words, as transformers saves them."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    vocab = {"<unk>": 0, "<s>": 1, **{word: number + 2 for number, word in enumerate(dict.fromkeys(WORDS))}}
    tokenizer = Tokenizer(models.WordLevel(vocab, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    path = tmp_path / "model"
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", unk_token="<unk>"
    ).save_pretrained(path)
    model.save_pretrained(path)
    return path


def states(model, windows):
    """Every residual state and what the next norm makes of it, (layers, tokens, d), by running the blocks by hand."""
    raw, normed = [], []
    for window in windows:
        ids = torch.tensor([window])
        with torch.no_grad():
            x = model.embed_tokens(ids)
            positions = torch.arange(len(window))[None]
            rotary = model.rotary_emb(x, positions)
            mask = torch.full((len(window), len(window)), float("-inf")).triu(1)[None, None]
            seen, through = [], []
            for layer in model.layers:
                seen.append(x[0])
                through.append(layer.input_layernorm(x)[0])
                out = layer(x, attention_mask=mask, position_embeddings=rotary, position_ids=positions)
                x = out[0] if isinstance(out, tuple) else out
            seen.append(x[0])
            through.append(model.norm(x)[0])
        raw.append(torch.stack(seen))
        normed.append(torch.stack(through))
    return raw, normed


def off_diagonal(rows):
    units = torch.nn.functional.normalize(rows.detach().double(), dim=1)
    return (units @ units.T)[~torch.eye(len(rows), dtype=torch.bool)]


def epsilon(rows, z=2.0):
    cosines = off_diagonal(rows)
    return float(cosines.mean() + z * cosines.std(correction=0))


def best_linear(rows):
    """Mean over rows of the least mean square that a readout of 1 on its own row has on the others, row by row."""
    units = torch.nn.functional.normalize(rows.detach().double(), dim=1)
    hat = units @ torch.linalg.pinv(units)
    return float(((1.0 / hat.diagonal() - 1.0) / (len(units) - 1)).mean())


def test_agrees_with_stacking_all_states(model):
    ids = torch.randint(0, 40, (50,), generator=torch.Generator().manual_seed(1)).tolist()
    found = latents(model, ids=ids, window=12, blocks=9, device="cpu")
    windows = [ids[at : at + 12] for at in range(0, 50, 12)]
    raw, normed = states(model, windows)
    assert (found.tokens, found.windows, len(found.layers)) == (50, 5, 4)
    for layer in found.layers:
        for view, stored in ((layer.raw, raw), (layer.normed, normed)):
            rest = torch.cat([window[layer.layer, 1:] for window in stored])
            whole = torch.cat([window[layer.layer] for window in stored])
            assert view is not None
            assert view.spread.count == 45
            assert view.spread.epsilon == pytest.approx(epsilon(rest), abs=1e-5)
            squares = off_diagonal(rest).square()
            assert view.readout.direct_dim == pytest.approx(1.0 / float(squares.mean()), rel=1e-4)
            assert 1.0 / best_linear(rest) <= view.readout.linear_limit * (1 + 1e-9)
            assert view.with_first.epsilon == pytest.approx(epsilon(whole), abs=1e-5)
            assert view.centred.epsilon == pytest.approx(epsilon(rest.double() - rest.double().mean(0)), abs=1e-4)
        rest = torch.cat([window[layer.layer, 1:] for window in raw]).norm(dim=1)
        assert layer.median_norm == pytest.approx(float(rest.median()), rel=1e-5)
        first = torch.stack([window[layer.layer, 0] for window in raw]).norm(dim=1)
        assert layer.first_norm == pytest.approx(float(first.median()), rel=1e-5)


def test_standard_error_is_the_jackknife_over_blocks(model):
    ids = torch.randint(0, 40, (48,), generator=torch.Generator().manual_seed(2)).tolist()
    found = latents(model, ids=ids, window=12, blocks=8, device="cpu", layers=(2,))
    raw, _ = states(model, [ids[at : at + 12] for at in range(0, 48, 12)])
    blocks = [piece for window in raw for piece in window[2, 1:].tensor_split(2)]
    assert found.blocks == len(blocks) == 8
    value = epsilon(torch.cat(blocks))
    n, g, sizes = sum(map(len, blocks)), len(blocks), np.array([len(block) for block in blocks])
    without = np.array([epsilon(torch.cat(blocks[:k] + blocks[k + 1 :])) for k in range(g)])
    h = n / sizes
    estimate = g * value - ((1 - sizes / n) * without).sum()
    variance = (((h * value - (h - 1) * without - estimate) ** 2) / (h - 1)).sum() / g
    assert found.layers[0].raw.se == pytest.approx(variance**0.5, rel=2e-3)


def test_groups_of_layers_give_the_same(model):
    ids = list(range(40))
    whole = latents(model, ids=ids, window=10, device="cpu")
    apart = latents(model, ids=ids, window=10, device="cpu", memory=1)
    assert [a.raw == b.raw for a, b in zip(whole.layers, apart.layers, strict=True)] == [True] * 4


def test_hooks_are_gone_afterwards(model):
    latents(model, ids=list(range(20)), device="cpu")
    assert all(not m._forward_hooks and not m._forward_pre_hooks for m in model.modules())


def test_a_model_in_training_mode_is_read_without_dropout_and_left_in_it():
    torch.manual_seed(0)
    model = transformers.LlamaModel(config(attention_dropout=0.5)).train()
    ids = list(range(30))
    found = latents(model, ids=ids, device="cpu")
    assert model.training
    assert model.layers[0].self_attn.training
    assert found.layers == latents(model.eval(), ids=ids, device="cpu").layers


def test_from_a_directory_with_a_beginning_of_sequence_token(folder, model, tmp_path, repcap):
    text = tmp_path / "text.txt"
    text.write_text(" ".join(WORDS * 3))
    done = repcap("latents", folder, "--text", text, "--window", 10, "--json", "--device", "cpu")
    assert done.code == 0, done.err
    vocab = {word: number + 2 for number, word in enumerate(dict.fromkeys(WORDS))}
    ids = [vocab[word] for word in WORDS * 3]
    raw, _ = states(model, [[1, *ids[at : at + 9]] for at in range(0, len(ids), 9)])
    rest = torch.cat([window[3, 1:] for window in raw])
    assert done.json["tokens"] == len(ids) == len(rest)
    assert done.json["layers"][3]["raw"]["epsilon"] == pytest.approx(epsilon(rest), abs=1e-5)
    assert done.json["reading"].startswith(("Yes", "No"))
    weights = model.embed_tokens.weight.detach()
    assert done.json["embedding"]["epsilon"] == pytest.approx(epsilon(weights), abs=1e-5)
    assert done.json["embedding_on_text"]["epsilon"] == pytest.approx(epsilon(weights[sorted(set(ids))]), abs=1e-5)


def test_table_and_figure(folder, tmp_path, repcap):
    text = tmp_path / "text.txt"
    text.write_text(" ".join(WORDS * 2))
    done = repcap("latents", folder, "--text", text, "--plot", tmp_path / "l.svg", "--layers", "0,3")
    assert done.code == 0, done.err
    assert max(map(len, done.out.splitlines())) <= 80
    assert "random directions" in (tmp_path / "l.svg").read_text()
    said = " ".join(done.out.split())
    assert "The states fill " in said
    assert "tells not even one of 30 states of a layer apart in one vector" in said
    few = repcap("latents", folder, "--text", text, "--tokens", "9", "--layers", "0")
    assert "each state exactly: there are no more of them than dimensions" in " ".join(few.out.split())


def test_gpt2_and_its_layer_norms():
    torch.manual_seed(0)
    small = transformers.GPT2Model(
        transformers.GPT2Config(vocab_size=30, n_embd=8, n_layer=2, n_head=2, n_positions=32)
    ).eval()
    ids = list(range(24))
    found = latents(small, ids=ids, window=24, device="cpu")
    with torch.no_grad():
        hidden = small(torch.tensor([ids]), output_hidden_states=True)
    for layer in (0, 1):
        assert found.layers[layer].raw.spread.epsilon == pytest.approx(
            epsilon(hidden.hidden_states[layer][0, 1:]), abs=1e-5
        )
        normed = small.h[layer].ln_1(hidden.hidden_states[layer])[0, 1:]
        assert found.layers[layer].normed.spread.epsilon == pytest.approx(epsilon(normed), abs=1e-5)
    assert found.layers[2].normed.spread.epsilon == pytest.approx(epsilon(hidden.last_hidden_state[0, 1:]), abs=1e-5)


def test_holds_where_the_states_are_the_embedding():
    """A model whose blocks add nothing: every layer has the rows of its tokens, and the assumption holds."""
    torch.manual_seed(1)
    still = transformers.LlamaModel(config(num_hidden_layers=2, vocab_size=60)).eval()
    for layer in still.layers:
        layer.self_attn.o_proj.weight.data.zero_()
        layer.mlp.down_proj.weight.data.zero_()
    found = latents(still, ids=list(range(60)), window=60, device="cpu")
    assert found.holds
    assert found.reading.startswith("Yes")
    still.embed_tokens.weight.data[:30] += 0.2
    crowded = latents(still, ids=list(range(30, 60)), window=60, device="cpu")
    assert not crowded.holds
    assert crowded.reading.startswith("No")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"window": 1}, "window = 1"),
        ({"tokens": 2}, "tokens = 2"),
        ({"blocks": 1}, "blocks = 1"),
        ({"layers": (9,)}, r"layers 0\.\.3"),
        ({"dtype": "int8"}, None),
    ],
)
def test_refusals(model, folder, options, message):
    if message is None:
        with pytest.raises(InputError, match="dtype = int8"):
            latents(folder, **options)
        return
    with pytest.raises(InputError, match=message):
        latents(model, ids=list(range(20)), **options)


def test_unusable_inputs(model, folder, tmp_path, repcap):
    with pytest.raises(InputError, match="at least three"):
        latents(model, ids=[1, 2])
    with pytest.raises(InputError, match="token id 99"):
        latents(model, ids=[1, 2, 99])
    with pytest.raises(InputError, match="give ids="):
        latents(model)
    with pytest.raises(SourceError, match="no list of 3 blocks"):
        model.layers = torch.nn.Sequential(*model.layers)
        latents(model, ids=[1, 2, 3])
    (tmp_path / "bad.txt").write_bytes(b"\xff\xfe\x00")
    for argv, words in (
        (("latents", folder, "--text", tmp_path / "none.txt"), "cannot read the text"),
        (("latents", folder, "--text", tmp_path / "bad.txt"), "UTF-8"),
        (("latents", tmp_path), "local files"),
        (("latents", "nobody/not-in-the-cache"), "local files"),
        (("latents", folder / "model.safetensors"), "one file of weights"),
        (("latents", f"{folder}::x"), "whole model"),
    ):
        done = repcap(*argv)
        assert (done.code, done.err.count("\n")) == (2, 1), done.err
        assert words in done.err


def test_encoder_decoder_is_refused():
    small = transformers.T5Model(
        transformers.T5Config(vocab_size=20, d_model=8, d_ff=8, d_kv=4, num_layers=1, num_heads=2)
    )
    with pytest.raises(SourceError, match="encoder-decoder"):
        latents(small, ids=[1, 2, 3])


def test_the_shipped_text():
    (passage,) = study.read_pieces()
    assert passage.startswith("Alice was beginning")
    assert 6000 < len(passage) < 20000


@pytest.mark.slow
@needs_demo
def test_demo_model_reads_the_shipped_text(repcap):
    """Two layers of the real model; states at layer 0 are embedding rows, so their epsilon follows from the weights."""
    done = repcap("latents", SMOLLM2, "--tokens", "300", "--layers", "0,15", "--json")
    assert done.code == 0, done.err
    record = done.json
    assert record["tokens"] == 300
    assert record["dim"] == 576
    assert record["embedding"]["epsilon"] == pytest.approx(0.728677, abs=1e-4)
    from repcap.sources import open_source
    from repcap.verbs.latents.latent_model import encode

    path = package_path(SMOLLM2.removeprefix("pkg://"), SMOLLM2)
    tokenizer = transformers.AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    front, ids = encode(tokenizer, study.read_pieces())
    assert front == []
    ids = ids.tolist()
    kept = [token for at in range(0, 300, 256) for token in ids[at : min(at + 256, 300)][1:]]
    with open_source(SMOLLM2) as opened:
        rows = opened.take(kept)
    assert record["layers"][0]["raw"]["epsilon"] == pytest.approx(epsilon(rows), abs=1e-4)
    assert json.dumps(record)


def test_long_texts_come_in_pieces_that_end_with_a_line_or_a_word(tmp_path, monkeypatch):
    monkeypatch.setattr(study, "PIECE", 10)
    for text, expected in (
        ("one two three\nfour five\nsix", ["one two", " three\n", "four five\nsix"]),
        ("x" * 25, ["x" * 10, "x" * 10, "x" * 5]),
        ("\ufeffmarked", ["marked"]),
        ("", [""]),
    ):
        (tmp_path / "t.txt").write_text(text, encoding="utf-8")
        found = list(study.read_pieces(tmp_path / "t.txt"))
        assert found == expected
        assert "".join(found) == text.removeprefix("\ufeff")


def test_pieces_give_the_ids_of_the_whole_and_no_more_than_asked_for(folder, monkeypatch, tmp_path):
    from repcap.verbs.latents.latent_model import encode

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    (tmp_path / "t.txt").write_text("the cat sat on\nmat and saw one dog\n" * 20)
    whole = tokenizer((tmp_path / "t.txt").read_text())["input_ids"]
    monkeypatch.setattr(study, "PIECE", 50)
    front, ids = encode(tokenizer, study.read_pieces(tmp_path / "t.txt"))
    assert front + ids.tolist() == whole
    pieces = study.read_pieces(tmp_path / "t.txt")
    assert encode(tokenizer, pieces, 7)[1].tolist() == whole[1:8]
    assert next(pieces, None) is not None  # most of the text was never read


def test_the_text_part_of_a_multimodal_model_is_read_though_the_eye_has_as_many_blocks():
    text = {**config().to_dict(), "num_hidden_layers": 2}
    eye = {
        "hidden_size": 8,
        "intermediate_size": 8,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "image_size": 28,
        "patch_size": 14,
    }
    torch.manual_seed(0)
    both = transformers.LlavaForConditionalGeneration(
        transformers.LlavaConfig(
            text_config=transformers.LlamaConfig(**text), vision_config=transformers.CLIPVisionConfig(**eye)
        )
    ).eval()
    ids = torch.randint(0, 40, (30,), generator=torch.Generator().manual_seed(1)).tolist()
    found = latents(both, ids=ids, window=30, device="cpu")
    raw, _ = states(both.model.language_model, [ids])
    for layer in found.layers:
        assert layer.raw.spread.epsilon == pytest.approx(epsilon(raw[0][layer.layer, 1:]), abs=1e-5)


def test_states_that_are_not_as_wide_as_the_embedding_and_models_that_fail(model):
    narrow = transformers.OPTModel(
        transformers.OPTConfig(
            vocab_size=40,
            hidden_size=16,
            ffn_dim=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            word_embed_proj_dim=8,
            max_position_embeddings=32,
        )
    )
    with pytest.raises(SourceError, match="states at layer 0 are 12 x 16"):
        latents(narrow, ids=list(range(12)), device="cpu")

    def fail(*_args, **_kwargs):
        raise RuntimeError("out of\nmemory")

    model.norm.forward = fail
    with pytest.raises(SourceError, match="LlamaModel fails on 12 token ids: out of memory"):
        latents(model, ids=list(range(12)), device="cpu")
    assert all(not m._forward_hooks and not m._forward_pre_hooks for m in model.modules())


def test_a_directory_without_a_tokenizer(model, tmp_path, repcap):
    model.save_pretrained(tmp_path / "bare")
    done = repcap("latents", tmp_path / "bare")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "has no tokenizer" in done.err


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_is_near(folder, tmp_path, dtype):
    (tmp_path / "t.txt").write_text(" ".join(WORDS * 4))
    half = latents(folder, tmp_path / "t.txt", window=20, dtype=dtype, device="cpu")
    full = latents(folder, tmp_path / "t.txt", window=20, device="cpu")
    for a, b in zip(half.layers, full.layers, strict=True):
        assert a.raw.spread.epsilon == pytest.approx(b.raw.spread.epsilon, abs=5e-3)
        assert a.normed.spread.epsilon == pytest.approx(b.normed.spread.epsilon, abs=5e-3)
