"""Exact softmax attention in numpy (float32), for comparison with `cargo bench -p bochner --bench attention`.

Scores are normalised in blocks of queries, so that memory stays moderate: faster than the whole square at once, which is
timed as well with `--whole`. As many threads as OPENBLAS_NUM_THREADS says.
"""

import argparse

import numpy as np
from timing import best


def attention(q, k, v, out, block):
    scale = np.float32(1 / np.sqrt(q.shape[1]))
    scores = np.empty((block, k.shape[0]), np.float32)
    for start in range(0, q.shape[0], block):
        rows = q[start : start + block]
        part = scores[: rows.shape[0]]
        np.matmul(rows * scale, k.T, out=part)
        part -= part.max(axis=1, keepdims=True)
        np.exp(part, out=part)
        sums = part.sum(axis=1, keepdims=True)
        np.matmul(part, v, out=out[start : start + block])
        out[start : start + block] /= sums


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--length", type=int, default=16_384)
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--whole", action="store_true", help="all weights at once")
    arguments = parser.parse_args()
    q, k, v = np.random.default_rng(0).standard_normal((3, arguments.length, arguments.dim), np.float32)
    out = np.empty_like(v)
    block = arguments.length if arguments.whole else 512
    seconds = best(lambda: attention(q, k, v, out, block), 3)
    print(f"softmax {arguments.length} x {arguments.dim} numpy {seconds * 1e3:.1f} ms", flush=True)


if __name__ == "__main__":
    main()
