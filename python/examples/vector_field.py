"""
A flow from a few measurements
==============================

Can forty noisy measurements of a flow be continued to the whole plane? If the flow has no sources, a kernel whose
functions have none either makes every measurement count twice.
"""

import numpy as np
from matplotlib import pyplot

from bochner import OperatorRidge, plot


def flow(X):
    """Two vortices: the curl of a potential, so its divergence is 0."""
    out = np.zeros_like(X)
    for sign, centre in ((1.0, [-1.0, 0.0]), (-1.0, [1.0, 0.0])):
        delta = X - centre
        out += sign * np.exp(-0.5 * (delta**2).sum(axis=1, keepdims=True)) * np.c_[-delta[:, 1], delta[:, 0]]
    return out


rng = np.random.default_rng(1)
X = rng.uniform(-2.5, 2.5, size=(40, 2))
y = flow(X) + 0.05 * rng.normal(size=(40, 2))

# %%
# Three kernels at the same length scale and penalty: one that knows that there are no sources, one that knows that there
# is no rotation, which is wrong here, and one that treats the two components as strangers.

everywhere = rng.uniform(-2.5, 2.5, size=(2000, 2))
errors = {}
models = {}
for kernel in ("divergence_free", "curl_free", "decomposable"):
    model = OperatorRidge(kernel, length_scale=1.0, n_components=800, alpha=0.02, random_state=0).fit(X, y)
    errors[kernel] = np.sqrt(np.mean((model.predict(everywhere) - flow(everywhere)) ** 2))
    models[kernel] = model
print({kernel: f"{error:.3f}" for kernel, error in errors.items()})
assert min(errors, key=errors.get) == "divergence_free"

# %%
# The fitted field keeps the promise exactly, not only where it was measured.

J = models["divergence_free"].jacobian(everywhere)
print(f"largest divergence: {np.abs(np.trace(J, axis1=1, axis2=2)).max():.1e}")
assert np.abs(np.trace(J, axis1=1, axis2=2)).max() < 1e-8

# %%
figure, axes = pyplot.subplots(1, 2, figsize=(10, 5), layout="constrained")
for ax, kernel in zip(axes, ("divergence_free", "decomposable"), strict=True):
    plot.vector_field(models[kernel], X, y, ax=ax)
    ax.set(xlabel="east (km)", ylabel="north (km)", title=f"{kernel}: error {errors[kernel]:.3f} m/s")
