"""The columns of a table on their way to the rows of a model, which the core makes as the command line does."""

from __future__ import annotations

import json
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bochner import _bochner


class Preparation:
    """What the `preprocessing` of a model file says is done to rows first: columns by name, categories, empty cells, steps."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.spec = spec
        self.columns = spec["schema"]["inputs"]

    @property
    def names(self) -> list[str]:
        """Names of the columns that are needed."""
        return [column["name"] for column in self.columns]

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Rows as the model takes them, in float64: from a table with these columns, or from all of them in order."""
        columns = [_column(c["kind"], cells) for c, cells in zip(self.columns, self._cells(X), strict=True)]
        return _bochner.prepare(json.dumps(self.spec), columns)

    def _cells(self, X: Any) -> list[NDArray[Any]]:
        known = getattr(X, "columns", None)
        if known is not None:
            known = [str(name) for name in known]
            missing = [name for name in self.names if name not in known]
            if missing and not all(name.isdigit() for name in self.names):
                near = get_close_matches(missing[0].lower(), {name.lower(): name for name in known}, 1)
                meant = [f" (did you mean {name}?)" for name in known if name.lower() in near]
                raise ValueError(
                    f"X has no column {missing[0]}{meant[0] if meant else ''}; the model was trained on {', '.join(self.names)}; "
                    f"X has {', '.join(known)}"
                )
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


def _column(kind: dict[str, Any], cells: NDArray[Any]) -> Any:
    """Cells as the core takes them: numbers (of dates and times, seconds) with NaN, or words with None, for gaps."""
    if cells.dtype.kind in "mM":
        unit = f"{cells.dtype.kind}8[ns]"
        return np.where(np.isnat(cells), np.nan, cells.astype(unit).astype(np.int64) / 1e9)
    if cells.dtype == object:
        cells = np.array([None if _is_gap(cell) else cell for cell in cells], dtype=object)
    # Text that the core reads as it reads a file: words, dates, numbers with decimal commas.
    text = cells.dtype.kind in "OUS" and ("time" in kind or "writing" in kind.get("number", {}))
    if cells.dtype.kind == "f" or not ("words" in kind or text):
        try:
            return np.ascontiguousarray(cells, dtype=np.float64)
        except (TypeError, ValueError):
            pass  # the core says which word is in the place of a number
    return [None if cell is None else _word(cell) for cell in cells]


def _is_gap(cell: Any) -> bool:
    # pandas' own gap is neither equal to itself nor not.
    return cell is None or type(cell).__name__ in ("NAType", "NaTType") or bool(cell != cell)


def _word(cell: Any) -> str:
    """As a table has it in text."""
    return str(int(cell)) if isinstance(cell, (float, np.floating)) and cell.is_integer() else str(cell)
