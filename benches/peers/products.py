"""numpy's products (BLAS): median of three runs. Arguments: rows, columns, outputs.

`product` is (rows x columns) @ (columns x outputs) in float32; `pairs` is 2,000 rows against 2,000 rows in float64.
"""

import json
import sys

import numpy as np
from timing import median

n, d, m = map(int, sys.argv[1:4])
rng = np.random.default_rng(1)

x, w = (rng.standard_normal(shape, dtype=np.float32) for shape in ((n, d), (d, m)))
out = np.empty((n, m), np.float32)
product = median(lambda: np.matmul(x, w, out=out))
y, z = rng.standard_normal((2000, d)), rng.standard_normal((2000, d))
print(json.dumps({"product": product, "pairs": median(lambda: np.matmul(y, z.T))}))
