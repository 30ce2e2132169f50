"""Small data files written by other software, for the readers' tests (crates/bochner-table/tests/readers.rs).

Every file but the table holds the matrix X[i, j] = (7 i + 3 j) mod 11 - 5 of shape (5, 3), or a part of it, with labels
y[i] = i mod 3. Run from the repository's root: python tools/golden/readers.py (numpy, pandas, scikit-learn, pyarrow).
"""

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.datasets import dump_svmlight_file

folder = Path("crates/bochner-table/tests/data")
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

n = np.arange(1000)
columns = {
    "float": pa.array((n / 8 - 3).astype("f4")),
    "double": pa.array(1 / (n + 1.0)),
    "int": pa.array((n * n - 5000).astype("i4")),
    "long": pa.array(10**10 - n),
    "byte": pa.array((n % 251).astype("u1")),
    "flag": pa.array(n % 5 == 0),
    "word": pa.array([("blue", "grün", "red")[i % 3] for i in n]),
    "gaps": pa.array([None if i % 7 == 0 else i / 4 for i in n]),
    "class": pa.array([("no", "yes")[i % 2] for i in n]),
}
wide = pa.table(columns)
for codec in ("none", "snappy", "gzip", "zstd", "lz4"):
    pq.write_table(wide, folder / f"{codec}.parquet", compression=codec)
pq.write_table(wide, folder / "plain.parquet", use_dictionary=False, data_page_version="2.0")
pq.write_table(wide, folder / "groups.parquet", row_group_size=300, data_page_size=256, data_page_version="2.0")
numbers = {name: "DELTA_BINARY_PACKED" for name in ("int", "long", "byte")}
words = {name: "DELTA_LENGTH_BYTE_ARRAY" for name in ("word", "class")}
delta = {"use_dictionary": False, "column_encoding": {**numbers, **words}}
pq.write_table(wide, folder / "delta.parquet", **delta)
split = {name: "BYTE_STREAM_SPLIT" for name in ("float", "double")}
pq.write_table(wide, folder / "split.parquet", use_dictionary=False, column_encoding=split)
pq.write_table(wide.slice(0, 20), folder / "small.parquet")
pq.write_table(wide.slice(0, 20), folder / "small_delta.parquet", **delta)
pq.write_table(pa.table({"a": pa.array([[1, 2], [3]])}), folder / "nested.parquet")
