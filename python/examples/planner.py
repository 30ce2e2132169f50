"""
Plan the number of features
===========================

Which map estimates a kernel to 10 percent on these rows, and with how many features? The planner answers from closed-form
variances on a sample of the rows, before anything is drawn.
"""

from sklearn.datasets import load_digits
from sklearn.preprocessing import normalize, scale

from bochner import PolynomialSketch, plan, plot
from bochner.kernels import Polynomial

X = normalize(scale(load_digits().data, with_std=False))
kernel = Polynomial(degree=3, coef0=1.0)
found = plan(X, kernel, error=0.1, max_features=8192, sample_rows=300, random_state=0)
print(found)

# %%
# The winner was drawn a few times and measured; the planner promises 15 percent.

best = found.best
print(f"predicted {best.predicted_error:.4f}, measured {found.measured_error:.4f}")
assert abs(found.measured_error / best.predicted_error - 1) < 0.15

# %%
# The same prediction over a range of sizes: dashed lines are closed forms, points are measured.

parameters = {"degree": 3, "coef0": 1.0}
maps = {
    "TensorSRHT, complex to real": PolynomialSketch(**parameters),
    "TensorSRHT, real": PolynomialSketch(weights="real", **parameters),
    "TensorSketch": PolynomialSketch(sketch="tensor_sketch", weights="real", **parameters),
}
ax = plot.kernel_error(maps, X[:200], n_draws=5)
ax.axhline(0.1, color="0.6", linewidth=1)
ax.set_title("Centred digits of unit length, polynomial kernel of degree 3")
