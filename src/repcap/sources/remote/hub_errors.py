"""What the Hub, a server or the network said, as one line of ours.

Everything that can go wrong over HTTP is named here once: by the Hub's `X-Error-Code` first (a gated repository is
also "not found" to huggingface_hub), then by the status, then by the kind of transport failure.
"""

from __future__ import annotations

import importlib
import re
import ssl
from collections.abc import Mapping
from typing import Any

from huggingface_hub import errors as hub
from huggingface_hub.errors import HfHubHTTPError

from repcap.errors import RemoteError

RETRIED = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses that may pass by themselves."""


def http_library() -> Any:
    """The HTTP library that the installed huggingface_hub is built on (httpx, or a fork of it)."""
    base = next(kind for kind in HfHubHTTPError.__mro__ if kind.__name__ == "HTTPError" and kind is not HfHubHTTPError)
    return importlib.import_module(base.__module__.partition(".")[0])


def explain_status(
    status: int,
    headers: Mapping[str, str],
    what: str,
    *,
    repo: str | None = None,
    endpoint: str = "",
    revision: str = "",
) -> RemoteError:
    """The error for an answer of `status`.

    what: the file or call, for the message. repo: `org/name` where the answer is the Hub's own, None for other
    servers. endpoint: of the Hub where it is asked, with a token; empty for other servers. headers: of the answer, keys
    in any case. Nothing of the body is read.
    """
    lower = {key.lower(): value for key, value in headers.items()}
    if repo is not None:
        named = _named_by_hub(status, lower, what, repo, endpoint, revision)
        if named is not None:
            return RemoteError(named)
    if status == 401:
        way = "check HF_TOKEN, or log in with `hf auth login`" if endpoint else "give an address that needs none"
        return RemoteError(f"{what}: the server wants a login (401): {way}")
    if status == 403:
        why = "the token may not read it, or the address has expired" if endpoint else "the address may have expired"
        return RemoteError(f"{what}: the server refuses access (403): {why}")
    if status in (404, 410):
        return RemoteError(f"{what}: there is no such file ({status}): check the name")
    if status == 416:
        return RemoteError(
            f"{what}: the server says that the bytes asked for lie beyond the end (416): "
            "the file is truncated there, or its header is wrong"
        )
    if status == 429:
        wait = lower.get("retry-after")
        said = wait is not None and re.fullmatch("[0-9]{1,6}", wait)
        after = f"wait {wait} s, then run again" if said else "wait some minutes, then run again"
        return RemoteError(f"{what}: too many requests (429): {after}")
    if status >= 500 or status in RETRIED:
        return RemoteError(f"{what}: the server fails ({status}): try later")
    return RemoteError(f"{what}: the server answered with status {status}, which is of no use here")


def _named_by_hub(
    status: int, headers: Mapping[str, str], what: str, repo: str, endpoint: str, revision: str
) -> str | None:
    code, message = headers.get("x-error-code"), headers.get("x-error-message", "")
    if code == "GatedRepo":
        return (
            f"{repo} is gated: ask for access at {endpoint}/{repo}, then log in with `hf auth login` or set HF_TOKEN "
            "to a token of that account"
        )
    if message == "Access to this resource is disabled.":
        return f"{repo} has been disabled at {endpoint}: its files cannot be read"
    if code == "RevisionNotFound":
        return f"{repo} has no revision {revision or 'main'!r}: give a branch, a tag or a commit of that repository"
    if code == "EntryNotFound":
        return f"{what}: there is no such file at {revision[:12] or 'this revision'}; see repcap inspect {repo}"
    if (
        code == "RepoNotFound"
        or (status == 401 and "credentials" not in message)
        or (status == 404 and code is None and what == repo)
    ):
        return (
            f"{repo} is not at {endpoint}, or is private: check the name, or set HF_TOKEN to a token that may read it"
        )
    if status == 401:
        return f"{what}: the token is not valid (401): check HF_TOKEN, or log in again with `hf auth login`"
    return None


def explain(
    error: BaseException, what: str, *, repo: str | None = None, endpoint: str = "", revision: str = ""
) -> RemoteError:
    """The error for an exception of huggingface_hub, of its HTTP library, or of the operating system."""
    if isinstance(error, RemoteError):
        return error
    response = getattr(error, "response", None)
    if isinstance(error, hub.HfHubHTTPError) and response is not None:
        return explain_status(
            response.status_code, response.headers, what, repo=repo, endpoint=endpoint, revision=revision
        )
    if isinstance(error, hub.OfflineModeIsEnabled):
        return RemoteError(f"{what} is not in the cache, and HF_HUB_OFFLINE is set: unset it to read from the network")
    if isinstance(error, hub.HFValidationError):
        return RemoteError(f"{what}: not a name that the Hub takes: {error}")
    if isinstance(error, hub.LocalTokenNotFoundError):
        return RemoteError(f"{what}: no token is stored: log in with `hf auth login`, or set HF_TOKEN")
    # hf_hub_download hides the reason behind "not in the local cache".
    if isinstance(error, hub.EntryNotFoundError) and error.__cause__ is not None:
        return explain(error.__cause__, what, repo=repo, endpoint=endpoint, revision=revision)
    return RemoteError(_transport(error, what, bool(endpoint)))


def _transport(error: BaseException, what: str, hub_asked: bool) -> str:
    http, named = http_library(), "HF_ENDPOINT" if hub_asked else "the address"
    if isinstance(error, http.ConnectTimeout):
        return f"{what}: the server cannot be reached (no answer to a connection): check the network or the proxy"
    if isinstance(error, http.TimeoutException):
        return f"{what}: the server stopped answering (time-out): try later"
    if isinstance(error, http.ProxyError):
        return f"{what}: the proxy refuses ({_reason(error)}): check HTTPS_PROXY"
    if isinstance(error, http.ConnectError):
        return f"{what}: the server cannot be reached ({_reason(error)}): check the network, the proxy and {named}"
    if isinstance(error, (http.UnsupportedProtocol, http.InvalidURL)):
        return f"{what}: the address is none ({_reason(error)}): check {named} and HTTPS_PROXY"
    if isinstance(error, http.HTTPError):
        return f"{what}: the connection was lost ({_reason(error)}): try again"
    if isinstance(error, UnicodeEncodeError):
        return f"{what}: the token has a character that no token has: check HF_TOKEN"
    if isinstance(error, ssl.SSLError) or (isinstance(error, FileNotFoundError) and error.filename is None):
        return f"{what}: certificates cannot be read ({_reason(error)}): check SSL_CERT_FILE"
    if isinstance(error, OSError) and error.errno is not None and not isinstance(error, ConnectionError):
        return (
            f"{what}: huggingface_hub cannot use its own files ({_reason(error)}): set HF_HOME to a directory that can "
            "be written, on a disk with room"
        )
    if isinstance(error, ValueError) and "proxy" in str(error):
        return f"{what}: there is no such proxy ({_reason(error)}): check HTTPS_PROXY"
    if isinstance(error, ValueError):
        return f"{what}: the server's answer cannot be understood ({_reason(error)}): check {named}"
    return f"{what}: {_reason(error)}"


def _reason(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return text[:200] or type(error).__name__
