"""Non-negative least squares by scipy.optimize.nnls, for the tests of linalg/nnls.rs."""

import numpy as np
import scipy
from scipy.optimize import nnls


def problem(rows, cols, phase):
    i, j = np.mgrid[:rows, :cols]
    return np.sin(phase + 1.7 * i + 0.9 * j * j + 0.3 * i * j), np.cos(phase + 0.8 * np.arange(rows))


def main():
    print("scipy", scipy.__version__)
    for rows, cols, phase in ((6, 4, 0.3), (12, 7, 1.1), (5, 9, 2.0), (30, 12, 0.7)):
        x, residual = nnls(*problem(rows, cols, phase))
        print((rows, cols, phase), [float(f"{v:.15g}") for v in x], float(f"{residual:.15g}"))


if __name__ == "__main__":
    main()
