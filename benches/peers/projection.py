"""numpy's matmul and scikit-learn's RBFSampler: median of three runs. Arguments: rows, columns, outputs."""

import json
import sys

import numpy as np
from sklearn.kernel_approximation import RBFSampler
from timing import median

n, d, m = map(int, sys.argv[1:4])
rng = np.random.default_rng(1)

times = {}
for name, dtype in (("f32", np.float32), ("f64", np.float64)):
    x, w = (rng.standard_normal(shape).astype(dtype) for shape in ((n, d), (d, m)))
    out = np.empty((n, m), dtype)
    times[name] = median(lambda: np.matmul(x, w, out=out))
x = rng.standard_normal((n, d), dtype=np.float32)
sampler = RBFSampler(n_components=10_000, random_state=0).fit(x)
times["RBFSampler"] = median(lambda: sampler.transform(x))
print(json.dumps(times))
