"""
More rows than memory holds
===========================

How is a model fitted to a folder of files, kept up to date, and made to forget some rows? By sums over the rows: a fit reads them
once, and what it keeps has a size that depends on the features alone.
"""

import os
import tempfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bochner import FeatureRidge, FourierFeatures

rng = np.random.default_rng(0)


def month(rows=20_000):
    X = rng.normal(size=(rows, 3))
    y = np.sin(2 * X[:, 0]) * X[:, 1] + 0.1 * rng.normal(size=rows)
    return pa.table({"x": X[:, 0], "y": X[:, 1], "z": X[:, 2], "height": y})


def error(model, table):
    batches = model.predict_stream(table)
    return np.std(pa.Table.from_batches(batches)["prediction"].to_numpy() - table["height"].to_numpy())


january, february, new = month(), month(), month()
features = FourierFeatures(512, length_scale=1.0, random_state=0)

# %%
# A path, a folder, a pattern, a pyarrow or polars table, a DuckDB relation or an iterable of batches: rows pass by and are forgotten.

with tempfile.TemporaryDirectory() as folder:
    pq.write_table(january, os.path.join(folder, "january.parquet"))
    pq.write_table(february, os.path.join(folder, "february.parquet"))
    model = FeatureRidge(features, alpha=0.1, keep_sums=True).fit_stream(folder, target="height")
print(f"{model.sums_.count} rows, error {error(model, new):.3f}")
assert model.sums_.count == 40_000 and error(model, new) < 0.13

# %%
# With ``keep_sums=True`` the sums stay, also in pickles and model files. New rows are added, the penalty is changed, and January is
# taken back without reading February again: the model is the one that never saw it.

columns = ["x", "y", "z"]
model.partial_fit(new.select(columns).to_pandas(), new["height"].to_numpy())
model.refit(alpha=0.01)
model.forget(january.select(columns).to_pandas(), january["height"].to_numpy())

without = FeatureRidge(features, alpha=0.01).fit_stream(pa.concat_tables([february, new]), target="height")
difference = np.linalg.norm(model.coef_ - without.coef_) / np.linalg.norm(without.coef_)
print(f"{model.sums_.count} rows; coefficients differ by {difference:.0e} from a fit without January")
assert difference < 1e-8
