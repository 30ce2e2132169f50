"""
Features of compressed rows
===========================

How few measurements of a row are enough? Fourier features of random measurements cost little in high dimensions, and the
measurements can be stored in place of the rows.
"""

import numpy as np
from matplotlib import pyplot
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from bochner import CompressiveFeatures, FeatureSVC, FourierFeatures

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, test_size=600, random_state=0)

# %%
# Support vector machines on 300 features of 4 to 64 measurements, over a few draws; beside them the features of the rows
# themselves, which is what all 64 measurements amount to.

sizes = [4, 8, 16, 64]
scores = np.array(
    [
        [
            FeatureSVC(CompressiveFeatures(300, compressed_dim=m, length_scale=3.0, random_state=seed), random_state=0)
            .fit(X_train, y_train)
            .score(X_test, y_test)
            for seed in range(2)
        ]
        for m in sizes
    ]
)
whole = FeatureSVC(FourierFeatures(300, length_scale=3.0, random_state=0), random_state=0).fit(X_train, y_train)
print(dict(zip(sizes, scores.mean(axis=1).round(3).tolist(), strict=True)), whole.score(X_test, y_test))
assert np.all(np.diff(scores.mean(axis=1)[:3]) > 0)

# %%
# What is estimated is the mean of the Gaussian kernel over projections, in closed form: it has heavier tails than the
# Gaussian kernel where there are few measurements.

figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4.5), layout="constrained")
left.errorbar(sizes, scores.mean(axis=1), yerr=scores.std(axis=1), fmt="o-", capsize=3, label="compressed rows")
left.axhline(whole.score(X_test, y_test), color="0.6", linewidth=1, label="whole rows")
left.set(xlabel="measurements per row", ylabel="accuracy (share of 600 digits)", title="digits, 300 features")
left.set_xscale("log", base=2)
left.set_xticks(sizes, [str(size) for size in sizes])
left.legend()

distances = np.linspace(0, 4, 200)
line = np.zeros((200, 64))
line[:, 0] = distances
for m in (4, 16, 64):
    kernel = CompressiveFeatures(2, compressed_dim=m, random_state=0).fit(line).exact_kernel(line, line[:1])
    right.plot(distances, kernel, label=f"{m} of 64 measurements")
right.set(xlabel="distance in length scales", ylabel="limit kernel", title="what the features estimate")
right.legend()
