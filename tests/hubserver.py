"""A Hub on loopback: model info, resolve with a redirect to another origin, ranges, and faults on demand.

Two servers run, as at the real Hub: the front (`/api/models/...`, `/org/name/resolve/...`) and the store of large
files, on another port and so another origin, that the front redirects to. Every request is written down with the
bytes that were sent for it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

PIECE = 1 << 16
LARGE = (".safetensors", ".gguf", ".bin", ".pt")


@dataclasses.dataclass
class Repo:
    """commits: commit -> {path in repo: bytes or a file on disk}; refs: branch or tag -> commit."""

    commits: dict[str, dict[str, bytes | Path]]
    refs: dict[str, str]
    private: bool = False
    gated: bool = False
    readers: tuple[str, ...] = ()


@dataclasses.dataclass
class Fault:
    """What goes wrong, at which of the matching requests.

    where: `api`, `resolve`, `store` or `any`. skip: so many matching requests pass first. times: then so many fail
    (None: all of them).
    """

    kind: str
    where: str = "store"
    path: str = ""
    method: str = "GET"
    skip: int = 0
    times: int | None = 1
    status: int = 500
    headers: dict[str, str] = dataclasses.field(default_factory=dict)
    after: int = 0
    """Bytes of the body that are sent before the fault shows."""
    delay: float = 0.0
    min_length: int = 0
    """Only requests for at least so many bytes: leaves headers alone."""


@dataclasses.dataclass
class Request:
    where: str
    method: str
    path: str
    headers: dict[str, str]
    status: int = 0
    sent: int = 0
    """Bytes of the body that were written."""

    @property
    def range(self) -> tuple[int, int] | None:
        """First and last byte asked for."""
        value = self.headers.get("range")
        if value is None:
            return None
        first, last = value.removeprefix("bytes=").split("-")
        return int(first), int(last)


class HubServer:
    """The two servers; a context manager.

    endpoint: what HF_ENDPOINT should be. store: the other origin.
    """

    def __init__(self) -> None:
        self.repos: dict[str, Repo] = {}
        self.loose: dict[str, bytes | Path] = {}
        """Files of the store that stand at a plain address: path -> content."""
        self.faults: list[Fault] = []
        self.requests: list[Request] = []
        self.etags = True
        self.renamed: dict[str, str] = {}
        """Old name of a repository -> new name: both kinds of address are answered with 307."""
        self.prefix = ""
        """Path that a mirror stands under."""
        self._seen: dict[int, int] = {}
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> HubServer:
        self._front = self._serve("front")
        self._store = self._serve("store")
        self.endpoint = f"http://127.0.0.1:{self._front.server_address[1]}"
        self.store = f"http://localhost:{self._store.server_address[1]}"
        return self

    def _serve(self, role: str) -> ThreadingHTTPServer:
        server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"hub": self, "role": role}))
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        self._threads.append(thread)
        return server

    def __exit__(self, *exc: object) -> None:
        for server in (self._front, self._store):
            server.shutdown()
            server.server_close()
        for thread in self._threads:
            thread.join(timeout=5)

    def add(self, name: str, files: dict[str, bytes | Path], commit: str | None = None, ref: str = "main") -> str:
        """Put files at a commit that `ref` points to from now on; returns the commit."""
        repo = self.repos.setdefault(name, Repo({}, {}))
        commit = commit or hashlib.sha1(f"{name} {ref} {len(repo.commits)}".encode()).hexdigest()
        repo.commits[commit] = files
        repo.refs[ref] = commit
        return commit

    def fault(self, kind: str, **options: Any) -> Fault:
        fault = Fault(kind, **options)
        self.faults.append(fault)
        return fault

    def heal(self) -> None:
        self.faults.clear()

    def forget(self) -> None:
        self.requests.clear()

    @property
    def sent(self) -> int:
        """Bytes of all bodies since `forget`."""
        return sum(request.sent for request in self.requests)

    def asked(self, where: str | None = None, path: str = "") -> list[Request]:
        return [r for r in self.requests if (where is None or r.where == where) and path in r.path]

    # What the handlers ask

    def pick_fault(self, where: str, path: str, method: str, length: int) -> Fault | None:
        with self._lock:
            for fault in self.faults:
                if fault.where not in (where, "any") or fault.path not in path or fault.method != method:
                    continue
                if length < fault.min_length:
                    continue
                seen = self._seen.get(id(fault), 0)
                self._seen[id(fault)] = seen + 1
                if seen >= fault.skip and (fault.times is None or seen < fault.skip + fault.times):
                    return fault
        return None

    def content(self, address: str) -> bytes | Path | None:
        """What the store holds at `/blob/repo/commit/path` or `/loose/path`."""
        kind, _, rest = address.lstrip("/").partition("/")
        if kind == "loose":
            return self.loose.get(rest)
        for name, repo in self.repos.items():
            for commit, files in repo.commits.items():
                prefix = f"{name}/{commit}/"
                if rest.startswith(prefix):
                    return files.get(rest.removeprefix(prefix))
        return None


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is what some tests are about: no traceback."""


