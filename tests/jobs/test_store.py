"""The store: every result once, failures apart, and clear words for files that are not ours or are broken."""

from __future__ import annotations

import functools
import os
import signal
import sqlite3
import subprocess
import sys
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repcap.errors import InputError, StoreError
from repcap.jobs.store import APPLICATION_ID, SCHEMA_VERSION, Store, Stored, canonical_json, unit_key


@pytest.fixture
def path(tmp_path):
    return tmp_path / "results.sqlite"


def rows(path, query="SELECT * FROM results"):
    """What another program sees in the file."""
    with sqlite3.connect(path) as db:
        return db.execute(query).fetchall()


def test_what_is_put_is_there_after_reopening(path):
    record = {"epsilon": 0.1 + 0.2, "name": "Ωμέγα\n", "nested": {"k": 10**30, "none": None}, "list": [1, 2.5, "x"]}
    with Store(path) as store:
        assert store.put("a", "measure", record, {"seed": 3})
    with Store(path, "read") as store:
        result = store.get("a")
        assert result.record == record
        assert result.provenance["seed"] == 3
        assert result.provenance["repcap_version"]
        assert result.created.endswith("+00:00")
        assert [item.key for item in store.records("measure")] == ["a"]
        assert list(store.records("pack")) == []
        assert store.kinds() == {"measure": 1}


def test_put_is_idempotent_and_replaces_only_when_told(path):
    with Store(path) as store:
        assert store.put("a", "measure", {"v": 1})
        assert not store.put("a", "measure", {"v": 2})
        assert store.get("a").record == {"v": 1}
        assert store.put("a", "measure", {"v": 3}, replace=True)
        assert store.get("a").record == {"v": 3}
        assert store.count() == 1


def test_a_unit_is_written_whole_or_not_at_all(path):
    good = Stored("u:a", "u", "measure", {"v": 1}, {})
    with Store(path) as store:
        with pytest.raises(InputError, match="not storable"):
            store.put_all([good, Stored("u:b", "u", "measure", {"v": float("nan")}, {})])
        assert store.count() == 0
        assert not store.has("u")
        store.put_all([good, Stored("u:b", "u", "measure", {"v": 2}, {})])
        assert store.has("u")
        assert store.has("u:b")
        # A unit that is measured again may give fewer results: the old ones must not linger.
        store.put_all([good], replace=True)
        assert [item.key for item in store.records()] == ["u:a"]


def test_an_error_in_the_middle_of_a_unit_takes_back_the_whole(path):
    with Store(path) as store:
        store.put("u:old", "measure", {}, unit="u")
        broken = Stored("u:b", "u", None, {}, {})  # the schema wants a kind
        with pytest.raises(StoreError, match="NOT NULL"):
            store.put_all([Stored("u:a", "u", "measure", {}, {}), broken], replace=True)
        assert [item.key for item in store.unit("u")] == ["u:old"]
        assert store.put("v", "measure", {})  # and the store goes on


def test_success_removes_the_failure_and_failures_count_attempts(path):
    with Store(path) as store:
        store.put_failure("u", "measure", "org/name", "RemoteError", "403\nask for access")
        store.put_failure("u", "measure", "org/name", "RemoteError", "500")
        (failure,) = store.failures("measure")
        assert (failure.attempts, failure.reason, failure.label) == (2, "500", "org/name")
        assert failure.first <= failure.last
        assert not store.has("u")
        store.put("u:embedding", "measure", {}, unit="u")
        assert store.failures() == []


def test_delete_and_find_by_prefix(path):
    with Store(path) as store:
        for key in ("ab1", "ab2", "a%3"):
            store.put(key, "pack", {})
        store.put_failure("ab9", "pack", "x", "E", "r")
        assert store.find("ab") == ["ab1", "ab2", "ab9"]
        assert store.find("a%") == ["a%3"]
        assert store.delete(["ab1", "ab9", "nothing"]) == 2
        assert store.find("ab") == ["ab2"]


def test_missing_key_says_so(path):
    with Store(path) as store, pytest.raises(StoreError, match="no result with key zz"):
        store.get("zz")


@settings(max_examples=40)
@given(st.dictionaries(st.text(max_size=5), st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False))))
def test_key_does_not_depend_on_the_order_of_options(options):
    turned = dict(reversed(list(options.items())))
    assert unit_key("pack", "x", options) == unit_key("pack", "x", turned)
    assert unit_key("pack", "x", options) != unit_key("pack", "y", options)
    assert unit_key("pack", "x", options) != unit_key("pack", "x", {**options, "more-than-5": 1})


