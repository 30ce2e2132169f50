"""Objectives of support vector machines by scikit-learn (liblinear and libsvm), for crates/bochner/tests/svm.rs.

Rows x[i, j] = sin(1 + 0.7 i (j + 1)); the class is how many of the thresholds -0.4 and 0.4 the product of the first two
numbers, plus a third of the third one, exceeds.
"""

import numpy as np
from sklearn.svm import SVC, LinearSVC

n, d = 120, 4
x = np.sin(1.0 + 0.7 * np.arange(n)[:, None] * (np.arange(d) + 1))
score = x[:, 0] * x[:, 1] + x[:, 2] / 3
y = (score > -0.4).astype(int) + (score > 0.4)
print("rows per class:", np.bincount(y))
signs = np.where(y[:, None] == np.arange(3), 1.0, -1.0)
for loss in ("hinge", "squared_hinge"):
    for intercept in (False, True):
        model = LinearSVC(loss=loss, C=0.8, dual=True, fit_intercept=intercept, tol=1e-10, max_iter=10_000_000, random_state=0)
        model.fit(x, y)
        hinge = np.maximum(0.0, 1.0 - signs * (x @ model.coef_.T + model.intercept_))
        cost = hinge if loss == "hinge" else hinge**2
        size = np.sum(model.coef_**2, axis=1) + np.asarray(model.intercept_) ** 2
        print(loss, intercept, [f"{v:.9f}" for v in 0.5 * size + 0.8 * cost.sum(axis=0)])
for name, options in (("gaussian", {"kernel": "rbf", "gamma": 0.5 / 0.7**2}), ("linear", {"kernel": "linear"})):
    for first, second in ((0, 1), (0, 2), (1, 2)):
        chosen = (y == first) | (y == second)
        model = SVC(C=3.0, tol=1e-10, **options).fit(x[chosen], y[chosen])
        coef = model.dual_coef_[0]
        support = model.support_vectors_
        if name == "gaussian":
            gram = np.exp(-0.5 / 0.7**2 * ((support[:, None] - support[None]) ** 2).sum(axis=2))
        else:
            gram = support @ support.T
        dual = np.abs(coef).sum() - 0.5 * coef @ gram @ coef
        # The sign of libsvm's intercept belongs to the second class.
        print(name, (first, second), f"dual {dual:.9f}", f"intercept {-model.intercept_[0]:.8f}", f"support {len(coef)}")
