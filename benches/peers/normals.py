"""Standard normals a second in numpy: Philox, float32, one thread. Peer of `cargo bench --bench normals`."""

import time

import numpy as np

COUNT = 100_000_000

generator = np.random.Generator(np.random.Philox(1))
out = np.zeros(COUNT, dtype=np.float32)
times = []
for _ in range(3):
    start = time.perf_counter()
    generator.standard_normal(out=out, dtype=np.float32)
    times.append(time.perf_counter() - start)
print(f"numpy {np.__version__} Philox float32: {COUNT / min(times) / 1e6:.0f} million a second")
