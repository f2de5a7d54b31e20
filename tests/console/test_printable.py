"""Names from files cannot write to the terminal."""

from __future__ import annotations

import pytest

from repcap.console import common
from repcap.text import printable


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("model.embed_tokens.weight", "model.embed_tokens.weight"),
        ("naïve 東京", "naïve 東京"),
        ("a\nb\tc\x1b[2J", "a\\nb\\tc\\x1b[2J"),
        ("\u202egnp.exe", "\\u202egnp.exe"),  # right-to-left override
        ("", ""),
    ],
)
def test_printable(text, expected) -> None:
    assert printable(text) == expected


def test_brackets_are_no_markup(capsys) -> None:
    table = common.new_table("of [bold]", "Token")
    table.add_row("[/INST]")
    common.stdout().print(table)
    common.stderr().print("[/x]")
    out, err = capsys.readouterr()
    assert ("[/INST]" in out, "of [bold]" in out, err) == (True, True, "[/x]\n")
