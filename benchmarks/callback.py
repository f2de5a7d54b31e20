"""What EpsilonCallback costs: one measurement against training steps of the demo model's architecture.

    python benchmarks/callback.py [--batch 2] [--tokens 128] [--steps 5] [--every 500]

The model has the shape of SmolLM2-135M (30 blocks, d = 576, 49152 tokens, tied) with random weights: a step's time does
not depend on them. A step is forward, backward and AdamW. Prints both times and the share at --every steps.
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from repcap.integrations.watch import Watch


def build() -> LlamaForCausalLM:
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=49152,
            hidden_size=576,
            intermediate_size=1536,
            num_hidden_layers=30,
            num_attention_heads=9,
            num_key_value_heads=3,
            tie_word_embeddings=True,
        )
    )


def timed(action, repeats: int) -> float:
    """Median seconds of `action`, after one call that warms up."""
    action()
    seconds = []
    for _ in range(repeats):
        started = time.perf_counter()
        action()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--every", type=int, default=500)
    options = parser.parse_args()
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = build().to(device)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-4)
    ids = torch.randint(0, 49152, (options.batch, options.tokens), device=device)

    def step() -> None:
        model(input_ids=ids, labels=ids).loss.backward()
        optimiser.step()
        optimiser.zero_grad()

    step_seconds = timed(step, options.steps)
    watch = Watch(options.every)
    measure_seconds = timed(lambda: watch.measure(model), options.steps)
    share = measure_seconds / (options.every * step_seconds)
    print(f"device {device}, {torch.get_num_threads()} threads, batch {options.batch} x {options.tokens} tokens")
    print(f"training step       {step_seconds:8.3f} s")
    print(f"epsilon measurement {measure_seconds:8.3f} s, {measure_seconds / step_seconds:.3f} of a step")
    print(f"every {options.every} steps: {share:.4%} of the training time")


if __name__ == "__main__":
    main()
