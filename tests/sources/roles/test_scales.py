"""fp8 and int8 with their scales against float64 arithmetic; packed formats refused."""

from __future__ import annotations

import pytest
import torch

from repcap.errors import SourceError
from repcap.sources import open_source

EMBED = "model.embed_tokens.weight"
FP8 = [torch.float8_e4m3fn, torch.float8_e5m2]


def check(path, expected: torch.Tensor, scale: str) -> None:
    """Blocks, scattered rows and evidence of a scaled matrix."""
    with open_source(path) as matrix:
        n = len(expected)
        got = torch.cat([block for _, block in matrix.blocks(37)])
        assert got.dtype == torch.float32
        torch.testing.assert_close(got.double(), expected, rtol=1e-6, atol=0)
        some = [n - 1, 0, n // 2, n // 2]
        torch.testing.assert_close(matrix.take(some).double(), expected[some], rtol=1e-6, atol=0)
        assert matrix.info.evidence.endswith(f"; scaled by {scale}")


@pytest.mark.parametrize("dtype", FP8, ids=str)
@pytest.mark.parametrize("suffix", ["weight_scale_inv", "weight_scale", "scale"])
@pytest.mark.parametrize("shape", [(2, 3), (1, 3), (2, 1), (200, 1), (200,), (1,), ()], ids=str)
def test_scales(dtype, suffix, shape, save, rng) -> None:
    weight = torch.randn(200, 300, generator=rng).to(dtype)
    scale = torch.rand(shape, generator=rng) + 0.5
    rows, columns = torch.arange(200), torch.arange(300)
    whole = scale.double()
    if len(shape) == 2:  # blocks of 128 x 128, or one scale along an axis
        i = rows // {2: 128, 1: 200, 200: 1}[shape[0]]
        j = columns // {3: 128, 1: 300}[shape[1]]
        whole = whole[i][:, j]
    elif shape == (200,):
        whole = whole[:, None]
    name = f"model.embed_tokens.{suffix}"
    check(save({EMBED: weight, name: scale}), weight.double() * whole, name)


def test_block_size_from_the_config(save, rng) -> None:
    weight, scale = torch.randn(100, 50, generator=rng).to(FP8[0]), torch.rand(3, 2, generator=rng) + 0.5
    config = {"quantization_config": {"weight_block_size": [40, 30]}}
    whole = scale.double()[torch.arange(100) // 40][:, torch.arange(50) // 30]
    check(
        save({EMBED: weight, "model.embed_tokens.weight_scale_inv": scale}, config=config),
        weight.double() * whole,
        "model.embed_tokens.weight_scale_inv",
    )


def test_scales_that_fit_nothing(save, rng) -> None:
    weight, scale = torch.randn(100, 50, generator=rng).to(FP8[0]), torch.ones(3, 2)
    path = save({EMBED: weight, "model.embed_tokens.weight_scale_inv": scale})
    with pytest.raises(SourceError) as caught:
        open_source(path)
    assert str(caught.value) == (
        f"{path}: model.embed_tokens.weight_scale_inv (3 x 2) does not say how it scales {EMBED} (100 x 50): "
        "give weight_block_size in the quantization_config of config.json"
    )


def test_fp8_without_scales_is_read_as_it_is(save, rng) -> None:
    weight = torch.randn(20, 8, generator=rng).to(FP8[0])
    with open_source(save({EMBED: weight})) as matrix:
        assert torch.equal(matrix.read(0, 20), weight.float())
        assert "scaled" not in matrix.info.evidence


def test_int8_rows(save, rng) -> None:
    weight = torch.randint(-128, 128, (20, 8), generator=rng).to(torch.int8)
    scale = torch.rand(20, 1, generator=rng).bfloat16()
    path = save(
        {EMBED: weight, "model.embed_tokens.weight_scale": scale},
        config={"quantization_config": {"quant_method": "compressed-tensors"}},
    )
    check(path, weight.double() * scale.double(), "model.embed_tokens.weight_scale")


def test_exponents_of_the_mx_formats(save, rng) -> None:
    weight = torch.randn(4, 64, generator=rng).to(FP8[0])
    exponent = torch.tensor([[127, 128], [126, 130], [127, 120], [110, 127]], dtype=torch.uint8)
    whole = (2.0 ** (exponent.double() - 127)).repeat_interleave(32, dim=1)
    check(
        save({EMBED: weight, "model.embed_tokens.weight_scale": exponent}),
        weight.double() * whole,
        "model.embed_tokens.weight_scale",
    )


def test_tying_compares_scaled_values(save, rng) -> None:
    weight = torch.randn(20, 8, generator=rng).to(FP8[0])
    scale = torch.full((20, 1), 2.0)
    made = {
        EMBED: weight,
        "model.embed_tokens.weight_scale": scale,
        "lm_head.weight": weight.float() * 2,
    }
    assert open_source(save(made)).info.tied is True
    made["lm_head.weight"] = weight.float()
    assert open_source(save(made)).info.tied is False


@pytest.mark.parametrize(
    ("stored", "kind", "asked"),
    [
        ({"w.qweight": (8, 4), "w.qzeros": (1, 4)}, "GPTQ or AWQ", "w.qweight"),
        ({"w.weight_packed": (8, 4)}, "compressed-tensors", "w.weight_packed"),
        ({"w.W_q": (8, 4)}, "HQQ", "w.W_q"),
        ({"w.weight": (16, 1), "w.weight.absmax": (2,)}, "bitsandbytes 4-bit", "w.weight"),
        ({"w.weight": (8, 4), "w.scales": (8, 1), "w.biases": (8, 1)}, "MLX or another grouped format", "w.weight"),
        ({"w.weight": (8, 4), "w.weight_scale": (8, 1), "w.weight_scale_2": ()}, "NVFP4", "w.weight"),
        (
            {"w.weight": (8, 4), "w.weight_scale": (8, 1), "w.weight_zero_point": (8, 1)},
            "asymmetric integers",
            "w.weight",
        ),
    ],
)
def test_packed_weights_are_refused(stored, kind, asked, save) -> None:
    path = save({name: torch.zeros(shape, dtype=torch.int32) for name, shape in stored.items()})
    shape = " x ".join(map(str, stored[asked]))
    with pytest.raises(SourceError) as caught:
        open_source(path, asked)
    assert str(caught.value) == (
        f"{path}: {asked} is packed ({kind}, int32 {shape}): its bytes are no directions; "
        "use an unquantised or a GGUF copy of the model"
    )


def test_a_packed_embedding_is_found_and_refused(save) -> None:
    path = save({"model.embed_tokens.qweight": torch.zeros(8, 4, dtype=torch.int32)})
    with pytest.raises(SourceError, match=r"model\.embed_tokens\.qweight is packed \(GPTQ or AWQ"):
        open_source(path)


def test_integers_in_a_quantised_model_are_refused(save) -> None:
    path = save({EMBED: torch.zeros(8, 4, dtype=torch.uint8)}, config={"quantization_config": {"quant_method": "x"}})
    with pytest.raises(SourceError, match="quantised according to its config"):
        open_source(path)
