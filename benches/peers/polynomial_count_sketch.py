"""Time of scikit-learn's PolynomialCountSketch, the peer of `cargo bench --bench tensor_sketch`.

It transforms in one piece and needs 5 D complex128 numbers per row, so a slice of the rows is timed and scaled up.
"""

import time

import numpy as np
import sklearn
from sklearn.kernel_approximation import PolynomialCountSketch

ROWS, SLICE, D_IN, D_OUT, DEGREE = 10_000, 500, 1024, 10_240, 3

rows = np.random.default_rng(0).standard_normal((SLICE, D_IN), dtype=np.float32)
sketch = PolynomialCountSketch(degree=DEGREE, n_components=D_OUT, random_state=0).fit(rows)
times = []
for _ in range(3):
    start = time.perf_counter()
    sketch.transform(rows)
    times.append(time.perf_counter() - start)
seconds = min(times)
print(f"scikit-learn {sklearn.__version__} PolynomialCountSketch: {seconds:.3f} s for {SLICE} rows,", end=" ")
print(f"{seconds * ROWS / SLICE:.1f} s for {ROWS}")
