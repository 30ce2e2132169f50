"""Exact references: the models that features approximate, for few rows."""

from bochner._exact_operator import OperatorRidge

__all__ = ["OperatorRidge"]
