"""
Distance between two sets of images
===================================

The kernel inception distance compares two samples by a cubic kernel, in time that grows with the product of their sizes.
Does an estimate in linear time tell small changes from none?
"""

import numpy as np
from matplotlib import pyplot
from sklearn.datasets import load_digits

from bochner import PolynomialSketch
from bochner.metrics import kid

X = load_digits().data / 16
rng = np.random.default_rng(0)
X = X[rng.permutation(len(X))]
real, other = X[:800], X[800:1600]

# %%
# The second half of the digits, with more and more noise on the pixels. The sketch estimates the kernel of the distance,
# ``(<x, y> / 64 + 1)^3``.

sketch = PolynomialSketch(1024, degree=3, gamma=1 / 64, coef0=1.0, random_state=0)
levels = [0.0, 0.1, 0.2, 0.3, 0.4]
distances = []
for level in levels:
    noisy = other + level * rng.normal(size=other.shape)
    distances.append((kid(real, noisy), kid(real, noisy, features=sketch)))
    print(f"noise {level:.1f}: exact {distances[-1][0]:+.5f}, estimated {distances[-1][1]:+.5f}")
exact, estimated = np.transpose(distances)
assert np.all(np.diff(exact) > 0) and np.all(np.diff(estimated) > 0)

# %%
figure, ax = pyplot.subplots(layout="constrained")
ax.plot(levels, exact, "o-", label="exact, all pairs")
ax.plot(levels, estimated, "s--", label="1,024 features")
ax.set(xlabel="noise (share of the range of a pixel)", ylabel="kernel inception distance", title="two halves of the digits")
ax.legend()
