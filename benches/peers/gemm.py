"""Matrix products of numpy (its BLAS), for comparison with `cargo bench -p bochner --bench gemm`.

Prints the best GFLOP/s of several runs with as many threads as OPENBLAS_NUM_THREADS says (default: all cores).
Arguments choose lines by what they begin with. `gram.py` times Gram matrices.
"""

import argparse
import time

import numpy as np


def best(run, repetitions=5):
    run()
    seconds = []
    for _ in range(repetitions):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def report(name, flops, seconds):
    print(f"{name:<52} {seconds * 1e3:9.1f} ms {flops / seconds / 1e9:8.1f} GFLOP/s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=["projection", "square"])
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    for dtype in (np.float32, np.float64):
        label = np.dtype(dtype).name
        if "projection" in arguments.names:
            n, d, m = 10_000, 784, 4_096
            x, w = (rng.standard_normal(shape, np.float32).astype(dtype) for shape in ((n, d), (d, m)))
            out = np.empty((n, m), dtype)
            report(f"projection {n} x {d} -> {m} {label}", 2 * n * d * m, best(lambda: np.matmul(x, w, out=out)))
        if "square" in arguments.names:
            n = 2_048
            a, b = (rng.standard_normal((n, n), np.float32).astype(dtype) for _ in range(2))
            out = np.empty((n, n), dtype)
            report(f"square a b {n} {label}", 2 * n**3, best(lambda: np.matmul(a, b, out=out)))
            report(f"square a bT {n} {label}", 2 * n**3, best(lambda: np.matmul(a, b.T, out=out)))


if __name__ == "__main__":
    main()
