"""The environment variables that huggingface_hub reads when it is imported, looked at before it stumbles over them."""

from __future__ import annotations

import os
import sys
from urllib.parse import urlsplit

from repcap.errors import InputError

SECONDS = ("HF_HUB_DOWNLOAD_TIMEOUT", "HF_HUB_ETAG_TIMEOUT")


def check_environment() -> None:
    """Refuse what huggingface_hub could not be imported with, or what would make it use no sensible address.

    Nothing is checked once it has been imported: the variables are not read again then.

    Raises
    ------
    InputError
        with the name of the variable.
    """
    if "huggingface_hub.constants" in sys.modules:
        return
    for name in SECONDS:
        _check_seconds(name, os.environ.get(name))
    _check_endpoint(os.environ.get("HF_ENDPOINT"))


def _check_seconds(name: str, value: str | None) -> None:
    if value is None:
        return
    try:
        right = int(value) >= 0  # 0 is the default to huggingface_hub
    except ValueError:
        right = False
    if not right:
        raise InputError(f"{name} is {value[:80]!r}: give a whole number of seconds, or unset it")


def _check_endpoint(value: str | None) -> None:
    if value is None:
        return
    try:
        parts = urlsplit(value)
        right = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        right = False
    if not right:
        raise InputError(f"HF_ENDPOINT is {value[:80]!r}, which is no address: write https://host, or unset it")
