"""pandas.read_csv (C engine) of the file given: median of three runs."""

import json
import statistics
import sys
import time

import pandas as pd


def once(path):
    start = time.perf_counter()
    pd.read_csv(path, engine="c")
    return time.perf_counter() - start


print(json.dumps({"pandas.read_csv": statistics.median(once(sys.argv[1]) for _ in range(3))}))
