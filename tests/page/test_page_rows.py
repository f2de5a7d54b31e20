from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repcap.bracket.interval import bracket
from repcap.errors import InputError
from repcap.jobs.record import published_results
from repcap.jobs.store import Store
from repcap.page.page_rows import Histogram, to_rows
from repcap.page.records import display_name, load_records, published_records
from repcap.page.site import table_csv


def record(**changes):
    return {"source": "org/name", "matrix": "embedding", "dim": 512, "count": 1000, "epsilon": 0.09, **changes}


def test_published_rows_hold_the_published_numbers_and_the_brackets_of_the_laws():
    rows, skipped = to_rows(published_records())
    assert (len(rows), skipped) == (45, [])
    llama = next(row for row in rows if row.name == "Llama 2 7B")
    assert (llama.d, llama.epsilon, llama.klass, llama.family) == (4096, 0.0645, "low", "Llama")
    assert llama.epsilon_ratio == pytest.approx(0.0645 / (2 / 64))
    expected = bracket(4096, 0.0645)
    assert llama.law.log10_k == expected.laws["full"]
    assert llama.explicit.log10_k == expected.explicit.log10_k
    assert llama.upper.log10_k == expected.upper.log10_k
    # Printed in the paper: 3.99e7.
    assert 10**llama.law.log10_k == pytest.approx(llama.published_capacity, rel=2e-3)


@pytest.mark.parametrize("key", ["dim", "epsilon"])
def test_a_record_without_a_needed_key_is_named(key):
    broken = record()
    del broken[key]
    with pytest.raises(InputError, match=f"record 2 .*{key}"):
        to_rows([record(), broken])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dim": 0}, "dim is 0"),
        ({"dim": "wide"}, "malformed"),
        ({"epsilon": "small"}, "malformed"),
        ({"histogram": {"edges": [0, 1]}}, "no list of counts"),
        ({"histogram": {"edges": [0, 1], "counts": [1, 2]}}, "2 edges for 2 counts"),
        ({"histogram": {"edges": [0, 1, 1], "counts": [1, 2]}}, "do not rise"),
        ({"histogram": {"edges": [0, 1], "counts": [-1]}}, "negative"),
        ({"histogram": [1, 2]}, "no list of edges"),
        ({"histogram": {"edges": [0, math.inf], "counts": [1]}}, "not finite"),
        ({"dim": 64.5}, "no number of dimensions"),
        ({"dim": 10**400}, "malformed"),
        ({"epsilon": 1e308}, "is never beyond 3"),
        ({"epsilon": -3.5}, "is never beyond 3"),
        ({"variants": 5}, "no list of records"),
        ({"variants": [5]}, "no list of records"),
        ({"variants": [{"epsilon": 0.1, "epsilon_ratio": 1.0}]}, "lacks 'rows'"),
        ({"estimate": {"rows": 1}}, "lacks 'population'"),
    ],
)
def test_malformed_records_are_one_clear_line(changes, message):
    with pytest.raises(InputError, match=message) as caught:
        to_rows([record(**changes)])
    assert "\n" not in str(caught.value)


def test_a_class_that_is_none_is_worked_out():
    rows, _ = to_rows([record(**{"class": value}) for value in ("huge", {"a": 1}, None)])
    assert {row.klass for row in rows} == {"low"}


def test_names_that_are_no_utf8_can_be_written():
    """The name of a file that is no UTF-8 reaches a record with lone surrogates."""
    rows, _ = to_rows([record(source="dir/m\udcff", family="\ud800", matrix="\udcfe", revision="\udcff")])
    row = rows[0]
    assert (row.name, row.source, row.family) == ("m\\udcff", "dir/m\\udcff", "\\ud800")
    str(row.to_dict()).encode()


@pytest.mark.parametrize("epsilon", [None, math.nan, math.inf])
def test_an_undefined_epsilon_gives_no_row_but_a_reason(epsilon):
    rows, skipped = to_rows([record(epsilon=epsilon), record(source="org/other")])
    assert [row.name for row in rows] == ["other"]
    assert skipped == ["name: epsilon is undefined"]


