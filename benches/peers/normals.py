"""numpy's Philox generator, float32 normals, one thread: median of three runs. Argument: how many."""

import json
import statistics
import sys
import time

import numpy as np

count = int(sys.argv[1])
generator = np.random.Generator(np.random.Philox(1))
out = np.empty(count, np.float32)


def once():
    start = time.perf_counter()
    generator.standard_normal(dtype=np.float32, out=out)
    return time.perf_counter() - start


print(json.dumps({"numpy Philox, one thread": statistics.median(once() for _ in range(3))}))
