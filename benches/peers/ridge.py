"""numpy's Gram product and scipy's Cholesky factorisation of it on a ready feature matrix. Arguments: rows, columns."""

import json
import sys
import time

import numpy as np
from scipy.linalg import cho_factor, cho_solve

rows, columns = int(sys.argv[1]), int(sys.argv[2])
x = np.random.default_rng(1).standard_normal((rows, columns), dtype=np.float32)
y = np.sign(np.random.default_rng(2).standard_normal((rows, 10), dtype=np.float32))
x[:1024].T @ x[:1024]
start = time.perf_counter()
gram = x.T @ x
gram[np.diag_indices(columns)] += np.float32(rows)
cho_solve(cho_factor(gram, lower=True, overwrite_a=True, check_finite=False), x.T @ y, check_finite=False)
print(json.dumps({"numpy x.T @ x, scipy cho_factor": time.perf_counter() - start}))
