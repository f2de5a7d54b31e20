"""A small model, its data and a real Trainer."""

from __future__ import annotations

import pytest
import torch


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, index):
        ids = (torch.arange(6) * (index + 3)) % 40
        return {"input_ids": ids, "labels": ids}


@pytest.fixture
def trainer(tmp_path):
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")

    def build(*callbacks, tied=True, steps=6, **options):
        torch.manual_seed(0)
        config = transformers.LlamaConfig(
            vocab_size=40,
            hidden_size=8,
            intermediate_size=12,
            num_hidden_layers=1,
            num_attention_heads=2,
            num_key_value_heads=2,
            tie_word_embeddings=tied,
        )
        settings = {
            "output_dir": str(tmp_path),
            "max_steps": steps,
            "per_device_train_batch_size": 4,
            "learning_rate": 1e-2,
            "logging_steps": 4,
            "report_to": "none",
            "save_strategy": "no",
            "use_cpu": True,
            "disable_tqdm": True,
            "dataloader_pin_memory": False,
            **options,
        }
        return transformers.Trainer(
            model=transformers.LlamaForCausalLM(config),
            args=transformers.TrainingArguments(**settings),
            train_dataset=Rows(),
            eval_dataset=Rows(),
            callbacks=list(callbacks),
        )

    return build