@pytest.mark.parametrize("epsilon", [-0.01, 0.0, 1.0, 1.2])
def test_an_epsilon_that_no_lines_can_have_gives_a_row_without_a_bracket(epsilon):
    [row], _ = to_rows([record(epsilon=epsilon)])
    assert (row.law, row.explicit, row.upper) == (None, None, None)


def test_a_dimension_beyond_reason_takes_no_time():
    [row], _ = to_rows([record(dim=10**12, epsilon=0.99)])
    assert row.upper is None


def test_variants_without_a_number_are_left_out():
    variants = [
        {"rows": "centred", "epsilon": 0.05, "epsilon_ratio": 0.6},
        {"rows": "distinct", "epsilon": math.nan, "epsilon_ratio": None},
    ]
    [row], _ = to_rows([record(variants=variants)])
    assert [variant.rows for variant in row.variants] == ["centred"]


def test_records_of_one_matrix_become_one_row():
    measured = record(epsilon_se=0.001)
    pairs = record(epsilon=0.0901, epsilon_se=0.5, coherence=0.99, histogram={"edges": [-1, 0, 1], "counts": [1, 3]})
    [row], _ = to_rows([measured, pairs])
    assert (row.epsilon, row.epsilon_se, row.coherence) == (0.09, 0.001, 0.99)
    assert row.histogram.counts == (1.0, 3.0)
    rows, _ = to_rows([measured, {**pairs, "matrix": "unembedding"}])
    assert [row.label for row in rows] == ["name", "name (unembedding)"]


def test_the_role_stands_for_the_tensor_name():
    [row], _ = to_rows([record(matrix="model.embed_tokens.weight", role="embedding")])
    assert row.label == "name"
    [row], _ = to_rows([record(matrix="layers.3.mlp", role=None)])
    assert row.label == "name (layers.3.mlp)"


def test_different_z_are_refused():
    with pytest.raises(InputError, match=r"different z \(2, 3\)"):
        to_rows([record(), record(source="org/other", z=3.0)])


def test_the_null_follows_z():
    [row], _ = to_rows([record(z=3.0)])
    assert row.epsilon_null == pytest.approx(3 / math.sqrt(512))


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("Qwen/Qwen3-8B", "Qwen3-8B"),
        ("hf://Qwen/Qwen3-8B@0123abc", "Qwen3-8B"),
        ("models/tiny/model.safetensors", "tiny"),
        ("models/tiny/model-00001-of-00003.safetensors", "tiny"),
        ("model.safetensors", "model"),
        ("x/y.gguf::token_embd.weight", "y::token_embd.weight"),
        ("/", "/"),
        ("", "unnamed"),
    ],
)
def test_the_name_is_the_telling_part_of_the_source(source, name):
    assert display_name({"source": source}) == name


class TestHistogram:
    @given(
        st.lists(st.integers(0, 1000), min_size=1, max_size=200).filter(any),
        st.integers(1, 60),
        st.floats(0.001, 0.1),
    )
    @settings(max_examples=100)
    def test_joining_bins_loses_no_count_and_keeps_the_integral_at_one(self, counts, bins, width):
        edges = tuple(-1 + width * place for place in range(len(counts) + 1))
        coarse = Histogram(edges, tuple(map(float, counts))).coarser(bins)
        assert len(coarse.counts) <= bins
        assert sum(coarse.counts) == sum(counts)
        assert coarse.counts[0] > 0
        assert set(coarse.edges) <= set(edges)
        widths = [b - a for a, b in zip(coarse.edges[:-1], coarse.edges[1:], strict=True)]
        assert sum(d * w for d, w in zip(coarse.density, widths, strict=True)) == pytest.approx(1)

    def test_an_empty_histogram_is_none(self):
        [row], _ = to_rows([record(histogram={"edges": [0, 1], "counts": [0]})])
        assert row.histogram is None


