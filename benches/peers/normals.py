"""numpy's Philox generator, float32 normals, one thread: median of three runs. Argument: how many."""

import json
import sys

import numpy as np
from timing import median

count = int(sys.argv[1])
generator = np.random.Generator(np.random.Philox(1))
out = np.empty(count, np.float32)
seconds = median(lambda: generator.standard_normal(dtype=np.float32, out=out))
print(json.dumps({"numpy Philox, one thread": seconds}))
