"""Matrix products of numpy (its BLAS), for comparison with `cargo bench -p bochner --bench gemm`.

Prints the best GFLOP/s of several runs with as many threads as OPENBLAS_NUM_THREADS says (default: all cores).
Arguments choose lines by what they begin with. The Gram matrix of numpy needs all rows in memory: 60,000 x 4,096
as on the command line with `--rows 60000`; by default 16,384.
"""

import argparse

import numpy as np
import timing


def best(run, repetitions=5):
    run()
    return timing.best(run, repetitions)


def report(name, flops, seconds):
    print(f"{name:<52} {seconds * 1e3:9.1f} ms {flops / seconds / 1e9:8.1f} GFLOP/s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=["projection", "gram", "square"])
    parser.add_argument("--rows", type=int, default=16_384)
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    for dtype in (np.float32, np.float64):
        label = np.dtype(dtype).name
        if "projection" in arguments.names:
            n, d, m = 10_000, 784, 4_096
            x, w = (rng.standard_normal(shape, np.float32).astype(dtype) for shape in ((n, d), (d, m)))
            out = np.empty((n, m), dtype)
            report(f"projection {n} x {d} -> {m} {label}", 2 * n * d * m, best(lambda: np.matmul(x, w, out=out)))
        if "gram" in arguments.names:
            rows, columns = arguments.rows, 4_096
            z = rng.standard_normal((rows, columns), np.float32).astype(dtype)
            out = np.empty((columns, columns), dtype)
            # numpy recognises z.T @ z and calls syrk: half the products of a general one, counted as such.
            flops = rows * columns * (columns + 1)
            report(f"gram {rows} x {columns} {label}", flops, best(lambda: np.matmul(z.T, z, out=out), 2))
            del z
        if "square" in arguments.names:
            n = 2_048
            a, b = (rng.standard_normal((n, n), np.float32).astype(dtype) for _ in range(2))
            out = np.empty((n, n), dtype)
            report(f"square a b {n} {label}", 2 * n**3, best(lambda: np.matmul(a, b, out=out)))
            report(f"square a bT {n} {label}", 2 * n**3, best(lambda: np.matmul(a, b.T, out=out)))
            report(f"square aT b {n} {label}", 2 * n**3, best(lambda: np.matmul(a.T, b, out=out)))


if __name__ == "__main__":
    main()
