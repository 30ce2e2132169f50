"""scikit-learn's GaussianRandomProjection and RBFSampler: median of three runs over blocks of rows.

Arguments: rows, columns, measurements, features, rows per block.
"""

import json
import sys

import numpy as np
from sklearn.kernel_approximation import RBFSampler
from sklearn.random_projection import GaussianRandomProjection
from timing import median

n, d, m, features, block = map(int, sys.argv[1:6])
x = np.random.default_rng(1).standard_normal((n, d), dtype=np.float32)
projection = GaussianRandomProjection(m, random_state=0).fit(x[:100])
projection.components_ = projection.components_.astype(np.float32)
sampler = RBFSampler(n_components=features, gamma=0.5 / 28**2, random_state=0).fit(projection.transform(x[:100]))


def transform():
    for first in range(0, n, block):
        sampler.transform(projection.transform(x[first : first + block]))


print(json.dumps({"GaussianRandomProjection + RBFSampler": median(transform)}))
