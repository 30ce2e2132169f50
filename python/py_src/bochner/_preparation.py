"""From the columns of a table to the rows of a model, as the command line does it."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bochner import _bochner


class Preparation:
    """What a model file says is done to rows first: columns by name, categories, empty cells, steps.

    Parameters
    ----------
    spec : dict
        The `preprocessing` of a model file.
    """

    def __init__(self, spec: dict[str, Any]) -> None:
        self.spec = spec
        self.columns = spec["schema"]["inputs"]

    @property
    def names(self) -> list[str]:
        """Names of the columns that are needed."""
        return [column["name"] for column in self.columns]

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Rows as the model takes them, in float64: from a table with these columns, or from all of them in order."""
        parts = [self._numbers(column, cells) for column, cells in zip(self.columns, self._cells(X), strict=True)]
        rows = np.ascontiguousarray(np.concatenate(parts, axis=1))
        return _bochner.prepare(json.dumps(self.spec["steps"]), rows)

    def _cells(self, X: Any) -> list[NDArray[Any]]:
        known = getattr(X, "columns", None)
        if known is not None:
            known = [str(name) for name in known]
            missing = [name for name in self.names if name not in known]
            if missing and not all(name.isdigit() for name in self.names):
                raise ValueError(f"X has no column {missing[0]}; the model was trained on {', '.join(self.names)}")
            if not missing:
                # pandas and polars both give a column by its name.
                return [np.asarray(X[X.columns[known.index(name)]]) for name in self.names]
        cells = np.asarray(X.toarray() if hasattr(X, "toarray") else X)
        if cells.ndim != 2:
            raise ValueError(f"Expected 2D array, got {cells.ndim}D array instead: X must have one row per sample")
        if cells.shape[1] != len(self.columns):
            raise ValueError(
                f"X has {cells.shape[1]} features, but the model is expecting {len(self.columns)} features as input: "
                f"{', '.join(self.names[:12])}"
            )
        return list(cells.T)

    def _numbers(self, column: dict[str, Any], cells: NDArray[Any]) -> NDArray[np.float64]:
        name, (kind, details) = column["name"], next(iter(column["kind"].items()))
        if kind == "words":
            words = details["values"]
            given = np.array([str(cell) for cell in cells])
            places = np.array([words.index(word) if word in words else -1 for word in given])
            if (places < 0).any():
                raise ValueError(f"column {name} holds {str(given[places < 0][0])!r}, which the model has not seen")
            return np.eye(len(words))[places]
        numbers = np.asarray(cells, dtype=np.float64).reshape(-1, 1)
        fill = details.get("fill")
        if fill is not None:
            numbers = np.where(np.isnan(numbers), fill, numbers)
        if not np.isfinite(numbers).all():
            raise ValueError(f"Input X contains NaN or infinity in column {name}")
        return numbers
