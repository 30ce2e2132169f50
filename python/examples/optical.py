"""
Optical features
================

How much does a cheap camera cost? An optical processing unit shows a row to a scattering medium and reads intensities
``|Ux|^2``. Here it is simulated: any exponent, binary input, cameras of few bits.
"""

import numpy as np
from matplotlib import pyplot
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from bochner import FeatureRidgeClassifier, OpticalFeatures, plot

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, test_size=600, random_state=0)

# %%
# Left: the kernel is known for every exponent, and so is the error of D features. Right: what the camera costs.

figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4.5), layout="constrained")
maps = {f"exponent {m}": OpticalFeatures(exponent=m, projection="dense") for m in (1.0, 2.0)}
plot.kernel_error(maps, X_train[:200], n_draws=5, ax=left)
left.set_title("error of the optical kernel")

# A camera that rounds intensities to a few bits loses little. The device also wants binary rows: a threshold.
bits = [1, 2, 4, 8]
for label, binarize in (("grey pixels", None), ("pixels above 0.4", 0.4)):
    scores = []
    for camera_bits in [*bits, None]:
        features = OpticalFeatures(512, camera_bits=camera_bits, binarize=binarize, random_state=0)
        scores.append(FeatureRidgeClassifier(features, alpha=0.1).fit(X_train, y_train).score(X_test, y_test))
    (line,) = right.plot(bits, scores[:-1], "o-", label=label)
    right.axhline(scores[-1], color=line.get_color(), linewidth=1, linestyle=":", label=f"{label}, no camera")
    # Eight bits are as good as all of them, up to what two samples of 600 digits differ by.
    assert abs(scores[-2] - scores[-1]) < 4 * np.sqrt(2 * scores[-1] * (1 - scores[-1]) / 600)
right.set(xlabel="bits of the camera", ylabel="accuracy (share of 600 digits)", title="digits, 512 features")
right.legend()
