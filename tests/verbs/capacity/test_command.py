"""`repcap capacity` as a user meets it."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys

import pytest


def test_it_loads_no_torch_and_no_other_heavy_package():
    program = (
        "import sys\n"
        "from repcap.cli import run\n"
        "code = run(['capacity', '--d', '4096', '--eps', '0.0645', '--vocab', '32000'])\n"
        "code += run(['capacity', '--d', '4096', '--k', '1e6']) + run(['capacity', '--k', '1e6', '--eps', '0.06'])\n"
        "heavy = ('torch', 'transformers', 'ray', 'matplotlib', 'plotly', 'huggingface_hub', 'gguf', 'scipy')\n"
        "sys.stderr.write('|'.join([str(code), *(name for name in heavy if name in sys.modules)]))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1].endswith("0")
    assert "|" not in done.stderr


def test_one_point(repcap):
    done = repcap("capacity", "--d", 4096, "--eps", 0.0645)
    assert done.code == 0
    lines = done.out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0] == "d = 4096, epsilon = 0.0645 = 2.06 times random"
    rows = {line[:18].strip(): line[18:].split() for line in lines[2:]}
    assert rows["at most"][:2] == ["10^23.32", "23.32"]
    assert rows["explicit set"][:2] == ["3.52e13", "13.55"]
    assert rows["law full"][:2] == ["3.99e7", "7.60"]
    assert rows["law ratio"][:2] == ["2.17e9", "9.34"]
    assert rows["law jl, C = 3.029"][:2] == ["277", "2.44"]
    assert rows["law jl, C = 8"][0] == "8.42"
    sentence = " ".join(done.out.split("\n\n")[-1].split())
    assert sentence.startswith("In 4096 dimensions with every |cosine| <= 0.0645 at least 3.52e13 lines exist")
    assert "warning: ratio gives 2.17e9 and full gives 3.99e7: below the 3.52e13" in " ".join(done.err.split())
    assert "extrapolation" in done.err


def test_quiet_drops_the_warnings(repcap):
    assert repcap("capacity", "--d", 4096, "--eps", 0.0645, "--quiet").err == ""


def test_json(repcap):
    found = repcap("capacity", "--d", 4096, "--eps", 0.0645, "--json").json
    assert {"d", "epsilon", "laws", "bracket", "warnings"} <= set(found)
    assert set(found["laws"]["full"]) == {"log10_k", "k"}
    assert found["bracket"]["upper"]["name"] == "Levenshtein (degree 8)"
    many = repcap("capacity", "--d", "64,256", "--eps", "0.1,0.2", "--json").json
    assert [(row["d"], row["epsilon"]) for row in many] == [(64, 0.1), (64, 0.2), (256, 0.1), (256, 0.2)]


def test_every_number_of_the_table_is_in_the_json(repcap):
    many = repcap("capacity", "--d", "512..2048x2", "--eps", "0.05..0.1:0.05", "--json").json
    out = repcap("capacity", "--d", "512..2048x2", "--eps", "0.05..0.1:0.05").out
    lines = out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].split() == ["d", "eps", "jl", "8", "jl", "3.03", "ratio", "full", "coding", "explicit", "upper"]
    for line, row in zip(lines[1:7], many, strict=True):
        laws, ends = row["laws"], row["bracket"]
        numbers = [laws[n]["log10_k"] for n in ("jl_proven", "jl_random", "ratio", "full")]
        numbers += [ends[n]["log10_k"] for n in ("exists", "explicit", "upper")]
        assert line.split() == [str(row["d"]), f"{row['epsilon']:g}", *(f"{x:.2f}" for x in numbers)]
    assert "that many lines exist" in out


def test_csv_has_the_same_values_as_json(repcap):
    options = ("capacity", "--d", "64,4096", "--eps", 0.05, "--vocab", 1000)
    rows = list(csv.DictReader(io.StringIO(repcap(*options, "--csv").out)))
    many = repcap(*options, "--json").json
    assert len(rows) == len(many) == 2
    for row, result in zip(rows, many, strict=True):
        assert float(row["laws.full.log10_k"]) == result["laws"]["full"]["log10_k"]
        assert row["bracket.explicit.name"] == result["bracket"]["explicit"]["name"]
        assert float(row["budget.needed"]) == 2000


def test_how_near_and_into_how_many_dimensions(repcap):
    near = repcap("capacity", "--d", 4096, "--k", "1e6")
    assert "explicit set        0.015625" in near.out
    assert "Kerdock" in near.out
    dims = repcap("capacity", "--k", "1e6", "--eps", 0.06)
    assert "cannot fit into fewer than 697." in " ".join(dims.out.split())
    table = repcap("capacity", "--k", "1e6,2^45", "--eps", 0.06)
    assert table.out.splitlines()[2].split()[0] == "3.52e13"
    assert "fewer are too few" in table.out
    table = repcap("capacity", "--k", "1e4,1e5", "--d", "64")
    assert table.out.splitlines()[1].split() == [
        "64", "10000", "1.0730", "0.6602", "0.3195", "0.3147", "0.4637", "0.2500", "0.1983"
    ]  # fmt: skip


def test_vocabulary(repcap):
    done = repcap("capacity", "--d", 4096, "--eps", 0.0645, "--vocab", 32000)
    assert "vocabulary takes 2 x 32000 = 64000" in done.out
    assert "for features" in done.out
    tied = repcap("capacity", "--d", 4096, "--vocab", 32000, "--tied", "--json").json
    assert tied["k"] == 32000
    assert tied["budget"]["needed"] == 32000
    table = repcap("capacity", "--d", "64,128", "--vocab", "1000,32000")
    assert table.code == 0
    assert table.out.splitlines()[0].split()[:3] == ["d", "k", "V"]


def test_the_word_indeterminate_stands_where_the_paper_has_it(repcap):
    assert "indeterminate" in repcap("capacity", "--d", 640, "--eps", 0.4153).out
    assert "indeterminate" not in repcap("capacity", "--d", 640, "--eps", 0.0999).out


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_plot(repcap, tmp_path, suffix):
    path = tmp_path / f"capacity.{suffix}"
    done = repcap("capacity", "--d", 64, "--plot", path)
    assert done.code == 0
    assert str(path) in "".join(done.err.split("\n"))
    magic = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[suffix]
    assert path.read_bytes().startswith(magic)


def test_plot_beside_a_point_prints_the_point_too(repcap, tmp_path):
    path = tmp_path / "capacity.svg"
    done = repcap("capacity", "--d", 64, "--eps", 0.125, "--plot", path, "--json")
    assert round(10 ** done.json["bracket"]["upper"]["log10_k"]) == 2112
    assert path.exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--d", "64"], "give two of --d, --eps and --k"),
        (["--vocab", "100"], "give two of --d, --eps and --k"),
        (["--d", "64", "--eps", "0.1", "--k", "5"], "give two of --d, --eps and --k"),
        ([], "give two of --d, --eps and --k"),
        (["--d", "64", "--eps", "0"], "epsilon = 0 is outside"),
        (["--d", "64", "--eps", "-0.1"], "epsilon = -0.1 is outside"),
        (["--d", "64", "--eps", "1"], "epsilon = 1 is outside"),
        (["--d", "64", "--eps", "nan"], "--eps nan: give a finite number"),
        (["--d", "64", "--eps", "wide"], "--eps: 'wide' is no number"),
        (["--d", "0", "--eps", "0.1"], "d = 0 is outside"),
        (["--d", "0.5", "--eps", "0.1"], "'0.5' is not a whole number"),
        (["--d", "nan", "--eps", "0.1"], "'nan' is not a whole number"),
        (["--d", "inf", "--eps", "0.1"], "'inf' is not a whole number"),
        (["--d", "64", "--k", "1"], "k = 1 is outside"),
        (["--d", "64", "--k", "nan"], "--k nan: give a whole number or a finite number"),
        (["--d", "64", "--k", "inf"], "--k inf: give a whole number or a finite number"),
        (["--d", "64", "--eps", "0.1", "--tied"], "--tied"),
        (["--d", "64", "--eps", "0.1", "--vocab", "0"], "vocab = 0 is outside"),
        (["--d", "64", "--eps", "0.2..0.1"], "must rise"),
        (["--d", "64", "--eps", "0.1..0.2:0"], "the step must be above 0"),
        (["--d", "1..2000000:1", "--eps", "0.1"], "10000 at most"),
        (["--d", "64", "--eps", "0.1", "--json", "--csv"], "--json or --csv"),
        (["--eps", "0.1", "--plot", "x.png"], "--plot needs --d"),
        (["--d", "1..20:1", "--plot", "x.png"], "1 to 9"),
        (["--d", "64", "--plot", "x.bmp"], "use a name that ends in .png"),
        (["--d", "64", "--plot", "absent/x.png"], "cannot write"),
    ],
)
def test_nonsense_gets_one_line_and_code_2(repcap, options, words):
    done = repcap("capacity", *options)
    assert done.code == 2
    assert done.out == ""
    assert done.err.startswith("repcap: error: ")
    assert len(done.err.splitlines()) == 1
    assert words in done.err


def test_help_has_the_syntax_of_ranges(repcap):
    done = repcap("capacity", "--help")
    assert done.code == 0
    assert "A..BxFACTOR" in done.out
    json.dumps(done.out)
