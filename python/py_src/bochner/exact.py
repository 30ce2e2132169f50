"""Exact references: the models that features approximate, for as many rows as memory allows.

Kernels are those of :mod:`bochner.kernels`. Everything is computed in float64.
"""

from bochner._exact import GPClassifier, GPRegressor, KernelRidge, KernelSVC
from bochner._exact_operator import OperatorRidge

__all__ = ["GPClassifier", "GPRegressor", "KernelRidge", "KernelSVC", "OperatorRidge"]
