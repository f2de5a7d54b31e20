from __future__ import annotations

import csv
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest

from repcap.errors import InputError
from repcap.jobs.store import Store
from repcap.page.records import published_records
from repcap.page.site import build
from repcap.verbs.serve.command import open_server

RECORD = {"source": "org/name", "matrix": "embedding", "dim": 512, "count": 1000, "epsilon": 0.09}


@pytest.fixture
def store(tmp_path):
    path = tmp_path / "results.sqlite"
    with Store(path) as open_store:
        for place in range(3):
            open_store.put(f"key{place}", "measure", {**RECORD, "source": f"org/model-{place}"})
    return path


def test_the_published_table(repcap, tmp_path):
    done = repcap("report", "--published", "--out", tmp_path / "page")
    assert (done.code, "45 models" in done.out) == (0, True)
    assert "repcap serve" in done.err
    assert (tmp_path / "page" / "index.html").is_file()


def test_json_says_what_was_written(repcap, tmp_path, store):
    done = repcap("report", store, "--out", tmp_path / "page", "--figures", "--formats", "svg", "--json")
    assert done.code == 0
    assert done.json["models"] == 3
    assert done.json["bytes"] == (tmp_path / "page" / "index.html").stat().st_size
    assert [path.rsplit("/", 1)[1] for path in done.json["figures"]] == ["epsilon_over_d.svg", "capacity_bracket.svg"]


def test_several_sources_become_one_page(repcap, tmp_path, store):
    pairs = {**RECORD, "source": "org/model-1", "histogram": {"edges": [-1, 0, 1], "counts": [1, 2]}}
    (tmp_path / "pairs.json").write_text(json.dumps(pairs))
    done = repcap("report", store, tmp_path / "pairs.json", "--published", "--out", tmp_path / "page", "--json")
    assert done.json["models"] == 48
    with (tmp_path / "page" / "table.csv").open(newline="") as lines:
        assert [row["name"] for row in csv.DictReader(lines)][:3] == ["model-0", "model-1", "model-2"]


def test_what_is_not_shown_is_said(repcap, tmp_path):
    (tmp_path / "records.json").write_text(json.dumps([RECORD, {**RECORD, "source": "org/flat", "epsilon": None}]))
    done = repcap("report", tmp_path / "records.json", "--out", tmp_path / "page")
    assert done.code == 0
    assert "warning: not shown: flat: epsilon is undefined" in done.err


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "give a result store"),
        (["nowhere.sqlite"], "no such file: nowhere.sqlite"),
        (["--published", "--figures", "--formats", "gif"], "unknown figure format 'gif'"),
        (["--published", "--figures", "--formats", ","], "unknown figure format ''"),
    ],
)
def test_bad_input_is_one_line(repcap, tmp_path, monkeypatch, argv, message):
    monkeypatch.chdir(tmp_path)
    done = repcap("report", *argv)
    assert done.code == 2
    assert done.err.startswith("repcap: error: ")
    assert message in done.err
    assert done.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_figures_without_matplotlib(repcap, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = repcap("report", "--published", "--out", tmp_path, "--figures")
    assert done.code == 2
    assert "pip install 'repcap[plots]'" in done.err


class TestServe:
    @pytest.fixture
    def address(self, tmp_path):
        build(published_records(), tmp_path)
        (tmp_path / "inside").mkdir()
        server = open_server(tmp_path, 0)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        server.server_close()
        thread.join(5)

    def get(self, address, host=None):
        request = urllib.request.Request(address, headers={"Host": host} if host else {})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=10) as answer:
            return answer.status, answer.read(), answer.headers

    def test_the_page_and_its_files(self, address, tmp_path):
        status, body, headers = self.get(f"{address}/")
        assert (status, body) == (200, (tmp_path / "index.html").read_bytes())
        assert headers["Content-Type"].startswith("text/html")
        assert headers["Cache-Control"] == "no-store"
        assert self.get(f"{address}/table.csv")[1] == (tmp_path / "table.csv").read_bytes()

    @pytest.mark.parametrize("path", ["/none", "/inside/", "/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/%00"])
    def test_nothing_else(self, address, path):
        with pytest.raises(urllib.error.HTTPError) as caught:
            self.get(f"{address}{path}")
        assert caught.value.code == 404

    @pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example"])
    def test_a_name_that_was_made_to_point_here_is_refused(self, address, host):
        with pytest.raises(urllib.error.HTTPError) as caught:
            self.get(f"{address}/", host)
        assert caught.value.code == 403

    def test_a_reader_that_goes_away_is_no_error(self, address, tmp_path, capfd):
        (tmp_path / "large").write_bytes(bytes(30_000_000))
        before = threading.active_count()
        parts = urllib.parse.urlsplit(address)
        with socket.create_connection((parts.hostname, parts.port), timeout=10) as gone:
            gone.sendall(b"GET /large HTTP/1.0\r\nHost: LocalHost:1\r\n\r\n")
            assert gone.recv(15) == b"HTTP/1.0 200 OK"
            gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # cut, with what is unread
        assert self.get(f"{address}/")[0] == 200
        deadline = time.monotonic() + 10
        while threading.active_count() > before and time.monotonic() < deadline:
            time.sleep(0.02)
        assert capfd.readouterr().err == ""

    def test_a_busy_port_is_one_line(self, repcap):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            done = repcap("serve", "--published", "--port", port)
        assert (done.code, done.err.count("\n")) == (2, 1)
        assert f"port {port} is in use" in done.err

    def test_a_directory_without_a_page(self, repcap, tmp_path):
        done = repcap("serve", tmp_path)
        assert done.code == 2
        assert "has no index.html" in done.err

    def test_nothing_to_serve(self, repcap):
        assert "give a result store" in repcap("serve").err

    def test_an_error_that_is_not_ours_is_not_hidden(self, tmp_path, monkeypatch):
        def broken(*_):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr("repcap.verbs.serve.command.Server", broken)
        with pytest.raises(InputError, match="not allowed"):
            open_server(tmp_path, 80)

    def test_ctrl_c_ends_it_cleanly(self, store):
        command = [sys.executable, "-m", "repcap", "serve", str(store), "--port", "0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            address = process.stdout.readline().strip()
            assert self.get(address)[0] == 200
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=30)
        assert (process.returncode, out) == (0, "")
        assert "Traceback" not in err


@pytest.mark.parametrize(
    ("body", "said"),
    [("[" * 100_000, "is neither a result store nor JSON"), ("[1" + "0" * 5000 + "]", "holds no records")],
)
def test_json_that_python_cannot_hold(repcap, tmp_path, body, said):
    (tmp_path / "a.json").write_text(body)
    outcome = repcap("report", tmp_path / "a.json", "--out", tmp_path / "page")
    assert outcome.code == 2
    assert said in outcome.err


@pytest.mark.parametrize("argv", [("report", "{}"), ("results", "list", "--store", "{}"), ("serve", "{}")])
def test_a_pipe_does_not_hang(repcap, tmp_path, argv):
    os.mkfifo(tmp_path / "pipe")
    outcome = repcap(*(word.format(tmp_path / "pipe") for word in argv))
    assert outcome.code == 2
    assert "is no regular file" in outcome.err
