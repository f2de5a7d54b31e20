"""Progress in a notebook: a bar that comes by itself where a call takes more than a second."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

DELAY = 1.0
"""Seconds before the bar is shown."""


def running() -> bool:
    """Whether this process is the kernel of a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return shell is not None and "ipykernel" in type(shell).__module__


class Update(Protocol):
    """What moves a bar: (done, total), or a state that knows its `fraction`."""

    def __call__(self, done: Any, total: int | None = None) -> None: ...


@contextmanager
def bar(label: str) -> Iterator[Update]:
    """A bar as a function of (done, total); nothing is shown of a call that ends within `DELAY`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # no ipywidgets: a bar of text does as well
        from tqdm.auto import tqdm

        shown = tqdm(desc=label, delay=DELAY, leave=False, unit_scale=True, mininterval=0.2)

    def update(done: Any, total: int | None = None) -> None:
        if total is None:
            done, total = int(1000 * getattr(done, "fraction", 0.0)), 1000
        shown.total = total
        shown.update(done - shown.n)

    try:
        yield update
    finally:
        shown.close()