def test_key_tells_a_spec_with_a_separator_from_two_fields():
    assert unit_key("a", "b,c", {}) != unit_key("a,b", "c", {})
    assert len(unit_key("a", "b", {})) == 32


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), {1, 2}])
def test_values_that_json_cannot_say_are_refused(value):
    with pytest.raises(InputError, match="not storable"):
        canonical_json({"v": value})


# Files that are not stores


def test_names_that_are_no_utf8(path):
    """The name of a file need not be UTF-8; Python reads it with lone surrogates."""
    name = os.fsdecode(b"m\xff")
    key = unit_key("measure", {"location": name}, {})
    assert key != unit_key("measure", {"location": os.fsdecode(b"m\xfe")}, {})
    with Store(path) as store:
        assert store.put(key, "measure", {"source": name, "name": "é"}, {"asked": name})
        store.put_failure("b", "measure", name, "SourceError", f"{name}: no such file")
    with Store(path, "read") as store:
        store.check()
        assert store.get(key).record == {"source": name, "name": "é"}
        assert store.failures()[0].label == "m\\udcff"


def test_other_database_is_refused_and_untouched(path):
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE music (title TEXT)")
    before = path.read_bytes()
    for mode in ("write", "read"):
        with pytest.raises(StoreError, match="another program"):
            Store(path, mode)
    assert path.read_bytes() == before


def test_file_that_is_no_database(path):
    path.write_bytes(b"k,d,epsilon\n" * 1000)
    for mode in ("write", "read"):
        with pytest.raises(StoreError, match="not a repcap result store"):
            Store(path, mode)


def test_newer_schema_asks_for_an_upgrade(path):
    Store(path).close()
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA user_version={SCHEMA_VERSION + 1}")
    with pytest.raises(StoreError, match="upgrade repcap"):
        Store(path)


def test_missing_empty_directory(tmp_path, path):
    with pytest.raises(StoreError, match="no result store"):
        Store(path, "read")
    assert not path.exists()
    with pytest.raises(StoreError, match="is a directory"):
        Store(tmp_path)
    with pytest.raises(StoreError, match="no directory"):
        Store(tmp_path / "no" / "store")
    path.touch()
    with pytest.raises(StoreError, match="is empty"):
        Store(path, "read")
    with Store(path) as store:  # a file of no bytes is a store in the making
        assert store.put("a", "pack", {})


def test_damage_is_found(path):
    with Store(path) as store:
        for number in range(400):
            store.put(f"key{number}", "pack", {"text": "x" * 500})
    data = bytearray(path.read_bytes())
    page = 4096
    data[5 * page : 9 * page] = os.urandom(4 * page)
    path.write_bytes(data)
    with pytest.raises(StoreError, match="damaged"), Store(path, "read") as store:
        store.check()


def test_record_that_is_no_json_is_found(path):
    with Store(path) as store:
        store.put("a", "pack", {})
    with sqlite3.connect(path) as db:
        db.execute("UPDATE results SET record = '{'")
    with Store(path, "read") as store, pytest.raises(StoreError, match="key a is not JSON"):
        store.check()


@pytest.mark.parametrize(("column", "value"), [("record", "[1]"), ("provenance", "null"), ("record", "7")])
def test_record_that_is_no_object_is_found(path, column, value):
    with Store(path) as store:
        store.put("a", "pack", {})
    with sqlite3.connect(path) as db:
        db.execute(f"UPDATE results SET {column} = ?", (value,))
    with Store(path, "read") as store, pytest.raises(StoreError, match="key a is no JSON object"):
        list(store.records())


_FILLS = """
import resource, sys
from repcap.errors import StoreError
from repcap.jobs.store import Store
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
with Store(sys.argv[1]) as store:
    for n in range(1000):
        try:
            store.put(str(n), "pack", {"x": "y" * 1000})
        except StoreError as error:
            print(n, error)
            break
"""


def test_a_disk_that_takes_no_more_keeps_what_is_stored(path):
    done = subprocess.run([sys.executable, "-c", _FILLS, path], capture_output=True, text=True, check=True)
    count, _, message = done.stdout.strip().partition(" ")
    assert 3 < int(count) < 300
    assert "check the disk, its quota and the limit on the size of files" in message
    assert "damaged" not in message
    with Store(path) as store:
        store.check()
        assert [item.key for item in store.records()] == [str(n) for n in range(int(count))]
        assert store.put("more", "pack", {})


def test_header_says_whose_file_it_is_and_durability_is_full(path):
    with Store(path) as store:
        assert store._file.pragma("journal_mode") == "wal"
        assert store._file.pragma("synchronous") == 2
        store.check()
    assert path.read_bytes()[68:72] == APPLICATION_ID.to_bytes(4, "big")  # offset 68 of the SQLite file format


