"""Poolings of local descriptors: features of images from features of their positions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from bochner._catalogue import documented
from bochner._features import PolynomialSketch


@documented
def compact_bilinear_pooling(X: ArrayLike, features: PolynomialSketch) -> NDArray[Any]:
    r"""Sum the features of the local descriptors of every image.

    With descriptors f of one image and g of another, inner products of the sums estimate the sum of
    ``(gamma <f, g> + coef0)^2`` over all pairs of positions. For ``gamma=1`` and ``coef0=0`` that is the inner product
    of the bilinear poolings, the sums of outer products ``f f^T`` (Gao et al. 2016). Images are read one after the
    other: beyond the result, memory holds the features of one.

    Parameters
    ----------
    X : array-like of shape (n_images, n_positions, n_channels)
        Local descriptors, such as the last feature map of a network with its two axes of space made one.
    features : PolynomialSketch
        A sketch of degree 2. A fitted one is used as it is; otherwise a clone is fitted. Images pooled in several calls
        compare only under one sketch: fit it first, or give it a seed.

    Returns
    -------
    pooled : ndarray of shape (n_images, n_features_out)
        Sums, float32 for descriptors in float32 and float64 otherwise; complex where the features are.

    >>> X = np.random.default_rng(0).normal(size=(3, 49, 16))
    >>> pooled = compact_bilinear_pooling(X, PolynomialSketch(4096, random_state=0))
    >>> outer = np.einsum("ilc,ild->icd", X, X).reshape(3, -1)
    >>> bool(np.allclose(pooled @ pooled.T, outer @ outer.T, rtol=0.1))
    True
    """
    if not isinstance(features, PolynomialSketch):
        raise TypeError(f"features must be a PolynomialSketch, got {type(features).__name__}")
    images = np.asarray(X)
    if images.ndim != 3 or 0 in images.shape:
        raise ValueError(f"X must have shape (n_images, n_positions, n_channels), none of them 0; got {images.shape}")
    fitted = features if hasattr(features, "map_") else clone(features).fit(images[0])
    if fitted.spec_["degree"] != 2:
        raise ValueError(f"bilinear pooling is made of sketches of degree 2, got degree={fitted.spec_['degree']}")
    return np.stack([fitted.transform(image).sum(axis=0) for image in images])