class TestLoading:
    @pytest.mark.parametrize(
        "content", [record(), [record()], {"records": [record()]}, [{"key": "k", "record": record(), "provenance": {}}]]
    )
    def test_json_of_one_record_or_many(self, tmp_path, content):
        path = tmp_path / "records.json"
        path.write_text(json.dumps(content))
        [row], _ = to_rows(load_records(path))
        assert (row.name, row.d) == ("name", 512)

    def test_a_store(self, tmp_path):
        path = tmp_path / "results.sqlite"
        with Store(path) as store:
            store.put("a", "measure", record(), {"revision": "abc"})
            store.put("b", "pack", {"k": 1})
        [row], _ = to_rows(load_records(path))
        assert (row.name, row.revision) == ("name", "abc")

    def test_a_store_of_the_published_table_and_what_is_exported_of_it(self, tmp_path):
        path = tmp_path / "results.sqlite"
        with Store(path) as store:
            for result in published_results():
                store.put_all([result])
            exported = [result.to_dict() for result in store.records()]
        rows, _ = to_rows(load_records(path))
        expected, _ = to_rows(published_records())
        assert [row.epsilon for row in rows] == [row.epsilon for row in expected]
        assert [row.published_capacity for row in rows] == [row.published_capacity for row in expected]
        (tmp_path / "export.json").write_text(json.dumps([{"kind": "pack", "record": {"k": 3}}, *exported]))
        assert to_rows(load_records(tmp_path / "export.json"))[0] == rows

    def test_a_store_without_measurements(self, tmp_path):
        path = tmp_path / "results.sqlite"
        Store(path).close()
        with pytest.raises(InputError, match="holds no measurement"):
            load_records(path)

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"\xff\xfe\x00", "neither"),
            (b"{", "neither"),
            (b"3", "holds no records"),
            (b"[3]", "holds no records"),
            (b"[]", "its list is empty"),
            (b'{"records": []}', "its list is empty"),
            (b'{"kind": "pack", "k": 3}', "no record of a model"),
        ],
    )
    def test_other_files_are_refused(self, tmp_path, content, message):
        path = tmp_path / "file"
        path.write_bytes(content)
        with pytest.raises(InputError, match=message):
            load_records(path)

    def test_a_missing_file_and_a_directory_are_refused(self, tmp_path):
        with pytest.raises(InputError, match="no such file"):
            load_records(tmp_path / "none")
        with pytest.raises(InputError, match="is a directory"):
            load_records(tmp_path)


def test_what_all_pairs_tell():
    points = [{"alpha": a, "epsilon": 0.5, "dim": dim, "random": 0.1} for a, dim in ((1e-4, 40.5), (1e-6, None))]
    tails = [{"gauge": "whitened", "points": []}, {"gauge": "stored", "points": points}]
    of_pairs = {"tails": tails, "at_once": {"best": {"s_max": 8}}}
    rows, _ = to_rows([record(**of_pairs), record(source="a/b"), record(source="a/c", tails=[], at_once=None)])
    assert [(row.s_max, row.tail_dim) for row in rows] == [(8, 40.5), (None, None), (None, None)]
    assert [(tail.alpha, tail.dim) for tail in rows[0].tails] == [(1e-4, 40.5)]
    header, first, *_ = table_csv(rows).splitlines()
    held = dict(zip(header.split(","), first.split(","), strict=True))
    assert (held["at_once.best.s_max"], held["d_alpha.0.0001"]) == ("8", "40.5")
    [row], _ = to_rows([record(epsilon_se=0.001), record(**of_pairs)])
    assert (row.epsilon_se, row.s_max, row.tail_dim) == (0.001, 8, 40.5)  # completed by what the other says


@pytest.mark.parametrize("tails", [[1], "x", {"gauge": "stored"}, [{"gauge": "stored", "points": [{"alpha": []}]}]])
def test_tails_that_are_none(tails):
    with pytest.raises(InputError, match=r"record 1 \(.*\) is malformed"):
        to_rows([record(tails=tails)])


def test_limits_of_the_readout():
    limits = {"rank": 512, "mean_leverage": 0.512, "direct_dim": 300.0, "linear_limit": 1048.2, "s_limit": 24.2}
    rows, _ = to_rows([record(readout=limits), record(source="a/b"), record(source="a/c", readout=None)])
    assert [row.s_limit for row in rows] == [24.2, None, None]
    [row], _ = to_rows([record(epsilon_se=0.001), record(readout=limits)])
    assert (row.epsilon_se, row.s_limit) == (0.001, 24.2)  # completed by what the other says
