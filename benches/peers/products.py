"""numpy's products (BLAS): median of three runs. Arguments: rows, columns, outputs.

`product` is (rows x columns) @ (columns x outputs) in float32; `pairs` is 2,000 rows against 2,000 rows in float64.
"""

import json
import statistics
import sys
import time

import numpy as np

n, d, m = map(int, sys.argv[1:4])
rng = np.random.default_rng(1)


def median(run):
    run()
    times = []
    for _ in range(3):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


x, w = (rng.standard_normal(shape, dtype=np.float32) for shape in ((n, d), (d, m)))
out = np.empty((n, m), np.float32)
product = median(lambda: np.matmul(x, w, out=out))
y, z = rng.standard_normal((2000, d)), rng.standard_normal((2000, d))
print(json.dumps({"product": product, "pairs": median(lambda: np.matmul(y, z.T))}))
