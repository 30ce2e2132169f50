"""Gaussian processes on twelve rows by scikit-learn, for crates/bochner/tests/gaussian_process.rs and tests/exact.rs.

Run: python tools/golden/gaussian_processes.py
"""

import numpy as np
import sklearn
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct
from sklearn.kernel_ridge import KernelRidge

i = np.arange(12)
X = np.stack([np.sin(i + 1.0), np.cos(2.0 * i), (i % 5) / 4.0], axis=1)
y = np.stack([np.sqrt(i + 1.0), (i % 3) - 1.0], axis=1)
new = np.array([[0.5, -0.25, 1.0], [2.0, 1.0, -1.0]])


def show(name, value):
    print(f"{name}: {np.array2string(np.asarray(value), separator=', ', floatmode='unique', max_line_width=200)}")


print("scikit-learn", sklearn.__version__)
for title, kernel in [
    ("linear", ConstantKernel(1.7, "fixed") * DotProduct(0.0, "fixed")),
    ("gaussian", ConstantKernel(1.7, "fixed") * RBF(0.8, "fixed")),
]:
    for normalised in (False, True):
        centred = y if normalised else y - y.mean(0)
        model = GaussianProcessRegressor(kernel, alpha=0.3, optimizer=None, normalize_y=normalised).fit(X, centred)
        mean, std = model.predict(new, return_std=True)
        _, cov = model.predict(new, return_cov=True)
        print(title, "normalised" if normalised else "plain")
        show("mean", mean + (0 if normalised else y.mean(0)))
        show("variance", std**2)
        show("covariance", cov[0, 1])
        likelihood = model.log_marginal_likelihood_value_
        show("likelihood", likelihood - (12 * np.log(y.std(0)).sum() if normalised else 0.0))
show("kernel ridge", KernelRidge(kernel="rbf", gamma=0.5 / 0.8**2, alpha=0.3).fit(X, y).predict(new))
