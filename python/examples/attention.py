"""
Attention in linear time
========================

How close does attention through random features come to softmax attention, which takes the square of the length?
"""

import numpy as np
from matplotlib import pyplot

from bochner import PositiveFeatures, linear_attention, softmax_attention

rng = np.random.default_rng(0)
q, k, v = rng.normal(size=(3, 512, 16)) * [[[0.5]], [[0.5]], [[1.0]]]
exact = softmax_attention(q, k, v, causal=True)

# %%
# Positive features make every output a mean of values indeed. The error falls with the root of their number.

sizes = [32, 128, 512, 2048]
errors = {}
for kind in ("positive", "hyperbolic"):
    errors[kind] = []
    for size in sizes:
        outs = [
            linear_attention(q, k, v, PositiveFeatures(size, kind=kind, random_state=seed), causal=True)
            for seed in range(3)
        ]
        errors[kind].append(np.sqrt(np.mean([np.mean((out - exact) ** 2) for out in outs]) / np.mean(exact**2)))
print({kind: np.round(values, 3).tolist() for kind, values in errors.items()})
assert errors["positive"][-1] < errors["positive"][0] / 3

# %%
figure, ax = pyplot.subplots(layout="constrained")
for kind, values in errors.items():
    ax.loglog(sizes, values, "o-", label=kind)
ax.set(xlabel="number of features D", ylabel="relative error of the outputs", title="512 tokens, 16 dimensions, causal")
ax.legend()
