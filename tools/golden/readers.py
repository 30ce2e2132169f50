"""Small data files written by other software, for the readers' tests (crates/bochner-cli/tests/readers.rs).

Every file but the table holds the matrix X[i, j] = (7 i + 3 j) mod 11 - 5 of shape (5, 3), or a part of it, with labels
y[i] = i mod 3. Run from the repository's root: python tools/golden/readers.py (numpy, pandas, scikit-learn).
"""

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import dump_svmlight_file

folder = Path("crates/bochner-cli/tests/data")
i, j = np.mgrid[0:5, 0:3]
X = (7 * i + 3 * j) % 11 - 5
y = np.arange(5) % 3

for name in ("float32", "float64", "int8", "int16", "int32", "int64"):
    np.save(folder / f"{name}.npy", X.astype(name))
for name in ("uint8", "uint16", "uint32", "uint64", "bool"):
    np.save(folder / f"{name}.npy", np.abs(X).astype(name))
np.save(folder / "big_endian.npy", X.astype(">f8"))
np.save(folder / "fortran.npy", np.asfortranarray(X.astype("f8")))
np.save(folder / "labels.npy", y)
np.save(folder / "objects.npy", np.array([1, "a"], dtype=object), allow_pickle=True)
np.savez(folder / "stored.npz", X=X.astype("f4"), y=y)
np.savez_compressed(folder / "deflated.npz", X=X.astype("f4"), y=y)
dump_svmlight_file(X, y, str(folder / "one_based.libsvm"), zero_based=False)
dump_svmlight_file(X, y, str(folder / "zero_based.libsvm"), zero_based=True)
with gzip.GzipFile(folder / "float32.npy.gz", "wb", mtime=0) as file:
    file.write((folder / "float32.npy").read_bytes())

table = pd.DataFrame(
    {
        "size": [1.5, -2.25, 1e-3, 4e5, 0.1],
        "colour, or hue": ["red", 'dark "blue"', "grün", "red", "two\nlines"],
        "count": [3, None, 5, 7, 9],
        "class": ["no", "yes", "no", "no", "yes"],
    }
)
table.to_csv(folder / "table.csv", index=False)
table.to_csv(folder / "table.tsv.gz", index=False, sep="\t", compression={"method": "gzip", "mtime": 0})
