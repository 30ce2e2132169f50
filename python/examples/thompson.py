"""
Choose the next measurement
===========================

A Gaussian process on features is a linear function with random weights, so a draw from its posterior is one function: it can
be called anywhere and differentiated, like any other. Thompson sampling measures where such a draw is largest. Here it looks for
the maximum of the Hartmann function of six variables, 3.32, in measurements that each cost a day in somebody's laboratory.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

from bochner import FeatureGPRegressor, FourierFeatures

WEIGHTS = np.array([1.0, 1.2, 3.0, 3.2])
WIDTHS = np.array([[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]])
CENTERS = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)
MAXIMUM = 3.32237


def measure(X):
    """Hartmann's function on the unit cube."""
    return np.exp(-(WIDTHS * (X[:, np.newaxis] - CENTERS) ** 2).sum(axis=2)) @ WEIGHTS


# %%
# Ten points at random, then the maximum of one drawn function after the other: the best of many points, climbed with the
# function's own gradient.
rng = np.random.default_rng(0)
X = rng.uniform(size=(10, 6))
y = measure(X)
features = FourierFeatures(400, length_scale=0.45, random_state=0)
for step in range(70):
    model = FeatureGPRegressor(features, noise=1e-4).fit(X, y)
    (draw,) = model.sample_functions(1, random_state=step)
    starts = np.clip(np.r_[rng.uniform(size=(500, 6)), X[y.argmax()] + 0.1 * rng.normal(size=(100, 6))], 0, 1)
    start = starts[draw(starts).argmax()]
    found = minimize(
        lambda x: -draw(x), start, jac=lambda x: -draw.gradient(x), bounds=[(0, 1)] * 6, method="L-BFGS-B", options={"maxiter": 30}
    )
    X = np.vstack([X, found.x])
    y = np.r_[y, measure(found.x[np.newaxis])]

# %%
best = np.maximum.accumulate(y)
print(f"best of {len(y)} measurements: {best[-1]:.3f}, the maximum is {MAXIMUM}")
# Draws may settle on the second highest peak, as they do in about every other run of these: the best of as many points at random
# is near 2.
assert best[-1] > 0.9 * MAXIMUM

plt.plot(best, label="Thompson sampling")
plt.plot(np.maximum.accumulate(measure(rng.uniform(size=(80, 6)))), label="points at random")
plt.axhline(MAXIMUM, color="gray", linestyle=":")
plt.xlabel("measurements")
plt.ylabel("largest value so far")
plt.legend()
