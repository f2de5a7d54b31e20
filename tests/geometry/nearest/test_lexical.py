"""Forms of a word."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repcap.geometry.nearest.lexical import canonical, variant_groups


@pytest.mark.parametrize(
    "forms",
    [
        ("cat", " cat", "Cat", " CATS", "cats"),
        ("city", " cities"),
        ("box", "Boxes"),
        ("church", " churches"),
        ("don't", " Don't"),
        ("Straße", " STRASSE"),
    ],
)
def test_variants_share_a_form(forms):
    assert len({canonical(form) for form in forms}) == 1


@pytest.mark.parametrize(("a", "b"), [("glass", "glas"), ("bus", "bu"), ("this", "thi"), ("cat", "car")])
def test_different_words_do_not(a, b):
    assert canonical(a) != canonical(b)


@pytest.mark.parametrize("text", [None, "", " ", "a", "<s>", "12", "##", "\n", "x1"])
def test_no_word(text):
    assert canonical(text) is None


@given(st.text(max_size=12))
def test_never_fails_and_ignores_case_of_ascii(text):
    form = canonical(text)
    if text.isascii():
        assert canonical(f" {text.upper()}") == form


def test_groups():
    assert variant_groups(["cat", None, " Cats", "dog", "!"]).tolist() == [0, -1, 0, 1, -1]
