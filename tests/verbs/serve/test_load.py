"""`repcap serve` while hundreds of clients are slow, silent or many: real sockets, the real program."""

from __future__ import annotations

import contextlib
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from repcap.verbs.serve import command

REQUEST = b"GET /large HTTP/1.0\r\nHost: localhost\r\n\r\n"
CLIENTS = 200


@pytest.fixture
def site(tmp_path):
    (tmp_path / "index.html").write_text("<p>here</p>" * 1000)
    (tmp_path / "large").write_bytes(bytes(20_000_000))
    return tmp_path


@contextlib.contextmanager
def serving(site, **limits):
    """The program; yields (process, port) and looks at its end that it has complained of nothing."""

    def limited() -> None:
        for name, value in limits.items():
            resource.setrlimit(getattr(resource, name), (value, value))

    words = [sys.executable, "-m", "repcap", "serve", str(site), "--port", "0", "--quiet"]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=limited
    ) as process:
        try:
            yield process, int(process.stdout.readline().strip().rstrip("/").rpartition(":")[2])
        finally:
            process.send_signal(signal.SIGTERM)
            _, err = process.communicate(timeout=30)
        assert (process.returncode, err) == (0, "")


def answered(port, within=2.0):
    """Seconds until a request was answered in full."""
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        client.sendall(b"GET / HTTP/1.0\r\nHost: localhost\r\n\r\n")
        body = b"".join(iter(lambda: client.recv(65536), b""))
    assert body.startswith(b"HTTP/1.0 200")
    assert len(body) > 11_000
    took = time.monotonic() - began
    assert took < within
    return took


def status(process, name):
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(f"{name}:")).split()[1])


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="threads and memory are read from /proc")
def test_slow_clients_hold_nobody(site):
    """A byte a second, readers that do not read, silent and half-open ones, and requests in between."""
    with serving(site) as (process, port), contextlib.ExitStack() as stack:
        answered(port)
        before = status(process, "VmRSS")
        slow = []
        for number in range(CLIENTS):
            client = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10))
            kind = number % 4
            if kind == 1:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.sendall({0: REQUEST[:1], 1: REQUEST, 2: REQUEST[:20], 3: b""}[kind])
            if kind == 2:
                client.shutdown(socket.SHUT_WR)  # half-open: it still listens
            slow.append((kind, client))
        for turn in range(1, 4):
            for kind, client in slow:
                if kind == 0:
                    client.sendall(REQUEST[turn : turn + 1])
                elif kind == 1:
                    client.recv(1)
            answered(port)
            time.sleep(0.7)
        assert status(process, "Threads") <= CLIENTS + 10
        assert status(process, "VmRSS") - before < 60_000  # kB
        assert not slow[2][1].recv(100).startswith(b"HTTP/1.0 200")  # of half a request nothing is made


def test_two_hundred_requests_at_once(site):
    with serving(site) as (_, port), ThreadPoolExecutor(CLIENTS) as pool:
        together = threading.Barrier(CLIENTS)

        def one(_):
            together.wait(20)
            return answered(port, 8.0)

        assert len(list(pool.map(one, range(CLIENTS)))) == CLIENTS
        answered(port)


def test_more_clients_than_files(site):
    """Where a process may open few files, the oldest connections make room."""
    with serving(site, RLIMIT_NOFILE=40) as (_, port), contextlib.ExitStack() as stack:
        for _ in range(100):
            stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10))
        answered(port)


@pytest.fixture
def server(site, monkeypatch):
    """In this process, with little patience."""
    monkeypatch.setattr(command, "MOST", 8)
    monkeypatch.setattr(command, "PATIENCE", 0.5)
    made = command.open_server(site, 0)
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    yield made
    made.shutdown()
    made.server_close()
    thread.join(5)


def test_who_is_late_is_closed(server):
    with socket.create_connection(server.server_address, timeout=10) as silent:
        silent.sendall(b"GET")
        began = time.monotonic()
        assert silent.recv(10) == b""
        assert 0.3 < time.monotonic() - began < 5
    end = time.monotonic() + 5
    while server._since and time.monotonic() < end:
        time.sleep(0.02)
    assert not server._since


def test_the_oldest_makes_room(server, monkeypatch, capfd):
    monkeypatch.setattr(command, "PATIENCE", 60.0)
    before = threading.active_count()
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(socket.create_connection(server.server_address, timeout=10)) for _ in range(30)]
        assert clients[0].recv(10) == b""
        answered(server.server_address[1])
        assert len(server._since) <= 8
        assert threading.active_count() - before <= 10
        clients[-1].settimeout(0.1)
        with pytest.raises(TimeoutError):  # the newest are waited for
            clients[-1].recv(10)
    assert capfd.readouterr().err == ""
