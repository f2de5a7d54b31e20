"""Packings from wherever they lie."""

from __future__ import annotations

import numpy as np
import pytest

import repcap
from repcap.errors import InputError, RepcapError
from repcap.jobs.store import Store
from repcap.studies.packings import packings


@pytest.fixture
def filled(tmp_path):
    path = tmp_path / "results.sqlite"
    with Store(path) as store:
        for k in (8, 12, 20):
            store.put(f"{k}", "pack", {"k": k, "d": 4, "coherence": 1 / 3})
        store.put("m", "measure", {"source": "x", "epsilon": 0.1})
    return path


def test_of_a_store_the_packings_and_nothing_else(filled):
    table = packings(filled)
    assert (table.k.tolist(), table.epsilon.tolist()) == ([8.0, 12.0, 20.0], [1 / 3] * 3)
    assert repcap.fit(filled, "ratio").n == 3


def test_what_is_no_store_or_has_no_packings(tmp_path):
    empty = tmp_path / "empty.db"
    Store(empty).close()
    with pytest.raises(InputError, match="holds no packings"):
        packings(empty)
    other = tmp_path / "other.db"
    other.write_text("this is no database")
    with pytest.raises(RepcapError, match="other"):
        packings(other)


def test_a_table_a_name_and_arrays():
    assert len(packings("optimized")) == 166
    assert len(packings(packings("random"))) == 256
    assert len(packings((np.array([6]), np.array([3]), np.array([0.5])))) == 1
