"""`compare` against brute force on small checkpoints, and on the demo model."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from demo import SMOLLM2, needs_demo
from repcap.errors import InputError, SourceError
from repcap.verbs.compare.study import compare


def jaccard(a, b, top):
    """Mean overlap of neighbours over all rows, from all cosines."""

    def nearest(x):
        units = torch.nn.functional.normalize(x.double(), dim=1)
        cosines = units @ units.T
        cosines.fill_diagonal_(-2)
        return cosines.topk(top, dim=1).indices.tolist()

    pairs = [(set(x), set(y)) for x, y in zip(nearest(a), nearest(b), strict=True)]
    return np.mean([len(x & y) / len(x | y) for x, y in pairs])


def test_two_checkpoints_against_brute_force(checkpoint):
    torch.manual_seed(0)
    a = torch.randn(60, 8)
    b = a + 0.4 * torch.randn(60, 8)
    found = compare(checkpoint("a", a), checkpoint("b", b), top=4, sample=60, worst=3)
    cosines = torch.cosine_similarity(a.double(), b.double(), dim=1)
    assert found.corresponding is not None
    assert found.corresponding.mean == pytest.approx(float(cosines.mean()), abs=1e-12)
    assert found.corresponding.std == pytest.approx(float(cosines.std(correction=0)), abs=1e-12)
    assert dict(found.corresponding.quantiles)[0.5] == pytest.approx(float(cosines.median()), abs=0.05)
    assert [row.row_a for row in found.corresponding.worst] == cosines.argsort()[:3].tolist()
    worst = found.corresponding.worst[0]
    assert worst.norm_ratio == pytest.approx(float(b[worst.row_a].norm() / a[worst.row_a].norm()), rel=1e-6)
    assert sum(found.corresponding.counts) == 60
    assert found.neighbours is not None
    assert found.neighbours.mean == pytest.approx(jaccard(a, b, 4), abs=1e-12)
    assert (found.a.count, found.b.count) == (60, 60)


def test_scaled_and_rotated_copies_keep_what_they_keep(checkpoint):
    """Scaling keeps every cosine; a rotation keeps epsilon and the neighbours but not the rows."""
    torch.manual_seed(1)
    a = torch.randn(50, 6)
    scaled = compare(checkpoint("a", a), checkpoint("s", a * torch.rand(50, 1).add(0.1)), sample=50)
    assert scaled.corresponding.mean == pytest.approx(1.0, abs=1e-7)
    assert scaled.neighbours.mean == 1.0
    turn = torch.linalg.qr(torch.randn(6, 6)).Q
    turned = compare(str(checkpoint("a2", a)), checkpoint("r", a @ turn), sample=50)
    assert turned.neighbours.mean == 1.0
    assert turned.a.epsilon == pytest.approx(turned.b.epsilon, abs=1e-6)
    assert abs(turned.corresponding.mean) < 0.6


def test_embedding_against_unembedding(checkpoint):
    torch.manual_seed(2)
    a, b = torch.randn(30, 5), torch.randn(30, 5)
    found = compare(checkpoint("m", a, b), sample=0)
    assert not found.tied
    assert (found.a.info.role, found.b.info.role) == ("embedding", "unembedding")
    assert found.corresponding.mean == pytest.approx(
        float(torch.cosine_similarity(a.double(), b.double(), dim=1).mean())
    )
    assert found.neighbours is None


def test_tied_says_so(checkpoint, repcap):
    path = checkpoint("m", torch.randn(20, 4))
    found = compare(path)
    assert (found.tied, found.b, found.corresponding) == (True, None, None)
    assert "tied" in found.reading
    shown = repcap("compare", path)
    assert shown.code == 0
    assert "nothing to compare" in " ".join(shown.out.split())
    assert repcap("compare", path, "--json").json["tied"] is True


def test_longer_vocabulary_is_cut_to_the_common_rows(checkpoint):
    a = torch.randn(30, 4)
    found = compare(checkpoint("a", a), checkpoint("b", torch.cat([a, torch.randn(7, 4)])), sample=0)
    assert found.corresponding.rows == 30
    assert found.corresponding.mean == pytest.approx(1.0)
    assert found.pairing.to_dict()["only_b"] == 7
    assert any("30 and 37 rows" in note for note in found.notes)


def test_other_vocabularies_are_paired_by_text(checkpoint):
    torch.manual_seed(3)
    a = torch.randn(8, 4)
    order = [3, 1, 0, 2]
    texts = [f"w{i}" for i in range(8)]
    first = checkpoint("a", a, vocab=texts)
    second = checkpoint("b", torch.cat([torch.randn(2, 4), a[order]]), vocab=["x", "y", *(texts[i] for i in order)])
    found = compare(first, second, sample=0)
    assert found.pairing.how == "text"
    assert found.corresponding.rows == 4
    assert found.corresponding.mean == pytest.approx(1.0)
    assert any("vocabularies differ" in note for note in found.notes)
    assert {(row.row_a, row.row_b) for row in found.corresponding.worst} == {(3, 2), (1, 3), (0, 4), (2, 5)}
    by_row = compare(first, second, match="row", sample=0)
    assert by_row.pairing.how == "row"
    assert any("same token" in note for note in by_row.notes)


def test_other_widths_compare_neighbours_only(checkpoint, repcap):
    torch.manual_seed(4)
    a = torch.randn(40, 4)
    wide = torch.cat([a, torch.zeros(40, 3)], dim=1)
    paths = checkpoint("a", a), checkpoint("b", wide)
    found = compare(*paths, sample=40, top=5)
    assert found.corresponding is None
    assert "4 and 7 columns" in found.reason
    assert found.neighbours.mean == 1.0
    shown = repcap("compare", *paths, "--plot", "x.png")
    assert shown.code == 0
    assert "no figure" in shown.err


def test_zero_rows_do_not_spread(checkpoint):
    a = torch.randn(10, 4)
    b = a.clone()
    b[3] = 0.0
    found = compare(checkpoint("a", a), checkpoint("b", b), sample=10, top=2)
    assert (found.corresponding.rows, found.corresponding.dropped) == (9, 1)
    assert found.corresponding.mean == pytest.approx(1.0)
    assert found.neighbours.rows == 9


@pytest.mark.parametrize(
    ("options", "message"),
    [({"top": 0}, "top = 0: give at least 1"), ({"match": "id"}, "match = id: use auto, row, text")],
)
def test_refusals(checkpoint, options, message):
    path = checkpoint("a", torch.randn(10, 4))
    with pytest.raises(InputError, match=message):
        compare(path, path, **options)


def test_text_match_needs_tokenizers(checkpoint):
    path = checkpoint("a", torch.randn(10, 4))
    with pytest.raises(InputError, match="match = text: needs two tokenizers"):
        compare(path, path, match="text")


def test_no_second_matrix(tmp_path):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(10, 4)))
    with pytest.raises(SourceError):
        compare(str(tmp_path / "x.npy"))


def test_figure_and_json(checkpoint, repcap, tmp_path):
    a = torch.randn(30, 5)
    paths = checkpoint("a", a), checkpoint("b", a + torch.randn(30, 5))
    done = repcap("compare", *paths, "--json", "--plot", tmp_path / "rows.svg", "--sample", 10, "--top", 3)
    assert done.code == 0, done.err
    record = done.json
    assert record["rows"]["rows"] == 30
    assert record["neighbours"]["top"] == 3
    assert record["a"]["epsilon"] > 0
    assert "mean" in (tmp_path / "rows.svg").read_text()
    text = repcap("compare", *paths)
    assert max(map(len, text.out.splitlines())) <= 80


@needs_demo
def test_quantised_against_full_precision_of_the_demo(tmp_path):
    """The Q8_0 embedding of the demo model rounded to 4 bits a value: near to it, and nearer than a coarser one."""
    from repcap.sources import open_source

    with open_source(SMOLLM2) as opened:
        whole = opened.read(0, 4000)
    save_file({"model.embed_tokens.weight": whole}, tmp_path / "full.safetensors")
    means = []
    for bits in (4, 3):
        scale = whole.abs().amax(1, keepdim=True) / (2 ** (bits - 1) - 1)
        save_file({"model.embed_tokens.weight": (whole / scale).round() * scale}, tmp_path / f"q{bits}.safetensors")
        found = compare(str(tmp_path / "full.safetensors"), str(tmp_path / f"q{bits}.safetensors"), sample=32)
        assert found.corresponding.rows == 4000
        means.append(found.corresponding.mean)
    assert 0.9 < means[1] < means[0] < 0.9999


def test_figures_that_cannot_be_written_are_refused_before_the_work(checkpoint, repcap, tmp_path):
    path = checkpoint("step1", torch.randn(20, 4))
    for verb in (("compare", path, path), ("track", path)):
        failed = repcap(*verb, "--plot", tmp_path / "nowhere" / "x.png")
        assert (failed.code, failed.out) == (2, "")
        assert "no such file or directory" in failed.err
