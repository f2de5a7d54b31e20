"""ONNX: initialisers by the onnx package's own writer, read without it."""

from __future__ import annotations

import numpy as np
import pytest

from repcap.errors import SourceError
from repcap.sources import inspect_source, open_source

onnx = pytest.importorskip("onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

EMBED = "model.embed_tokens.weight"


def normal(*shape: int, dtype="float32") -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


@pytest.fixture
def graph(tmp_path):
    """Write a graph with these initialisers, and nodes around them; gives the path."""

    def write(initialisers, external: bool = False):
        nodes = [helper.make_node("Identity", ["x"], [f"y{place}"]) for place in range(50)]
        given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])]
        made = helper.make_model(helper.make_graph(nodes, "g", given, given, initialisers))
        path = tmp_path / "model.onnx"
        options = (
            {"save_as_external_data": True, "location": "model.onnx_data", "size_threshold": 0} if external else {}
        )
        onnx.save(made, path, **options)
        return path

    return write


def tensor(array: np.ndarray, name: str):
    return numpy_helper.from_array(array, name)


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
@pytest.mark.parametrize("external", [False, True])
def test_rows(dtype, external, graph) -> None:
    embedding = normal(300, 8, dtype=dtype)
    others = [tensor(normal(8, 300, dtype=dtype), "onnx::MatMul_12"), tensor(np.ones(8, dtype), "norm.weight")]
    path = graph([*others, tensor(embedding, EMBED)], external)
    with open_source(path) as matrix:
        assert (matrix.count, matrix.dim, matrix.info.dtype, matrix.info.role) == (300, 8, dtype, "embedding")
        assert np.array_equal(matrix.read(0, 300).numpy(), embedding)
        assert matrix.info.tied is None
        assert matrix.info.evidence.startswith("an ONNX graph may have its matrices under other names")
    with open_source(path.parent, "onnx::MatMul_12") as matrix:
        assert matrix.count == 8
        assert matrix.bytes_read == 0  # nothing of it was needed to open it


def test_numbers_in_a_list_of_floats(graph) -> None:
    values = normal(20, 3)
    made = helper.make_tensor(EMBED, TensorProto.FLOAT, [20, 3], values.ravel().tolist())
    with open_source(graph([made])) as matrix:
        assert np.array_equal(matrix.read(0, 20).numpy(), values)


def test_inspection(graph) -> None:
    found = inspect_source(graph([tensor(normal(40, 4), EMBED), tensor(np.ones(4, "int64"), "shape")]))
    assert (found.format, found.tensor_count) == ("onnx", 2)
    assert {item.name: item.dtype for item in found.tensors} == {EMBED: "float32", "shape": "int64"}


def test_files_that_are_not_what_they_should_be(graph, tmp_path) -> None:
    path = graph([tensor(normal(40, 4), EMBED)])
    body = path.read_bytes()
    path.write_bytes(body[:-100])
    with pytest.raises(SourceError, match=r"is no readable ONNX file \(it is truncated"):
        open_source(path)
    path.write_bytes(b"something")
    with pytest.raises(SourceError, match="is no readable ONNX file"):
        open_source(path)
    path.write_bytes(b"")
    with pytest.raises(SourceError, match="holds no weights"):
        open_source(path)


def test_external_data(graph, tmp_path) -> None:
    path = graph([tensor(normal(40, 4), EMBED)], external=True)
    data = tmp_path / "model.onnx_data"
    data.write_bytes(data.read_bytes()[:-10])
    with pytest.raises(SourceError, match="lies beyond the end of the truncated file"):
        open_source(path)
    data.unlink()
    with pytest.raises(SourceError, match=r"model.onnx_data is missing: model.onnx keeps .* there; fetch that file"):
        open_source(path)
    made = onnx.load(path, load_external_data=False)
    made.graph.initializer[0].external_data[0].value = "../secret"
    path.write_bytes(made.SerializeToString())
    with pytest.raises(SourceError, match="outside its own directory: refused"):
        open_source(path)
