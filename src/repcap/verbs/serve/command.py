"""`repcap serve`: the page in a browser, from this machine to this machine."""

from __future__ import annotations

import errno
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socket import SHUT_RDWR, socket
from threading import Lock
from typing import Annotated, Any

import typer

from repcap.console import common
from repcap.errors import InputError
from repcap.page.gathering import PublishedOption, SourcesArgument, gather
from repcap.page.site import build

HOST = "127.0.0.1"
MOST, PATIENCE = 256, 60.0
"""Connections at once, and seconds that one has for its request and to read the answer."""


def command(
    sources: SourcesArgument = None,
    published: PublishedOption = False,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0 takes any free port.")] = 8000,
) -> None:
    """Show the page of many models in a browser, until Ctrl-C.

    Takes a directory that repcap report has made, or whatever repcap report takes: it is read once, at the start.
    It listens on 127.0.0.1 alone.
    """
    with ExitStack() as stack:
        directory = _directory(sources, published, stack)
        server = stack.enter_context(open_server(directory, port))
        address = f"http://{HOST}:{server.server_address[1]}/"
        common.stdout().print(address, markup=False, soft_wrap=True)
        common.note("Ctrl-C ends it")
        try:
            server.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            common.note("ended")


def open_server(directory: Path, port: int) -> ThreadingHTTPServer:
    """A server of the files of `directory` on 127.0.0.1; port 0 takes any free one.

    Raises
    ------
    InputError
        if the port is taken or not allowed.
    """
    try:
        return Server((HOST, port), partial(Handler, directory=str(directory)))
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise InputError(
                f"port {port} is in use: give another with --port, or --port 0 for any free one"
            ) from error
        if error.errno == errno.EACCES:
            raise InputError(f"port {port} is not allowed to you: give one above 1023 with --port") from error
        raise


class Server(ThreadingHTTPServer):
    """A thread a connection, bounded: one that is late is closed, and the oldest one where there are too many.

    So clients that send or read a byte a second, or nothing, hold neither a newcomer nor memory.
    """

    daemon_threads = True
    request_queue_size = 256  # connections that come at once wait here, and are not refused

    def __init__(self, *args: Any) -> None:
        self._since: dict[socket, float] = {}
        """Connections that are open, the oldest first."""
        self._lock = Lock()
        super().__init__(*args)

    def get_request(self) -> tuple[socket, Any]:
        try:
            request, address = super().get_request()
        except OSError:  # no file is left to the process
            self._close_oldest(len(self._since) // 2)
            raise
        with self._lock:
            self._since[request] = time.monotonic()
        self._close_oldest(MOST)
        return request, address

    def service_actions(self) -> None:
        late = time.monotonic() - PATIENCE
        with self._lock:
            in_time = sum(since > late for since in self._since.values())
        self._close_oldest(in_time)

    def _close_oldest(self, keep: int) -> None:
        """Close all but the `keep` newest; their threads find that nobody is there, and end."""
        with self._lock:
            old = list(self._since)[: max(0, len(self._since) - keep)]
            for request in old:
                del self._since[request]
        for request in old:
            with suppress(OSError):
                request.shutdown(SHUT_RDWR)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._since.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A reader that goes away in the middle is no error; anything else is shown as Python does."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class Handler(SimpleHTTPRequestHandler):
    """Files only: no directory listings, no log lines, nothing kept by the browser."""

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        super().end_headers()

    def list_directory(self, path: Any) -> None:
        self.send_error(404)

    def send_head(self) -> Any:
        # A page on another host name that resolves to this machine must not read the results.
        host = (self.headers.get("Host") or "").rpartition(":")[0] or (self.headers.get("Host") or "")
        if host.lower() not in (HOST, "localhost"):
            self.send_error(403)
            return None
        try:
            return super().send_head()
        except ValueError:  # a path that no file can have
            self.send_error(404)
            return None

    def log_message(self, format: str, *args: Any) -> None:
        pass


def _directory(sources: list[Path] | None, published: bool, stack: ExitStack) -> Path:
    """Where the page lies: as given, or made from records in a directory that goes away in the end."""
    if sources and len(sources) == 1 and not published and sources[0].is_dir():
        if not (sources[0] / "index.html").is_file():
            raise InputError(f"{sources[0]} has no index.html: make the page with repcap report, --out {sources[0]}")
        return sources[0]
    records, origin = gather(sources, published)
    made = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="repcap-page-")))
    site = build(records, made, origin=origin)
    for reason in site.skipped:
        common.warn(f"not shown: {reason}")
    return made
