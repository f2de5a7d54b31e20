"""What the flags --debug and --quiet say, for this run of the command line."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass
class Settings:
    debug: bool = False
    quiet: bool = False


current = Settings()


def reset() -> None:
    """Back to the defaults, so that two runs in one process do not share flags."""
    current.debug = current.quiet = False
