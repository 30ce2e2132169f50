"""
Polynomial sketches of high degree
==================================

What do complex weights buy? On rows with positive entries real sketches of high degree vary far more than complex
ones, at the same number of real columns.
"""

from sklearn.datasets import load_digits
from sklearn.preprocessing import normalize

from bochner import PolynomialSketch, plot

X = normalize(load_digits().data[:200])
maps = {
    "complex to real": PolynomialSketch(degree=7, weights="ctr"),
    "real": PolynomialSketch(degree=7, weights="real"),
    "TensorSketch": PolynomialSketch(degree=7, sketch="tensor_sketch", weights="real"),
}

# %%
# The variance says it without a draw: here is the root of its mean over all pairs of rows.

spread = {}
for name, features in maps.items():
    features = features.set_params(n_components=1024).fit(X)
    spread[name] = float(features.variance(X).mean() ** 0.5)
print({name: f"{value:.3f}" for name, value in spread.items()})
assert min(spread, key=spread.get) == "complex to real"

# %%
ax = plot.kernel_error(maps, X, n_draws=20)
ax.set_title("Digits of unit length, polynomial kernel of degree 7")
