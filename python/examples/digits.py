"""
Classify digits, with probabilities
===================================

How well do random features read handwritten digits, and do they know when they do not?
"""

from sklearn.datasets import load_digits
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import train_test_split

from bochner import FeatureGPClassifier, FeatureRidgeClassifier, FourierFeatures, plot

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, test_size=1500, random_state=0)

# %%
# A linear classifier, and the same one on features of the Gaussian kernel. The length scale is the median distance
# between rows; the features never exist as a matrix.

linear = RidgeClassifier(alpha=1.0).fit(X_train, y_train)
features = FourierFeatures(512, length_scale="median", random_state=0)
model = FeatureRidgeClassifier(features, alpha=0.01).fit(X_train, y_train)
print(f"linear {linear.score(X_test, y_test):.3f}, on features {model.score(X_test, y_test):.3f}")
assert model.score(X_test, y_test) > linear.score(X_test, y_test)

# %%
# A Gaussian process says how sure it is. Where it says 70 percent, it should be right in seven cases of ten: points on
# the diagonal, up to the bars.

process = FeatureGPClassifier(features, alpha=[1e-3, 1e-2, 1e-1], random_state=0).fit(X_train, y_train)
print(f"process {process.score(X_test, y_test):.3f}, alpha = {process.alpha_}")
ax = plot.calibration(process, X_test, y_test)
ax.set_title("Digits: a Gaussian process on 512 features")
