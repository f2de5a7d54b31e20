"""A figure that cannot be written is refused before the work that it would show."""

from __future__ import annotations

import pytest

CALLS = (
    ("pairs", "absent"),
    ("compare", "absent", "absent"),
    ("track", "absent"),
    ("probes", "absent"),
    ("latents", "absent"),
    ("neighbours", "absent", "--word-pairs", "shipped"),
    ("interference", "--vectors", "absent"),
)


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call[0])
def test_before_the_source_is_read(repcap, tmp_path, call):
    for path, message in (
        (tmp_path / "x.bmp", "use a name that ends in .png, .svg or .pdf"),
        (tmp_path / "nowhere" / "x.png", "nowhere"),
    ):
        refused = repcap(*call, "--plot", path)
        assert refused.code == 2
        assert message in refused.err.replace("\n", "")
        assert "absent" not in refused.err  # the source does not exist: nobody has looked for it yet
