"""What `repcap` offers to Python: names, types, and results that copy, compare, print short and go into JSON."""

from __future__ import annotations

import ast
import copy
import dataclasses
import inspect
import json
import pickle
import threading
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import torch

import repcap
from repcap.errors import InputError, VectorsError
from repcap.laws.limits.bounds import coherence_lower_bound


def rows(n: int = 300, d: int = 24, seed: int = 0, dtype: type = np.float32) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, d)).astype(dtype)


# Names and types


def test_every_public_name_is_there_and_has_a_docstring():
    for name in repcap.__all__:
        value = getattr(repcap, name)
        assert name in dir(repcap)
        if name not in ("__version__", "errors"):
            words = inspect.getdoc(value) or ""
            assert len(words) > 25, name
            assert not words.startswith(f"{name}("), f"{name}: made by dataclasses"
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = repcap.nothing


def test_type_checkers_see_the_names_that_are_there():
    tree = ast.parse(Path(repcap.__file__).read_text())
    seen = {
        alias.name: node.module
        for block in tree.body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen.keys() == repcap._PUBLIC.keys()
    for name, module in seen.items():
        assert getattr(import_module(module), name) is getattr(repcap, name)
    assert Path(repcap.__file__).with_name("py.typed").exists()


def test_the_class_of_every_result_is_public():
    functions = [getattr(repcap, name) for name in repcap.__all__ if inspect.isfunction(getattr(repcap, name))]
    assert len(functions) > 15
    for function in functions:
        returned = inspect.signature(function).return_annotation
        assert returned in (*repcap.__all__, "Matrix"), function.__name__


# Results


RESULTS = {
    "measure": lambda: repcap.measure(rows(), influence=2, centre=True),
    "measure, orthonormal": lambda: repcap.measure(np.eye(8)),
    "measure, z = 0": lambda: repcap.measure(rows(), z=0),
    "measure, d = 1": lambda: repcap.measure(rows(9, 1)),
    "measure, two rows": lambda: repcap.measure(rows(2)),
    "measure, estimate": lambda: repcap.measure(rows(), rows=100, seed=3),
    "pairs": lambda: repcap.pairs(rows()),
    "pairs, orthonormal": lambda: repcap.pairs(np.eye(8)),
    "neighbours": lambda: repcap.neighbours(rows(), tokens=["#3"], top=3),
    "compare": lambda: repcap.compare(rows(), rows(seed=1)),
    "compare, orthonormal": lambda: repcap.compare(np.eye(8), np.eye(8)[::-1]),
    "capacity": lambda: repcap.capacity(d=4096, eps=0.0645),
    "capacity, huge": lambda: repcap.capacity(d=16384, eps=0.99, vocab=50_000),
    "table": lambda: repcap.table(range(2, 9), k=[10, 2.5]),
    "fit": lambda: repcap.fit("optimized", "ratio", bootstrap=3),
    "fit, cells that do not vary": lambda: repcap.fit(([9, 12, 20], [4, 4, 8], [0.5, 0.5, 0.5]), "ratio"),
    "design": lambda: repcap.design(1e5, 0.2),
    "interference": lambda: repcap.interference(40, 16, (1, 2), methods=("random",), trials=3),
    "pack": lambda: repcap.pack(20, 8, steps=10),
    "pack, k <= d": lambda: repcap.pack(8, 8),
    "pack_max": lambda: repcap.pack_max(4, 0.5, search=False),
    "inspect": lambda: repcap.inspect(torch.nn.Embedding(9, 4)),
}


@pytest.fixture(scope="module", params=RESULTS)
def result(request):
    return RESULTS[request.param]()


def test_a_result_is_strict_json(result):
    text = json.dumps(result.to_dict(), allow_nan=False)
    assert json.loads(text)


def test_a_result_is_frozen(result):
    assert dataclasses.is_dataclass(result)
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(result, dataclasses.fields(result)[0].name, None)


def test_copies_of_a_result_say_the_same(result):
    for copied in (copy.copy(result), copy.deepcopy(result), pickle.loads(pickle.dumps(result))):
        assert type(copied) is type(result)
        assert copied.to_dict() == result.to_dict()


def test_the_repr_of_a_result_holds_no_matrix(result):
    text = repr(result)
    assert text.startswith(type(result).__name__)
    assert len(text) < 5000
    assert "array(" not in text
    assert "tensor(" not in text


def test_a_measurement_prints_in_three_lines():
    found = repcap.measure(rows())
    first, second = repr(found).splitlines()[:2]
    assert first == "Measured: array, 300 x 24"
    assert second == (
        f"  mean {found.mean:.6f}, std {found.std:.6f}, epsilon {found.epsilon:.6f} ± {found.epsilon_se:.2g}, "
        f"{found.epsilon_ratio:.3g} times random, class high"
    )
    assert repr(repcap.Moments.empty(3)) == "Moments(0 rows, d = 3)"
    assert "epsilon" in dir(found)
    assert isinstance(found, repcap.Measurement)


def test_equal_measurements_are_equal():
    one, two = (dataclasses.replace(repcap.measure(rows()), seconds=0.0) for _ in range(2))
    assert one == two
    assert one != repcap.measure(rows(seed=1))


WITH_PROVENANCE = (
    "measure",
    "measure, estimate",
    "pairs",
    "neighbours",
    "compare",
    "capacity",
    "table",
    "fit",
    "pack",
    "pack_max",
    "interference",
    "inspect",
)


@pytest.mark.parametrize("name", WITH_PROVENANCE)
def test_a_record_says_what_made_it(name):
    record = RESULTS[name]().to_dict()
    assert record["repcap_version"] == repcap.__version__
    if name not in ("capacity", "fit", "inspect"):  # their arguments are keys of their own
        assert record["options"]


def test_the_hash_is_that_of_the_rows():
    import hashlib

    stored = rows()
    expected = hashlib.sha256(stored.tobytes()).hexdigest()
    assert repcap.measure(stored).tensor_sha256 == expected
    assert repcap.measure(stored, block_rows=7, influence=1).tensor_sha256 == expected
    assert repcap.measure(torch._neg_view(torch.from_numpy(-stored))).tensor_sha256 == expected
    assert repcap.measure(stored, rows=50).to_dict()["tensor_sha256"] is None
    assert repcap.measure(stored, exclude_ids=[0]).tensor_sha256 is None


def test_nothing_is_printed(capfd):
    for make in RESULTS.values():
        make()
    assert capfd.readouterr() == ("", "")


# Arrays as they come


LAYOUTS = {
    "columns first": np.asfortranarray,
    "every other column": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "backwards and back": lambda x: np.ascontiguousarray(x[::-1])[::-1],
    "mirrored columns": lambda x: np.ascontiguousarray(x[:, ::-1])[:, ::-1],
    "big-endian": lambda x: x.astype(">f4"),
    "read-only": lambda x: np.frombuffer(x.tobytes(), np.float32).reshape(x.shape),
    "matrix": np.asmatrix,
    "tensor": torch.from_numpy,
    "transposed tensor": lambda x: torch.from_numpy(np.ascontiguousarray(x.T)).T,
    "tensor that requires grad": lambda x: torch.from_numpy(x).requires_grad_() * 1.0,
    "parameter": lambda x: torch.nn.Parameter(torch.from_numpy(x)),
    "embedding": lambda x: torch.nn.Embedding.from_pretrained(torch.from_numpy(x)),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_the_layout_in_memory_does_not_matter(layout):
    found, plain = repcap.measure(LAYOUTS[layout](rows())), repcap.measure(rows())
    assert (found.epsilon, found.epsilon_se, found.count) == (plain.epsilon, plain.epsilon_se, plain.count)


def test_views_of_rows_are_measured_without_changing_them():
    stored = rows()
    before = stored.copy()
    repcap.measure(stored[::-1], centre=True, remove_top=1, influence=1)
    repcap.measure(torch.from_numpy(stored), centre=True, remove_top=1, influence=1)
    assert np.array_equal(stored, before)


@pytest.mark.parametrize("ids", [[0, 7], (7, 0), np.array([0, 7]), torch.tensor([0, 7]), range(0, 8, 7), {0, 7}])
def test_row_numbers_come_in_any_kind_of_list(ids):
    assert repcap.measure(rows(), exclude_ids=ids).epsilon == repcap.measure(np.delete(rows(), [0, 7], 0)).epsilon
    assert repcap.measure(rows(), exclude_ids=None, only_ids=None).count == 300


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: repcap.measure(rows(), exclude_ids=3), InputError, r"exclude_ids = 3: give a list of whole numbers"),
        (lambda: repcap.measure(rows(), None), InputError, "matrix = None: give text"),
        (lambda: repcap.measure(rows()[0]), VectorsError, r"1 row with a direction: a cosine needs two \(array\)"),
        (lambda: repcap.measure(rows()[:0]), VectorsError, "array has no rows"),
        (lambda: repcap.measure(rows()[:, :0]), VectorsError, "array has no columns"),
        (lambda: repcap.Moments.of(torch.from_numpy(rows())), VectorsError, "not of length 1"),
        (lambda: repcap.Moments.of(torch.full((3, 2), torch.nan)), VectorsError, "not of length 1"),
        (lambda: repcap.Moments.of(torch.eye(3).half()), VectorsError, "float32 or float64"),
        (lambda: repcap.Moments.of(rows()), VectorsError, "torch tensor"),
        (lambda: repcap.Moments.of(torch.ones(3)), VectorsError, r"\(n, d\)"),
    ],
)
def test_a_mistake_is_one_clear_line(call, error, words):
    with pytest.raises(error, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_unknown_options_are_refused_by_name():
    with pytest.raises(InputError, match="measure has no option zed; known are source, matrix, z"):
        repcap.measure(rows(), zed=3)
    with pytest.raises(InputError, match="measure has no option sed; did you mean seed"):
        repcap.measure(rows(), sed=3)


# Progress


def test_progress_comes_in_the_callers_thread_and_only_grows():
    seen, threads = [], set()

    def on_progress(done, total):
        seen.append((done, total))
        threads.add(threading.get_ident())

    repcap.measure(rows(), on_progress=on_progress, block_rows=50, centre=True)
    assert threads == {threading.get_ident()}
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1][0] == seen[-1][1]


def test_measurements_in_two_threads_do_not_mix():
    """Each has its own rows and its own progress."""
    found, ends = {}, {}

    def work(seed):
        found[seed] = repcap.measure(
            rows(200 + seed, seed=seed), on_progress=lambda done, total: ends.__setitem__(seed, (done, total))
        )

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed in range(4):
        assert found[seed].epsilon == pytest.approx(repcap.measure(rows(200 + seed, seed=seed)).epsilon, abs=1e-9)
        assert ends[seed][0] == ends[seed][1]


def test_a_packing_never_beats_the_bound_that_it_reports():
    found = repcap.pack(20, 8, steps=10)
    assert found.lower_bound == coherence_lower_bound(20, 8).value <= found.coherence
