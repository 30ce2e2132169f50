"""
Regression with error bars
==========================

Where does a fitted curve stop being worth anything? A Gaussian process tells by its standard deviation: it is small near
observations and grows in gaps and beyond the ends.
"""

import numpy as np

from bochner import FeatureGPRegressor, FourierFeatures, exact, plot
from bochner.kernels import Gaussian
from bochner.metrics import gaussian_kl

rng = np.random.default_rng(0)
time = np.concatenate([rng.uniform(0, 4, 120), rng.uniform(6, 9, 80)])[:, np.newaxis]
height = np.sin(2 * time[:, 0]) + 0.3 * time[:, 0] + 0.15 * rng.normal(size=200)

# %%
# Length scale, signal and noise are found by maximum marginal likelihood. The noise that was put in has a standard
# deviation of 0.15.

model = FeatureGPRegressor(FourierFeatures(300, random_state=0), optimizer="lbfgs").fit(time, height)
found = np.sqrt(model.observation_variance_)
print(f"length scale {model.features_.length_scale_:.2f}, noise {found:.3f}")
# Its estimate from 200 rows has a relative standard deviation of about 1/sqrt(2 * 200).
assert abs(found / 0.15 - 1) < 4 / np.sqrt(400)

# %%
# In the gap and beyond the ends the band opens, and functions drawn from the posterior part ways.

ax = plot.posterior(model, time, height, n_samples=5)
ax.set(xlabel="time (s)", ylabel="height (m)", title="200 observations with a gap, 300 features")

# %%
# The exact process with these hyperparameters needs the cube of the number of rows; features need the cube of theirs.

kernel = Gaussian(model.features_.length_scale_)
reference = exact.GPRegressor(kernel, noise=model.noise_, signal=model.signal_).fit(time, height)
inside = np.linspace(0, 4, 50)[:, np.newaxis]
mean, std = model.predict(inside, return_std=True)
exact_mean, exact_std = reference.predict(inside, return_std=True)
print(f"divergence per point: {gaussian_kl(mean, std**2, exact_mean, exact_std**2) / 50:.4f}")
