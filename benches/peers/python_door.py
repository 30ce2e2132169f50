"""What the Python door costs on top of the compiled call: features of 10,000 rows, 4,096 of them. Arguments: repetitions.

Both sides alternate, and the smallest time of each counts: everything else that runs on the machine only adds.
"""

import json
import sys
import time

import numpy as np

from bochner import FeatureRidge, FourierFeatures
from bochner._bochner import RidgeModel

repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 7
rows = np.random.default_rng(1).standard_normal((10_000, 100), dtype=np.float32)
targets = np.ascontiguousarray(rows[:, :1])
found = {}


def compare(name, door, call):
    best = [np.inf, np.inf]
    for _ in range(repetitions):
        for side, work in enumerate((door, call)):
            start = time.perf_counter()
            work()
            best[side] = min(best[side], time.perf_counter() - start)
    found[name] = {"door": best[0], "call": best[1], "overhead": best[0] / best[1] - 1}


for projection in ("gaussian", "sorf"):
    features = FourierFeatures(4096, projection=projection, random_state=0).fit(rows)
    drawn, out = features.map_, np.empty((len(rows), 4096), dtype=np.float32)
    compare(f"transform, {projection}", lambda: features.transform(rows), lambda: drawn.transform(rows))
    compare(f"transform into given memory, {projection}", lambda: features.transform(rows), lambda: drawn.transform_into(rows, out))
model = FeatureRidge(FourierFeatures(1024, random_state=0)).fit(rows, targets)
plan, drawn = model._plan(), model.features_.map_
compare("ridge", lambda: model.fit(rows, targets[:, 0]), lambda: RidgeModel.fit(drawn, rows, targets, None, plan))
print(json.dumps(found, indent=2))
