"""pandas.read_csv (C engine) of the file given: median of three runs."""

import json
import sys

import pandas as pd
from timing import median

print(json.dumps({"pandas.read_csv": median(lambda: pd.read_csv(sys.argv[1], engine="c"))}))
