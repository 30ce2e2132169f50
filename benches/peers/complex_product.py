"""numpy's product of complex64 matrices (BLAS): median of three runs. Arguments: rows, columns of both factors."""

import json
import sys

import numpy as np
from timing import median

rows, columns = int(sys.argv[1]), int(sys.argv[2])
draw = np.random.default_rng(1)


def complex_normals(*shape):
    parts = draw.standard_normal((*shape, 2), dtype=np.float32)
    return parts.view(np.complex64)[..., 0]


x, weights = complex_normals(rows, columns), complex_normals(columns, columns)
out = np.empty((rows, columns), dtype=np.complex64)
print(json.dumps({"numpy's complex64 product": median(lambda: np.matmul(x, weights, out=out))}))