class _Cut(Exception):
    """Close the connection now."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: HubServer
    role: str
    # Small, so that what a client does not read stays with the server and is not counted as sent.
    wbufsize = 0

    def setup(self) -> None:
        self.request.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
        super().setup()

    def log_message(self, *args: Any) -> None:
        """Nothing on stderr."""

    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def _answer(self) -> None:
        path = unquote(urlsplit(self.path).path)
        if self.role == "front" and not path.startswith(self.hub.prefix):
            self._send(404, b"nothing at the root of a mirror")
            return
        path = path.removeprefix(self.hub.prefix) if self.role == "front" else path
        where = "store" if self.role == "store" else "api" if path.startswith("/api/") else "resolve"
        self.entry = Request(where, self.command, path, {k.lower(): v for k, v in self.headers.items()})
        self.hub.requests.append(self.entry)
        asked = self.entry.range
        length = asked[1] - asked[0] + 1 if asked else 0
        self.fault_now = self.hub.pick_fault(where, path, self.command, length)
        try:
            if not self._refuse() and not self._moved(path):
                {"store": self._store, "api": self._api, "resolve": self._resolve}[where](path)
        except (_Cut, BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def _moved(self, path: str) -> bool:
        """Answer for a repository that has a new name; True if it is one."""
        moves = [
            (before + old, before + new) for old, new in self.hub.renamed.items() for before in ("/api/models/", "/")
        ]
        for old, new in moves if self.role == "front" else ():
            if path == old or path.startswith(old + "/"):
                query = urlsplit(self.path).query
                target = f"{self.hub.prefix}{new}{path.removeprefix(old)}"
                self._send(307, b"", {"Location": f"{target}?{query}" if query else target})
                return True
        return False

    def _refuse(self) -> bool:
        """The faults that answer in place of the file; True if one did."""
        fault = self.fault_now
        if fault is None:
            return False
        if fault.kind == "status":
            self._send(fault.status, b'{"error": "on demand"}', {"Content-Type": "application/json", **fault.headers})
        elif fault.kind == "redirect":
            self._send(302, b"", {"Location": fault.headers["Location"]})
        elif fault.kind == "page":
            self._send(200, b"<html>hello</html>", {"Content-Type": "text/html"})
        elif fault.kind == "drop":
            raise _Cut
        elif fault.kind in ("hang", "trickled_head"):
            for byte in b"HTTP/1.1 206 OK\r\n" + b"X-Padding: x\r\n" * 1000 if fault.kind != "hang" else b"":
                self.wfile.write(bytes([byte]))
                time.sleep(fault.delay)
            time.sleep(fault.delay)
            raise _Cut
        else:
            return False
        return True

    def _send(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.entry.status = status
        self.send_response(status)
        for key, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command != "HEAD":
            self._body(body, 0, len(body))

    def _error(self, status: int, code: str, message: str, **headers: str) -> None:
        extra = {
            "X-Error-Code": code,
            "X-Error-Message": message,
            **{k.replace("_", "-"): v for k, v in headers.items()},
        }
        self._send(status, json.dumps({"error": message}).encode(), {"Content-Type": "application/json", **extra})

    def _token(self) -> str | None:
        value = self.entry.headers.get("authorization")
        return value.removeprefix("Bearer ") if value else None

    def _repo(self, name: str) -> Repo | None:
        repo = self.hub.repos.get(name)
        if repo is None or (repo.private and self._token() not in repo.readers):
            if self._token() is None:
                self._error(401, "RepoNotFound", "Invalid username or password.")
            else:
                self._error(404, "RepoNotFound", "Repository not found")
            return None
        return repo

    def _commit(self, repo: Repo, revision: str) -> str | None:
        commit = repo.refs.get(revision, revision)
        if commit not in repo.commits:
            self._error(404, "RevisionNotFound", f"Invalid rev id: {revision}")
            return None
        return commit

    def _api(self, path: str) -> None:
        rest = path.removeprefix("/api/models/")
        name, _, revision = rest.partition("/revision/")
        repo = self._repo(name)
        commit = self._commit(repo, revision or "main") if repo else None
        if repo is None or commit is None:
            return
        siblings = [{"rfilename": file} for file in sorted(repo.commits[commit])]
        if "blobs" in urlsplit(self.path).query:
            for sibling in siblings:
                sibling["size"] = _size(repo.commits[commit][sibling["rfilename"]])  # type: ignore[assignment]
        info = {"_id": "0", "id": name, "modelId": name, "sha": commit, "siblings": siblings, "gated": repo.gated}
        self._send(200, json.dumps(info).encode(), {"Content-Type": "application/json"})

    def _resolve(self, path: str) -> None:
        name, _, rest = path.lstrip("/").partition("/resolve/")
        revision, _, file = rest.partition("/")
        repo = self._repo(name)
        commit = self._commit(repo, revision) if repo else None
        if repo is None or commit is None:
            return
        if repo.gated and self._token() not in repo.readers:
            status = 401 if self._token() is None else 403
            self._error(status, "GatedRepo", f"Access to model {name} is restricted.")
            return
        content = repo.commits[commit].get(file)
        if content is None:
            self._error(404, "EntryNotFound", "Entry not found", X_Repo_Commit=commit)
            return
        common = {"X-Repo-Commit": commit, "ETag": _etag(name, commit, file)}
        if file.endswith(LARGE):
            linked = {"X-Linked-Size": str(_size(content)), "X-Linked-ETag": f'"{_sha256(content)}"'}
            location = f"{self.hub.store}/blob/{name}/{commit}/{file}?signature=secret"
            self._send(302, b"", {"Location": location, **common, **linked})
            return
        self._file(content, common)

    def _store(self, path: str) -> None:
        content = self.hub.content(path)
        if content is None:
            self._send(404, b"no such blob")
            return
        self._file(content, {"ETag": f'"{hashlib.sha1(path.encode()).hexdigest()}"'} if self.hub.etags else {})

    def _file(self, content: bytes | Path, headers: dict[str, str]) -> None:
        size, fault = _size(content), self.fault_now
        kind = fault.kind if fault else ""
        asked = self.entry.range
        headers = {**headers, "Accept-Ranges": "bytes", "Content-Type": "application/octet-stream"}
        if asked is None or kind == "ignore_range":
            status, first, last = 200, 0, size - 1
        elif asked[0] >= size:
            self._send(416, b"", {"Content-Range": f"bytes */{size}"})
            return
        else:
            status, first, last = 206, asked[0], min(asked[1], size - 1)
            shift = 8 if kind == "wrong_content_range" else 0
            headers["Content-Range"] = f"bytes {first + shift}-{last + shift}/{size}"
            if kind == "no_content_range":
                del headers["Content-Range"]
        if kind == "gzip":
            headers["Content-Encoding"] = "gzip"
        if kind == "other_etag":
            headers["ETag"] = '"another"'
        length = last - first + 1
        if kind == "short_body":  # an honest length of a body that is too short
            length -= 1
        self.entry.status = status
        self.send_response(status)
        for key, value in {"Content-Length": str(length), **headers}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command != "HEAD":
            self._body(content, first, length)

    def _body(self, content: bytes | Path, first: int, length: int) -> None:
        fault, done = self.fault_now, 0
        with _reader(content) as read:
            while done < length:
                piece = min(PIECE, length - done)
                if fault and fault.kind == "cut":
                    piece = min(piece, fault.after - done)
                    if piece <= 0:
                        raise _Cut
                if fault and fault.kind == "trickle" and done >= fault.after:
                    piece = 1
                    time.sleep(fault.delay)
                if fault and fault.kind == "slow":
                    time.sleep(fault.delay)
                self.wfile.write(read(first + done, piece))
                done += piece
                self.entry.sent += piece


class _reader:
    """`read(offset, length)` over bytes or a file."""

    def __init__(self, content: bytes | Path) -> None:
        self.content = content
        self.file: Any = None

    def __enter__(self) -> Any:
        if isinstance(self.content, bytes):
            return lambda offset, length: self.content[offset : offset + length]  # type: ignore[index]
        self.file = self.content.open("rb")

        def read(offset: int, length: int) -> bytes:
            self.file.seek(offset)
            return self.file.read(length)

        return read

    def __exit__(self, *exc: object) -> None:
        if self.file is not None:
            self.file.close()


def _size(content: bytes | Path) -> int:
    return len(content) if isinstance(content, bytes) else content.stat().st_size


def _sha256(content: bytes | Path) -> str:
    if isinstance(content, Path) and content.stat().st_size > 1 << 26:  # made up, but its own: gigabytes take minutes
        content = f"{content} {content.stat().st_size} {content.stat().st_mtime_ns}".encode()
    return hashlib.sha256(content if isinstance(content, bytes) else content.read_bytes()).hexdigest()


def _etag(name: str, commit: str, file: str) -> str:
    return f'"{hashlib.sha256(f"{name}/{commit}/{file}".encode()).hexdigest()}"'
