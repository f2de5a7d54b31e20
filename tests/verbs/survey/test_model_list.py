"""Lists of models, in text and in YAML, good and bad."""

from __future__ import annotations

import pytest

from repcap.errors import InputError
from repcap.verbs.survey.model_list import Entry, read_list


def write(tmp_path, text, name="models.yaml"):
    path = tmp_path / name
    path.write_text(text)
    return path


def test_text(tmp_path):
    text = "\ufeff# my models\norg/one\n\n  org/two@v1   # a comment\n/path/with #hash\nfile#1.gguf\n\t# no\n"
    assert read_list(write(tmp_path, text, "m.txt")) == [
        Entry("org/one"),
        Entry("org/two@v1"),
        Entry("/path/with"),
        Entry("file#1.gguf"),
    ]


def test_yaml_list(tmp_path):
    text = """
- org/one
- source: org/two
  matrix: unembedding
  rows: 500
  name: Two
  family: Pair
  options: {z: 3, exclude_ids: [0, 1]}
"""
    options = {"z": 3.0, "exclude_ids": (0, 1)}
    assert read_list(write(tmp_path, text)) == [
        Entry("org/one"),
        Entry("org/two", "unembedding", 500, "Two", "Pair", options),
    ]


def test_yaml_defaults_give_way(tmp_path):
    text = """
defaults: {rows: 100, matrix: embedding, options: {z: 3, seed: 1}}
models:
  - one
  - {source: two, rows: 7, options: {z: 1.5}}
"""
    assert read_list(write(tmp_path, text)) == [
        Entry("one", "embedding", 100, options={"z": 3, "seed": 1}),
        Entry("two", "embedding", 7, options={"z": 1.5, "seed": 1}),
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "must be a list"),
        ("[]", "lists no models"),
        ("models: org/one", "must be a list"),
        ("modles: [org/one]", "expected the keys models and defaults"),
        ("[1]", "model 1: expected a source"),
        ("[one, {matrix: embedding}]", "model 2: expected a source"),
        ("[{source: x, row: 3}]", "unknown key row; known are"),
        ("[{source: x, rows: many}]", "rows must be a whole number"),
        ("[{source: x, rows: 1}]", "rows must be a whole number of at least 2"),
        ("[{source: x, rows: true}]", "rows must be a whole number"),
        ("[{source: x, matrix: 3}]", "matrix must be text"),
        ("[{source: x, options: {zed: 3}}]", "unknown option zed"),
        ("[{source: x, options: {z: true}}]", "z = True: give a finite number"),
        ("[{source: x, options: {centre: 1}}]", "centre = 1: give true or false"),
        ("{models: [x], defaults: {name: n}}", "defaults may hold"),
        ("[x, {", "no valid YAML"),
        ("[{source: x, options: 3}]", "model 1: options must be a mapping"),
        ("[{source: x, options: [z]}]", "model 1: options must be a mapping"),
        ("{models: [x], defaults: {options: z}}", "model 1: options must be a mapping"),
        ("[{source: x, options: {z: .nan}}]", "z = nan: give a finite number"),
        ("[{source: x, options: {z: .inf}}]", "z = inf: give a finite number"),
        ("models: [x]\nmodels: [y]", "the key models is given twice"),
        ("[" * 50_000, "nested too deeply"),
        ("!!python/object/apply:os.system [echo]", "no valid YAML"),
    ],
)
def test_bad_yaml(tmp_path, text, words):
    with pytest.raises(InputError, match=words):
        read_list(write(tmp_path, text))


def test_bad_files(tmp_path):
    with pytest.raises(InputError, match="cannot read the list"):
        read_list(tmp_path / "none.txt")
    with pytest.raises(InputError, match="cannot read the list"):
        read_list(tmp_path)
    with pytest.raises(InputError, match="lists no models"):
        read_list(write(tmp_path, "# nothing\n", "m.txt"))
    (tmp_path / "binary.txt").write_bytes(bytes(range(256)))
    with pytest.raises(InputError, match="is no text"):
        read_list(tmp_path / "binary.txt")
