"""
Save a model and load it elsewhere
==================================

How does a fitted model get from one program to another? As a file of coefficients and the description of its map, which is
drawn again from its seed. The command line reads and writes the same files, and reading one runs no code.
"""

import os
import pickle
import tempfile

import numpy as np
from sklearn.datasets import load_digits

import bochner
from bochner import FeatureRidgeClassifier, FourierFeatures

X, y = load_digits(return_X_y=True)
X = X / 16
features = FourierFeatures(4096, length_scale="median", random_state=0)
model = FeatureRidgeClassifier(features, alpha=0.01).fit(X[:1200], y[:1200])

# %%
# Saved and loaded, it predicts the same, bit for bit. The matrix of 4,096 directions is not in the file.

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "digits.bochner")
    model.save(path)
    again = bochner.load(path)
    print(f"{os.path.getsize(path) / 1024:.0f} KiB, of which coefficients {10 * 4096 * 8 / 1024:.0f} KiB")
assert np.array_equal(again.decision_function(X), model.decision_function(X))

# %%
# In a shell, on a file with the same columns: ``bochner predict digits.bochner new.csv --out digits.csv``.
#
# Between Python processes pickle and joblib work as with every estimator of scikit-learn.

assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
