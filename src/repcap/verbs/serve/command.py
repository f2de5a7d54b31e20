"""`repcap serve`: the page in a browser, from this machine to this machine."""

from __future__ import annotations

import errno
import sys
import tempfile
from contextlib import ExitStack
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Annotated, Any

import typer

from repcap.console import common
from repcap.errors import InputError
from repcap.page.gathering import PublishedOption, SourcesArgument, gather
from repcap.page.site import build

HOST = "127.0.0.1"


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
    daemon_threads = True

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
