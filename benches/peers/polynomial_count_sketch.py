"""scikit-learn's PolynomialCountSketch. Arguments: rows, columns, outputs, degree.

It transforms in one piece and needs several complex128 numbers per output, so a slice of the rows is timed (the best of
three runs) and scaled up.
"""

import json
import sys

import numpy as np
from sklearn.kernel_approximation import PolynomialCountSketch
from timing import best

n, d, m, degree = map(int, sys.argv[1:5])
part = min(n, 500)
rows = np.random.default_rng(0).standard_normal((part, d), dtype=np.float32)
sketch = PolynomialCountSketch(degree=degree, n_components=m, random_state=0).fit(rows)
seconds = best(lambda: sketch.transform(rows), 3)
print(json.dumps({"PolynomialCountSketch": seconds * n / part}))
