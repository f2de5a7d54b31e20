from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from repcap.console import style
from repcap.errors import InputError, MissingExtraError
from repcap.page import model_figures as figures
from repcap.page.records import published_records

MAGIC = {"png": b"\x89PNG\r\n\x1a\n", "svg": b"<?xml", "pdf": b"%PDF"}


def drawn(seed: int, name: str, std: float = 0.03):
    """A record with the histogram of a normal sample."""
    sample = np.clip(np.random.default_rng(seed).normal(0.01, std, 20_000), -1, 1)
    counts, edges = np.histogram(sample, bins=400, range=(-1, 1))
    epsilon = float(sample.mean() + 2 * sample.std())
    histogram = {"edges": edges.tolist(), "counts": counts.tolist()}
    return {"name": name, "source": name, "dim": 1024, "count": 5000, "epsilon": epsilon, "histogram": histogram}


def texts(path):
    """All text of an SVG."""
    return {"".join(node.itertext()).strip() for node in ElementTree.parse(path).iter() if node.tag.endswith("}text")}


@pytest.mark.parametrize("draw", [figures.epsilon_over_d, figures.capacity_bracket])
def test_every_format_is_written_whole(tmp_path, draw):
    paths = draw(published_records(), tmp_path / "figure", ("png", "svg", "pdf"))
    assert [path.suffix for path in paths] == [".png", ".svg", ".pdf"]
    for path in paths:
        assert path.read_bytes().startswith(MAGIC[path.suffix[1:]])
        assert path.stat().st_size > 5000
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(path.name for path in paths)


def test_the_same_records_give_the_same_bytes(tmp_path):
    first, second = (
        figures.epsilon_over_d(published_records(), tmp_path / name, ("svg", "pdf")) for name in ("one", "two")
    )
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_epsilon_over_d_names_the_families_the_null_and_the_counts(tmp_path):
    [path] = figures.epsilon_over_d(published_records(), tmp_path / "figure.svg", ())
    assert {"Qwen", "Llama", "Gemma", "random: 2/√d", "all models (n = 45)", "class low (n = 31)"} <= texts(path)


def test_what_a_logarithmic_axis_cannot_show_is_said(tmp_path):
    records = published_records()
    records[0] = records[0] | {"epsilon": -0.01, "class": "low"}
    [path] = figures.epsilon_over_d(records, tmp_path / "figure.svg", ())
    assert "all models (n = 45, 1 with ε ≤ 0 not drawn)" in texts(path)


def test_a_single_class_is_one_panel(tmp_path):
    records = [record for record in published_records() if record["epsilon"] > 0.2]
    [path] = figures.epsilon_over_d(records, tmp_path / "figure.svg", ())
    assert "all models (n = 14)" in texts(path)
    assert not any("class low (n" in text for text in texts(path))


def test_the_bracket_leaves_out_indeterminate_models_unless_asked(tmp_path):
    [path] = figures.capacity_bracket(published_records(), tmp_path / "sure.svg", ())
    assert "Llama 2 7B" in texts(path)
    assert "Gemma 7B" not in texts(path)
    [path] = figures.capacity_bracket(published_records(), tmp_path / "all.svg", (), indeterminate=True)
    assert {"Llama 2 7B", "Gemma 7B"} <= texts(path)


def test_the_bracket_of_indeterminate_models_alone_is_refused(tmp_path):
    records = [record for record in published_records() if record["epsilon"] > 0.2]
    with pytest.raises(InputError, match=r"epsilon below 0\.1"):
        figures.capacity_bracket(records, tmp_path / "figure", ("png",))
    assert list(tmp_path.iterdir()) == []


def test_similarity_distributions_of_several_models(tmp_path):
    records = [drawn(0, "a"), drawn(1, "b", 0.1), *published_records()]
    [path] = figures.similarity_distributions(records, tmp_path / "figure.svg", ())
    assert {"a", "b", "full range", "zoomed on the bulk"} <= texts(path)


def test_similarity_distributions_need_histograms_and_not_too_many(tmp_path):
    with pytest.raises(InputError, match="no record holds a histogram"):
        figures.similarity_distributions(published_records(), tmp_path / "figure", ("png",))
    with pytest.raises(InputError, match="9 distributions are too many"):
        figures.similarity_distributions([drawn(seed, f"m{seed}") for seed in range(9)], tmp_path / "figure", ("png",))


def test_the_first_of_too_many_distributions_are_drawn_when_asked(tmp_path):
    records = [drawn(seed, f"m{seed}") for seed in range(9)]
    [path] = figures.similarity_distributions(records, tmp_path / "figure.svg", (), first=True)
    assert "m7" in texts(path)
    assert "m8" not in texts(path)


def test_nothing_to_draw(tmp_path):
    with pytest.raises(InputError, match="nothing to draw"):
        figures.epsilon_over_d([], tmp_path / "figure", ("png",))


def test_an_unknown_format(tmp_path):
    with pytest.raises(InputError, match=r"ends in \.png"):
        figures.epsilon_over_d(published_records(), tmp_path / "figure.jpg", ())


def test_without_matplotlib_the_message_is_the_pip_line(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'repcap\[plots\]'"):
        figures.epsilon_over_d(published_records(), tmp_path / "figure", ("png",))


def test_drawing_leaves_the_style_of_the_caller_alone(tmp_path):
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    figures.epsilon_over_d(published_records(), tmp_path / "figure", ("png",))
    assert dict(mpl.rcParams) == before


def test_the_palette_is_told_apart_by_lightness_or_hue_under_deuteranopia():
    """Vienot's 1999 simulation: the colours that carry classes stay at least 10 apart in CIE Lab, 2 being just seen."""
    colours = [style.CLASS_COLOURS[name] for name in ("low", "between", "high")]
    seen = [_lab(_deuteranope(_linear(colour))) for colour in colours]
    distances = [float(np.linalg.norm(a - b)) for place, a in enumerate(seen) for b in seen[:place]]
    assert min(distances) > 10


def _linear(colour: str):
    channels = np.array([int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)])
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def _deuteranope(rgb):
    to_lms = np.array([[17.8824, 43.5161, 4.11935], [3.45565, 27.1554, 3.86714], [0.0299566, 0.184309, 1.46709]])
    lms = to_lms @ rgb
    lms[1] = 0.494207 * lms[0] + 1.24827 * lms[2]
    return np.clip(np.linalg.solve(to_lms, lms), 0, 1)


def _lab(rgb):
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    x, y, z = (to_xyz @ rgb) / np.array([0.9505, 1.0, 1.089])
    f = [t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in (x, y, z)]
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])
