"""Measures which map estimates which kernel with the fewest features, on data that scikit-learn brings along.

Prints the tables of the page "Which map should I use?" (`make which-map` writes them, `make check-long` compares them).
Numbers of features follow from closed forms on fixed rows, so they are the same on every machine; times are not, and
are left out.
"""

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.preprocessing import StandardScaler, normalize

from bochner import plan
from bochner.kernels import Exponential, Gaussian, Matern, Optical, Polynomial

ERROR = 0.05
MOST = 1 << 13
ROWS = 200


def median_distance(X):
    squares = (X**2).sum(axis=1)
    distances = np.sqrt(np.maximum(squares[:, None] + squares - 2 * X @ X.T, 0))
    return float(np.median(distances[np.triu_indices(len(X), 1)]))


def data():
    """Name, what is special about it, rows."""
    digits = load_digits().data[:ROWS] / 16
    yield "digits", "64 pixels, none negative, most products of rows large", normalize(digits)
    centred = digits - digits.mean(axis=0)
    yield "centred digits", "the same without their mean: inner products of both signs", normalize(centred)
    cells = StandardScaler().fit_transform(load_breast_cancer().data)[:ROWS]
    yield "cells", "30 standardised columns of the breast cancer data", normalize(cells)


def round_up(number):
    """To two digits, which hides what machines round differently."""
    unit = 10 ** max(0, len(str(number)) - 2)
    return -(-number // unit) * unit


def kernels(X):
    length_scale = median_distance(X)
    yield "Gaussian, median length scale", Gaussian(length_scale)
    yield "Gaussian, a quarter of it", Gaussian(length_scale / 4)
    yield "Matérn 3/2, median length scale", Matern(nu=1.5, length_scale=length_scale)
    yield "polynomial, degree 2", Polynomial(2)
    yield "polynomial, degree 3, coef0 1", Polynomial(3, 1.0, 1.0)
    yield "polynomial, degree 7", Polynomial(7)
    yield "exponential", Exponential()
    yield "optical, exponent 1", Optical(1.0)
    yield "optical, exponent 2", Optical(2.0)


def tables():
    """The tables in Markdown, one for every data set."""
    lines = []
    for name, remark, X in data():
        lines += [f"## {name.capitalize()}", "", f"{remark.capitalize()}; {len(X)} rows of unit length.", ""]
        lines += ["| kernel | fewest features | next | next |", "| --- | --- | --- | --- |"]
        for kernel_name, kernel in kernels(X):
            found = plan(X, kernel, error=ERROR, max_features=MOST, n_draws=0, random_state=0)
            # Ties, which are frequent, by name: the planner's own order is that of measured times.
            ranked = sorted(found.choices, key=lambda choice: (choice.n_components, choice.map))
            cells = [f"{choice.map}: {round_up(choice.n_components):,}" for choice in ranked[:3]]
            cells = cells or [f"none with {MOST:,} or fewer"]
            lines.append(f"| {kernel_name} | {' | '.join(cells + ['–'] * (3 - len(cells)))} |")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    print(tables())
