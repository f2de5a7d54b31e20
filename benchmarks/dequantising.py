"""How much of a measurement of a quantised embedding is dequantising, and what keeping the rows saves.

    python benchmarks/dequantising.py [--rows 20000] [--dim 896] [--types F16 Q8_0 Q4_0 Q5_0 Q6_K] [--quick]

Writes a GGUF file of each type (K-quants from random bytes with scales of 2^-6), measures its embedding as `repcap
measure` does, and prints the seconds in all, those in dequantising, its share, and the seconds where rows are
dequantised again at every pass. F16 is not quantised: it shows what reading alone takes.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import gguf
import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType
from measured import Measured

from repcap import geometry
from repcap.matrix import Matrix
from repcap.sources import open_source
from repcap.sources.formats import gguf_file, stored_rows


def blocks(rows: int, dim: int, kind: GGMLQuantizationType) -> np.ndarray:
    """Rows of this type: by the writer of gguf, or random codes where it has none."""
    rng = np.random.default_rng(0)
    try:
        numbers = (rng.standard_normal((rows, dim), dtype=np.float32) + 0.2) / 8
        return np.ascontiguousarray(gguf.quants.quantize(numbers, kind))
    except NotImplementedError:
        elements, size = GGML_QUANT_SIZES[kind]
        raw = rng.integers(0, 255, (rows, dim // elements, size), dtype=np.uint8)
        raw[..., -2:] = np.frombuffer(np.float16(2.0**-6).tobytes(), np.uint8)
        return raw.reshape(rows, -1)


def write(folder: Path, rows: int, dim: int, name: str) -> Path:
    path, kind = folder / f"{name}.gguf", GGMLQuantizationType[name]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tensor("token_embd.weight", blocks(rows, dim, kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


class Clock:
    """Adds up the seconds of the calls of a function."""

    def __init__(self, matrix: Matrix) -> None:
        assert isinstance(matrix, stored_rows.EncodedMatrix)
        self.seconds, self._decode = 0.0, matrix._decode
        matrix._decode = self

    def __call__(self, raw: np.ndarray) -> object:
        started = time.perf_counter()
        try:
            return self._decode(raw)
        finally:
            self.seconds += time.perf_counter() - started


def timed(path: Path) -> tuple[float, float]:
    """(seconds in all, seconds in dequantising) of one measurement."""
    started = time.perf_counter()
    with open_source(path) as matrix:
        clock = Clock(matrix)
        geometry.measure_matrix(matrix)
    return time.perf_counter() - started, clock.seconds


def study(rows: int, dim: int, types: list[str]) -> dict[str, tuple[float, float, float]]:
    """Type -> seconds in all, in dequantising, and in all where no row is kept."""
    found, kept_bytes = {}, gguf_file.KEPT_BYTES
    with tempfile.TemporaryDirectory() as place:
        timed(write(Path(place), 512, 256, "F16"))  # torch and its threads are there now
        for name in types:
            elements = GGML_QUANT_SIZES[GGMLQuantizationType[name]][0]
            path = write(Path(place), rows, -(-dim // elements) * elements, name)
            whole, spent = min(timed(path) for _ in range(3))
            gguf_file.KEPT_BYTES = 0
            again, _ = min(timed(path) for _ in range(3))
            gguf_file.KEPT_BYTES = kept_bytes
            found[name] = whole, spent, again
            path.unlink()
    return found


def rows(quick: bool) -> list[Measured]:
    count, dim = 4000 if quick else 20_000, 1024
    found = study(count, dim, ["F16", "Q8_0", "Q4_0", "Q5_0", "Q6_K"])
    floor = found.pop("F16")[0]
    return [
        Measured(
            f"measure, {name}", f"{count} x {dim}; {spent / whole:.0%} is dequantising", whole, floor,
            "the rows in F16", again, "dequantising at every pass",
        )
        for name, (whole, spent, again) in found.items()
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--dim", type=int, default=896)
    parser.add_argument("--types", nargs="+", default=["F16", "Q8_0", "Q4_0", "Q5_0", "Q6_K"])
    parser.add_argument("--quick", action="store_true", help="4000 rows")
    options = parser.parse_args()
    count = 4000 if options.quick else options.rows
    print(f"{count} x {options.dim}; seconds: in all, dequantising, its share, in all where no row is kept")
    for name, (whole, spent, again) in study(count, options.dim, options.types).items():
        print(f"{name:6} {whole:7.2f} {spent:7.2f} {spent / whole:6.0%} {again:7.2f}")


if __name__ == "__main__":
    main()
