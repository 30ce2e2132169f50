"""numpy's x.T @ x (BLAS): median of three runs. Arguments: rows, columns, f32 or f64."""

import json
import sys

import numpy as np
from timing import median

rows, columns = int(sys.argv[1]), int(sys.argv[2])
x = np.random.default_rng(1).standard_normal((rows, columns), dtype={"f32": np.float32, "f64": np.float64}[sys.argv[3]])

print(json.dumps({"numpy x.T @ x": median(lambda: x.T @ x)}))
