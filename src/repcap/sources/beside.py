"""What lies beside local weights: `config.json` (or `params.json`) and a tokenizer."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from repcap.plain_json import parse_json
from repcap.sources.tokens import VocabTokens, find_tokens

MAX_JSON = 64 << 20
"""A configuration or an index is never larger."""
CONFIGS = ("config.json", "params.json", "cfg.json")


class Beside:
    """Nothing: a tensor in memory, a file at a plain address."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    @functools.cached_property
    def config(self) -> dict[str, Any]:
        """`config.json` or what stands for it, {} where there is none."""
        return {}

    @functools.cached_property
    def tokens(self) -> VocabTokens | None:
        return None

    def facts(self, name: str) -> dict[str, Any]:
        """A small JSON object of this name, {} where there is none that can be read."""
        return {}


class Folder(Beside):
    """Configuration and tokenizer of a directory, read when asked for. Damaged ones are warnings, not errors."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path

    @functools.cached_property
    def config(self) -> dict[str, Any]:
        for name in CONFIGS:
            path = self.path / name
            if path.is_symlink() and not path.exists():
                self.warnings.append(f"{name} is a link to {path.readlink()}, which is not there")
            if not path.is_file():
                continue
            try:
                if path.stat().st_size > MAX_JSON:
                    raise ValueError("too large")
                found = parse_json(path.read_bytes())
            except (OSError, ValueError) as error:
                self.warnings.append(f"{name} cannot be read ({error}): tying is judged without it")
                continue
            if isinstance(found, dict):
                return found
            self.warnings.append(f"{name} holds no JSON object: tying is judged without it")
        return {}

    def facts(self, name: str) -> dict[str, Any]:
        try:
            path = self.path / name
            found = parse_json(path.read_bytes()) if path.stat().st_size <= MAX_JSON else None
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    @functools.cached_property
    def tokens(self) -> VocabTokens | None:
        found, warnings = find_tokens(self.path)
        self.warnings.extend(warnings)
        return found
