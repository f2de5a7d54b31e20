"""What EpsilonCallback costs: one measurement against training steps of the demo model's architecture.

    python benchmarks/callback.py [--batch 2] [--tokens 128] [--steps 5] [--every 500] [--quick]

The model has the shape of SmolLM2-135M (30 blocks, d = 576, 49152 tokens, tied) with random weights: a step's time does
not depend on them. A step is forward, backward and AdamW. Prints both times and the share at --every steps.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable

import torch
from measured import Measured, PeakMemory, seconds_of
from transformers import LlamaConfig, LlamaForCausalLM

from repcap.geometry.measurement.live import BLOCK
from repcap.integrations.watch import Watch

VOCABULARY, WIDTH = 49152, 576


def build(blocks: int) -> LlamaForCausalLM:
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=VOCABULARY,
            hidden_size=WIDTH,
            intermediate_size=1536,
            num_hidden_layers=blocks,
            num_attention_heads=9,
            num_key_value_heads=3,
            tie_word_embeddings=True,
        )
    )


def timed(action: Callable[[], object], repeats: int) -> float:
    """Median seconds of `action`, after one call that warms up."""

    def whole() -> None:
        action()
        if torch.cuda.is_available():
            torch.cuda.synchronize()

    whole()
    return statistics.median(seconds_of(whole) for _ in range(repeats))


def rows(quick: bool, batch: int = 2, tokens: int = 128, steps: int = 5) -> list[Measured]:
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = build(4 if quick else 30).to(device)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4)
    ids = torch.randint(0, VOCABULARY, (batch, tokens), device=device)

    def step() -> None:
        model(input_ids=ids, labels=ids).loss.backward()
        optimiser.step()
        optimiser.zero_grad()

    step_seconds = timed(step, steps)
    watch = Watch(500)
    with PeakMemory() as memory:
        measure_seconds = timed(lambda: watch.measure(model), steps)
    embedding = model.get_input_embeddings().weight.detach()
    out = torch.empty((WIDTH, WIDTH), device=device)
    product = timed(lambda: torch.mm(embedding.T, embedding, out=out), steps)
    return [
        Measured(
            "EpsilonCallback: one measurement", f"{VOCABULARY} x {WIDTH}, {batch} x {tokens} tokens", measure_seconds,
            product, "one product of 2 n d² operations", step_seconds, "one training step",
            memory=memory.used if device == "cpu" else None,
            bound=8 * WIDTH**2 + 3 * 4 * WIDTH * BLOCK,
        )
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--every", type=int, default=500)
    parser.add_argument("--quick", action="store_true", help="4 blocks")
    options = parser.parse_args()
    (found,) = rows(options.quick, options.batch, options.tokens, options.steps)
    assert found.reference is not None
    device = "cuda" if torch.cuda.is_available() else "cpu"
    print(f"device {device}, {torch.get_num_threads()} threads, batch {options.batch} x {options.tokens} tokens")
    print(f"training step       {found.reference:8.3f} s")
    print(f"epsilon measurement {found.seconds:8.3f} s, {found.seconds / found.reference:.3f} of a step")
    print(f"every {options.every} steps: {found.seconds / (options.every * found.reference):.4%} of the training time")


if __name__ == "__main__":
    main()
