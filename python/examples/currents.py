"""
Currents from drifting buoys
============================

Where does water well up, and where does it turn? Buoys say how fast the water is where they are. A process whose functions are
gradients and flows at once continues that to a map, and says of every divergence and vorticity how sure it is.
"""

import tempfile

import numpy as np
import pandas as pd
from matplotlib import pyplot

from bochner import OperatorGPRegressor


def current(X):
    """An eddy that turns to the left, and a place east of it where water wells up (km, m/s)."""
    eddy, source = X - [-10.0, 0.0], X - [12.0, 5.0]
    turning = np.exp(-0.5 * (eddy**2).sum(axis=1, keepdims=True) / 64) * np.c_[-eddy[:, 1], eddy[:, 0]]
    rising = np.exp(-0.5 * (source**2).sum(axis=1, keepdims=True) / 36) * source
    return 0.1 * turning + 0.05 * rising


# A file of buoys, as somebody else would send it.
rng = np.random.default_rng(3)
places = rng.uniform(-25, 25, size=(220, 2))
speeds = current(places) + 0.03 * rng.normal(size=(220, 2))
with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    pd.DataFrame(np.c_[places, speeds], columns=["east", "north", "u", "v"]).to_csv(file.name, index=False)
    buoys = pd.read_csv(file.name)

# %%
# Length scale, share of the curl-free part, signal and noise are those at which the buoys are likeliest.

model = OperatorGPRegressor("helmholtz", 240, length_scale="median", optimizer="lbfgs", max_iter=60, random_state=0)
model.fit(buoys[["east", "north"]], buoys[["u", "v"]])
kernel = model.kernel_
print(f"length scale {kernel['length_scale']:.1f} km, {kernel['curl_free']:.0%} curl-free")

# %%
# The map: velocity, divergence and vorticity on a grid, with standard deviations.

side = np.linspace(-25, 25, 41)
grid = pd.DataFrame(np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2), columns=["east", "north"])
velocity, velocity_std = model.predict(grid, return_std=True)
divergence, divergence_std = model.divergence(grid, return_std=True)
vorticity, vorticity_std = model.vorticity(grid, return_std=True)

truth = current(grid.to_numpy())
inside = abs(velocity - truth) < 1.645 * velocity_std
print(f"velocities within their 90% intervals: {inside.mean():.0%}")
assert np.sqrt(np.mean((velocity - truth) ** 2)) < 0.03
# Water wells up in the east, and turns to the left in the west; both are far beyond chance.
rises, turns = grid.to_numpy()[np.argmax(divergence)], grid.to_numpy()[np.argmax(vorticity)]
assert np.hypot(*(rises - [12.0, 5.0])) < 4 and np.hypot(*(turns - [-10.0, 0.0])) < 4
assert divergence.max() > 4 * divergence_std[np.argmax(divergence)]

# %%
# Tiles are what is likeliest; lines go around what differs from 0 by more than two standard deviations.

figure, axes = pyplot.subplots(1, 2, figsize=(11, 5), layout="constrained", sharey=True)
for ax, name, mean, std in (
    (axes[0], "divergence", divergence, divergence_std),
    (axes[1], "vorticity", vorticity, vorticity_std),
):
    most = abs(mean).max()
    tiles = ax.pcolormesh(side, side, mean.reshape(41, 41), cmap="RdBu_r", vmin=-most, vmax=most)
    ax.contour(side, side, abs(mean / std).reshape(41, 41), levels=[2.0], colors="black", linewidths=1.0)
    ax.quiver(buoys["east"], buoys["north"], buoys["u"], buoys["v"], width=0.002)
    ax.set(xlabel="east (km)", title=f"{name} (m/s per km)")
    figure.colorbar(tiles, ax=ax)
axes[0].set(ylabel="north (km)")