def test_reader_cannot_write(path):
    Store(path).close()
    with Store(path, "read") as store, pytest.raises(StoreError, match="reading only"):
        store.put("a", "pack", {})


# Several processes


def test_reader_sees_results_while_the_writer_is_at_work(path):
    with Store(path) as writer:
        writer.put("a", "pack", {})
        with Store(path, "read") as reader:
            assert reader.count() == 1
            writer.put("b", "pack", {})
            assert reader.count() == 2


def test_read_only_directory(path):
    with Store(path) as store:
        store.put("a", "pack", {"v": 1})
    path.parent.chmod(0o500)
    try:
        with Store(path, "read") as store:
            assert store.get("a").record == {"v": 1}
    finally:
        path.parent.chmod(0o700)


def test_a_second_writer_waits_then_gives_up_with_one_line(path, monkeypatch):
    monkeypatch.setattr("repcap.jobs.sqlite_file.BUSY_SECONDS", 0.1)
    with Store(path) as first, Store(path) as second:
        with first._file.transaction(), pytest.raises(StoreError, match="another process"):
            second.put("a", "pack", {})
        assert second.put("a", "pack", {})


def test_two_processes_that_make_the_same_store_at_once(path):
    program = (
        "import sys; from repcap.jobs.store import Store\n"
        "with Store(sys.argv[1]) as s:\n"
        "    for n in range(30): s.put(f'shared{n}', 'pack', {}); s.put(f'{sys.argv[2]}-{n}', 'pack', {})"
    )
    both = [subprocess.Popen([sys.executable, "-c", program, path, name]) for name in ("one", "two")]
    assert [process.wait() for process in both] == [0, 0]
    with Store(path, "read") as store:
        store.check()
        assert store.count() == 90


def test_another_process_turns_on_the_log_at_the_same_moment(path, monkeypatch):
    """SQLite says `locked` at once then, whatever its time-out."""
    refused = []

    class Refusing(sqlite3.Connection):
        def execute(self, sql, *values):
            if "journal_mode" in sql and len(refused) < 3:
                refused.append(sql)
                raise sqlite3.OperationalError("database is locked")
            return super().execute(sql, *values)

    monkeypatch.setattr("sqlite3.connect", functools.partial(sqlite3.connect, factory=Refusing))
    with Store(path) as store:
        store.put("a", "pack", {})
    assert len(refused) == 3
    with Store(path, "read") as store:
        assert store.has("a")


def test_a_pipe_is_no_store(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for mode in ("read", "write"):
        with pytest.raises(StoreError, match="is no regular file"):
            Store(tmp_path / "pipe", mode)


WRITER = """
import sys
from repcap.jobs.store import Stored, Store
with Store(sys.argv[1]) as store:
    for number in range(100000):
        unit = f"unit{number}"
        if store.has(unit):
            continue
        pair = [Stored(f"{unit}:{half}", unit, "measure", {"n": number, "pad": "x" * 2000}, {}) for half in "ab"]
        store.put_all(pair)
        sys.stdout.write(f"{number}\\n")
        sys.stdout.flush()
"""


def test_killed_writer_loses_nothing_that_was_acknowledged(path):
    """Ten writers, each killed with SIGKILL in the middle: what put_all returned for is there, units are whole."""
    acknowledged: list[int] = []
    for turn in range(10):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, path], stdout=subprocess.PIPE, text=True)
        acknowledged.append(int(writer.stdout.readline()))
        timer = threading.Timer(0.005 + 0.013 * turn, writer.send_signal, [signal.SIGKILL])
        timer.start()
        acknowledged.extend(int(line) for line in writer.stdout if line.endswith("\n"))
        timer.join()
        writer.stdout.close()
        assert writer.wait() == -signal.SIGKILL
        with Store(path, "read") as store:
            store.check()
            units = [result.unit for result in store.records()]
        assert {f"unit{number}" for number in acknowledged} <= set(units)
        assert all(units.count(unit) == 2 for unit in set(units))
        assert len(units) - 2 * len(acknowledged) <= 2 * (turn + 1)  # stored, but killed before it could say so
    assert len(acknowledged) == len(set(acknowledged))


def test_threads_get_a_clear_error_not_a_crash(path):
    caught = []

    def use(store):
        try:
            store.count()
        except StoreError as error:
            caught.append(str(error))

    with Store(path) as store:
        thread = threading.Thread(target=use, args=(store,))
        thread.start()
        thread.join()
    assert len(caught) == 1
    assert "thread" in caught[0]
