"""Calls that a server could stretch without end."""

from __future__ import annotations

import threading
import time

import pytest

from repcap.sources.remote.patience import Cancelled, Deadline, TooLate, within


def test_what_comes_in_time() -> None:
    assert within(Deadline(5.0), lambda: 7) == 7
    with pytest.raises(KeyError, match="x"):
        within(Deadline(5.0), lambda: {}["x"])


def test_what_comes_too_late_is_put_away() -> None:
    go_on, put_away = threading.Event(), threading.Event()
    seen: list[str] = []

    def late(result: str) -> None:
        seen.append(result)
        put_away.set()

    def slow() -> str:
        assert go_on.wait(10)
        return "answer"

    with pytest.raises(TooLate):
        within(Deadline(0.05), slow, late=late)
    assert seen == []
    go_on.set()
    assert put_away.wait(10)
    assert seen == ["answer"]


def test_a_deadline_that_is_put_off() -> None:
    deadline = Deadline(0.2)

    def slow_but_alive() -> int:
        for _ in range(10):
            time.sleep(0.05)
            deadline.put_off(0.2)
        return 1

    assert within(deadline, slow_but_alive) == 1
    deadline.put_off(-1.0)
    assert deadline.left > 0  # it never comes nearer


def test_a_call_that_is_not_wanted_any_more() -> None:
    cancel, go_on = threading.Event(), threading.Event()
    threading.Timer(0.05, cancel.set).start()
    started = time.monotonic()
    with pytest.raises(Cancelled):
        within(Deadline(30.0), lambda: go_on.wait(30), cancel=cancel)
    go_on.set()
    assert time.monotonic() - started < 10
