"""
From scikit-learn by changing a name
====================================

What has to change in a pipeline that uses `RBFSampler` or `PolynomialCountSketch`? The import and the class name.
"""

from sklearn.datasets import load_digits
from sklearn.kernel_approximation import PolynomialCountSketch, RBFSampler
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from bochner import FeatureRidgeClassifier, FourierFeatures, PolynomialSketch

X, y = load_digits(return_X_y=True)
X = X / 16


def accuracy(model):
    return cross_val_score(model, X, y, cv=3).mean()


# %%
# Parameters mean the same. The estimates vary less, so the same number of features is usually worth more.

scores = {}
for make in (RBFSampler, FourierFeatures):
    scores[make.__name__] = accuracy(make_pipeline(make(gamma=0.05, n_components=300, random_state=0), RidgeClassifier()))
for make in (PolynomialCountSketch, PolynomialSketch):
    sketch = make(degree=3, gamma=0.05, coef0=1.0, n_components=300, random_state=0)
    scores[make.__name__] = accuracy(make_pipeline(sketch, RidgeClassifier()))
for name, score in scores.items():
    print(f"{name:22} {score:.3f}")
assert scores["FourierFeatures"] > scores["RBFSampler"] - 0.02
assert scores["PolynomialSketch"] > scores["PolynomialCountSketch"] - 0.02

# %%
# One step further: a model that takes the features in. The same answer, without the matrix of features.

features = FourierFeatures(gamma=0.05, n_components=300, random_state=0)
one_pass = FeatureRidgeClassifier(features, alpha=1.0).fit(X, y)
two_steps = make_pipeline(features, RidgeClassifier(alpha=1.0)).fit(X, y)
assert (one_pass.predict(X) == two_steps.predict(X)).all()
