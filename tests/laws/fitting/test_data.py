"""Tables of packings: the shipped ones are whole, and bad files get one clear line."""

from __future__ import annotations

import numpy as np
import pytest

from repcap.errors import InputError
from repcap.laws.fitting import data


def test_shipped_tables_are_whole():
    optimized, random = data.optimized_packing(), data.random_packing()
    assert (len(optimized), len(random)) == (166, 256)
    assert optimized.degenerate.sum() == 6
    assert optimized.epsilon[optimized.degenerate].max() < 2e-3
    assert random.degenerate.sum() == 10
    first = (optimized.k[0], optimized.d[0], optimized.epsilon[0])
    assert first == (32000, 4096, 0.024998601526021957)


def test_shipped_models_are_whole():
    models = data.published_models()
    assert len(models) == 45
    assert sum(model.capacity is not None for model in models) == 31
    llama = next(model for model in models if model.model == "Llama 2 7B")
    assert (llama.d_model, llama.epsilon, llama.capacity, llama.capacity_text) == (4096, 0.0645, 3.99e7, "3.99e7")
    assert llama.epsilon_null == 2 / 64
    assert llama.epsilon_ratio == pytest.approx(0.0645 * 32)


@pytest.mark.parametrize(
    ("header", "separator"),
    [("k,d,epsilon", ","), ("d_model;EPS;k", ";"), (" vectors \tdim\tmax_cosine\tnote", "\t")],
)
def test_csv_headers_and_delimiters(tmp_path, header, separator):
    names = [name.strip().lower() for name in header.split(separator)]
    values = {"k": "6", "vectors": "6", "d": "3", "d_model": "3", "dim": "3", "note": "x"}
    values |= dict.fromkeys(("epsilon", "eps", "max_cosine"), "0.4472")
    file = tmp_path / "cells.csv"
    file.write_text(f"{header}\n{separator.join(values[name] for name in names)}\n", encoding="utf-8-sig")
    table = data.load_table(file)
    assert (table.k.tolist(), table.d.tolist(), table.epsilon.tolist()) == ([6.0], [3.0], [0.4472])
    assert table.source == str(file)


def test_built_in_names():
    assert len(data.load_table("optimized")) == 166
    assert len(data.load_table("random")) == 256


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("k,d,epsilon\n6,3,abc\n", r"epsilon = 'abc' in row 1"),
        ("k,d,epsilon\n6,3\n", r"epsilon = None in row 1"),
        ("k,d\n6,3\n", r"no column for epsilon .* the columns are: k, d"),
        ("k,d,epsilon\n6,3,0.4\n6,3,1.5\n", r"epsilon = 1.5 in row 2 .* between 0 and 1"),
        ("k,d,epsilon\n6,3,nan\n", r"epsilon = nan in row 1"),
        ("k,d,epsilon\n1,3,0.4\n", r"k = 1 in row 1 .* at least 2"),
        ("k,d,epsilon\ninf,3,0.4\n", r"k = inf in row 1"),
        ("k,d,epsilon\n6,0,0.4\n", r"d = 0 in row 1 .* at least 1"),
        ("k,d,epsilon\n6,3,0.4\n100,16,0,35\n", r"row 2 .* more fields than the header"),
        ("k,d,epsilon\n", r"holds no rows"),
        ("", r"holds no rows"),
    ],
)
def test_bad_csv_is_one_clear_line(tmp_path, text, message):
    file = tmp_path / "bad.csv"
    file.write_text(text)
    with pytest.raises(InputError, match=message):
        data.load_table(file)


def test_binary_is_no_csv(tmp_path):
    file = tmp_path / "bad.csv"
    file.write_bytes(b"\xff\xfe\x00\x01" * 100)
    with pytest.raises(InputError, match="no CSV text"):
        data.load_table(file)


def test_missing_file_and_unknown_suffix(tmp_path):
    with pytest.raises(InputError, match="no file"):
        data.load_table(tmp_path / "nowhere.csv")
    with pytest.raises(InputError, match=r"ends in \.csv"):
        data.load_table(tmp_path / "cells.xlsx")


def test_table_checks_shapes():
    with pytest.raises(InputError, match="one length"):
        data.PackingTable(np.array([6.0]), np.array([3.0, 4.0]), np.array([0.4]))


def test_packings_among_records():
    records = [
        {"k": 120, "d": 8, "coherence": 0.5, "seed": 0},
        {"source": "x", "epsilon": 0.1},
        {"k": 9, "d": 3, "coherence": None},
        {"k": 6, "d": 3, "coherence": 0.4472},
    ]
    table = data.from_records(records, "these")
    assert (table.k.tolist(), table.epsilon.tolist(), table.source) == ([6.0, 120.0], [0.4472, 0.5], "these")
    with pytest.raises(InputError, match="these holds no packings: fill it with `repcap sweep`"):
        data.from_records(records[1:3], "these")


def test_ranges():
    assert data.optimized_packing().ranges()["k"] == [2000.0, 32000.0]
    assert data.optimized_packing().take(np.zeros(166, dtype=bool)).ranges() == {}
