"""numpy's product of complex64 matrices (BLAS): median of three runs. Arguments: rows, columns of both factors."""

import json
import statistics
import sys
import time

import numpy as np

rows, columns = int(sys.argv[1]), int(sys.argv[2])
draw = np.random.default_rng(1)


def complex_normals(*shape):
    parts = draw.standard_normal((*shape, 2), dtype=np.float32)
    return parts.view(np.complex64)[..., 0]


x, weights = complex_normals(rows, columns), complex_normals(columns, columns)
out = np.empty((rows, columns), dtype=np.complex64)


def once():
    start = time.perf_counter()
    np.matmul(x, weights, out=out)
    return time.perf_counter() - start


once()
print(json.dumps({"numpy's complex64 product": statistics.median(once() for _ in range(3))}))
