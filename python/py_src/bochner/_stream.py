"""Rows that come one after the other: files, Arrow streams and batches, through models that never see them all."""

from __future__ import annotations

import difflib
import glob
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bochner import _bochner

# Rows that the core is given at once: what a call costs is lost beside them.
ROWS = 1 << 16
# Numbers in as many rows, at most.
NUMBERS = 1 << 22
# Rows whose columns become rows at once: they stay in the cache meanwhile.
WINDOW = 1 << 13
PREPARED = "AutoRegressor and AutoClassifier prepare such columns, and columns=[...] leaves them out"

# Rows with their targets, if they have some.
Batch = tuple[Any, Any]


def _arrow() -> Any:
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError("Arrow data need pyarrow: pip install pyarrow") from error
    return pyarrow


def _of_duckdb(source: Any) -> str | None:
    """What a relation of DuckDB calls a reader of its rows; None for anything else."""
    return next((name for name in ("to_arrow_reader", "fetch_record_batch") if hasattr(source, name)), None)


def _is_arrow(source: Any) -> bool:
    lazy = hasattr(source, "collect_schema") and hasattr(source, "collect")
    return lazy or hasattr(source, "__arrow_c_stream__") or _of_duckdb(source) is not None


class Source:
    """Batches of rows, with targets where those are asked for."""

    # Whether there can be several passes.
    again: bool = True
    # Names of the columns of rows, where they have some.
    names: list[str] | None = None

    def batches(self) -> Iterator[Batch]:
        """One pass over all rows."""
        raise NotImplementedError

    def head(self, least: int) -> tuple[list[Batch], Iterator[Batch]]:
        """The first batches, with so many rows if there are as many, and all others."""
        found: list[Batch] = []
        rest = self.batches()
        while sum(len(rows) for rows, _ in found) < least:
            batch = next(rest, None)
            if batch is None:
                break
            if len(batch[0]):
                found.append(batch)
        if not found:
            raise ValueError("the source has no rows: at least one is needed")
        return found, rest

    def classes(self) -> NDArray[Any]:
        """All labels, from a pass of its own."""
        found = [np.unique(labels) for _, labels in self.batches() if len(labels)]
        if not found:
            raise ValueError("the source has no rows: at least one is needed")
        return np.unique(np.concatenate(found))


class Files(Source):
    """Files that the readers of the command line know, with columns of numbers."""

    def __init__(self, paths: list[str], targets: list[str], columns: Sequence[str] | None) -> None:
        self.paths, self._targets = paths, targets
        # What the first file holds, all others have to.
        self._first: Any = _bochner.FileRows(paths[0], targets, None if columns is None else list(columns))
        self.names = list(self._first.names)
        self._schema, self._labels = self._first.schema, self._first.labels

    def batches(self) -> Iterator[Batch]:
        first, self._first = self._first, None
        for path in self.paths:
            file = first if first is not None else _bochner.FileRows(path, [], None, self._schema)
            first = None
            for rows, targets in file:
                if self._labels is not None:
                    targets = np.asarray(self._labels)[targets[:, 0].astype(np.intp)]
                elif targets.shape[1] == 1:
                    targets = targets[:, 0]
                yield rows, targets


class Arrow(Source):
    """Anything that gives record batches, with columns of numbers."""

    def __init__(self, source: Any, targets: list[str], columns: Sequence[str] | None, labels: bool) -> None:
        self._source, self._targets, self._labels = source, targets, labels
        pa = _arrow()
        self.again = not isinstance(source, pa.RecordBatchReader)
        # A reader gives its rows once: it is asked for its columns without taking any.
        self._once = None if self.again else source
        known = self._known()
        for name in [*targets, *(columns or ())]:
            if name not in known:
                raise ValueError(f"the source has no column {name!r}{_similar(name, known)}")
        # An index of pandas is no column.
        own = set(map(str, source.columns)) if hasattr(source, "iloc") else known
        others = [name for name in known if name not in targets and name in own]
        self.names = others if columns is None else list(columns)
        if not self.names:
            raise ValueError(f"the source has no columns but its target {', '.join(targets)}")
        for name in self.names:
            _check_numbers(name, known[name])
        for name in targets if not labels else ():
            _check_numbers(name, known[name])
        types = [np.dtype(known[name].to_pandas_dtype()) if _is_plain(known[name]) else np.dtype(float) for name in self.names]
        self.dtype = np.dtype(np.float32 if np.result_type(*types) == np.float32 else np.float64)

    def _known(self) -> dict[str, Any]:
        source = self._source
        if hasattr(source, "collect"):
            schema = source.head(0).collect().to_arrow().schema
        elif hasattr(getattr(source, "schema", None), "metadata"):
            schema = source.schema
        elif (reader := _of_duckdb(source)) is not None:
            schema = getattr(source.limit(0), reader)().schema
        else:
            schema = self._reader().schema
        return dict(zip(schema.names, schema.types, strict=True))

    def _reader(self) -> Any:
        """Record batches from the first one on."""
        pa = _arrow()
        if self._once is not None:
            return self._once
        # Lazy frames of polars are computed batch by batch.
        if hasattr(self._source, "collect_batches"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                frames = self._source.collect_batches()
            return (batch for frame in frames for batch in frame.to_arrow().to_batches())
        if hasattr(self._source, "collect") and not hasattr(self._source, "__arrow_c_stream__"):
            return self._source.collect().to_arrow().to_batches()
        # Of DuckDB the same as a stream, not as a whole.
        if (reader := _of_duckdb(self._source)) is not None:
            return getattr(self._source, reader)()
        return pa.RecordBatchReader.from_stream(self._source)

    def record_batches(self) -> Iterator[Any]:
        """One pass over record batches; the columns must stay the same."""
        if self._once is None and not self.again:
            raise ValueError("the source can be read once only, and was")
        reader = self._reader()
        self._once = None
        first: Any = None
        for batch in reader:
            first = batch.schema if first is None else first
            if not batch.schema.equals(first):
                raise ValueError(f"the columns of the source change on the way: {_columns(first)}, and then {_columns(batch.schema)}")
            yield batch

    def batches(self) -> Iterator[Batch]:
        names = self.names or []
        most = min(ROWS, max(1024, NUMBERS // len(names)))
        rows, filled, seen = np.empty((most, len(names)), self.dtype), 0, 0
        targets: list[list[NDArray[Any]]] = []
        for batch in self.record_batches():
            columns = [batch.column(name) for name in names]
            wanted = [batch.column(name) for name in self._targets]
            start = 0
            while start < batch.num_rows:
                take = min(WINDOW, batch.num_rows - start, most - filled)
                for j, (name, column) in enumerate(zip(names, columns, strict=True)):
                    rows[filled : filled + take, j] = _numbers(name, column.slice(start, take), seen)
                targets.append([self._target(c.slice(start, take), n, seen) for n, c in zip(self._targets, wanted, strict=True)])
                start, filled, seen = start + take, filled + take, seen + take
                if filled == most:
                    yield rows, _together(targets)
                    rows, targets, filled = np.empty_like(rows), [], 0
        if filled:
            yield rows[:filled], _together(targets)

    def _target(self, column: Any, name: str, seen: int) -> NDArray[Any]:
        if not self._labels:
            return _numbers(name, column, seen)
        _check_gaps(name, column, seen)
        column = column.dictionary_decode() if hasattr(column, "dictionary_decode") else column
        values = column.to_numpy(zero_copy_only=False)
        return np.asarray(column.to_pylist()) if values.dtype == object else values


class Pairs(Source):
    """An iterable of batches: arrays of rows and of targets, or of rows alone."""

    def __init__(self, source: Iterable[Any], targets: bool) -> None:
        self._source, self._targets = source, targets
        self.again = iter(source) is not source

    def batches(self) -> Iterator[Batch]:
        for batch in self._source:
            pair = isinstance(batch, (tuple, list)) and len(batch) == 2
            if pair:
                rows, targets = batch
                if np.shape(rows)[0] != np.shape(targets)[0]:
                    raise ValueError(f"a batch has {np.shape(rows)[0]} rows and {np.shape(targets)[0]} targets")
                yield rows, targets
            elif self._targets:
                raise TypeError(f"batches must be pairs (X, y), got {type(batch).__name__}")
            else:
                yield batch, None


def opened(
    source: Any, targets: str | Sequence[str] | None, columns: Sequence[str] | None, labels: bool = False
) -> Source:
    """Any source as batches: with these targets, or without any."""
    wanted = [targets] if isinstance(targets, str) else list(targets or ())
    if isinstance(columns, str):
        raise TypeError(f"columns must be a list of names, got the string {columns!r}")
    paths = _paths(source)
    if paths is not None:
        return Files(paths, wanted, columns)
    if _is_arrow(source):
        return Arrow(source, wanted, columns, labels)
    if isinstance(source, np.ndarray) or not isinstance(source, Iterable):
        raise TypeError(
            "source must be a path, a list of paths, a folder, a pattern such as 'part-*.parquet', an object with an Arrow stream "
            f"(pyarrow, polars, DuckDB, pandas) or an iterable of batches (X, y), got {type(source).__name__}; fit takes arrays"
        )
    return Pairs(source, bool(wanted))


def _paths(source: Any) -> list[str] | None:
    """The files that a path, a folder, a pattern or a list of them stands for; None for what is no path."""
    if isinstance(source, (str, os.PathLike)):
        path = os.fspath(source)
        if os.path.isdir(path):
            inside = sorted(p for p in Path(path).rglob("*") if p.is_file())
            # Spark and others leave marks beside data: _SUCCESS, .crc.
            found = [str(p) for p in inside if not any(part[0] in "._" for part in p.relative_to(path).parts)]
            if not found:
                raise FileNotFoundError(f"the folder {path} holds no files")
            return found
        if not os.path.exists(path) and glob.has_magic(path):
            found = sorted(p for p in glob.glob(path, recursive=True) if os.path.isfile(p))
            if not found:
                raise FileNotFoundError(f"no file is called like {path}")
            return found
        if not os.path.exists(path):
            raise FileNotFoundError(f"{path}: there is no such file")
        return [path]
    if isinstance(source, (list, tuple)) and source and all(isinstance(p, (str, os.PathLike)) for p in source):
        return [path for part in source for path in _paths(part) or ()]
    return None


def _similar(name: str, known: Iterable[str]) -> str:
    """``; did you mean 'price'?``, or which columns there are."""
    names = [str(other) for other in known]
    close = difflib.get_close_matches(name, names, 1, 0.6)
    close = close or [other for other in names if other.lower() == name.lower()]
    shown = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    return f"; did you mean {close[0]!r}?" if close else f"; the columns are {shown}"


def _columns(schema: Any) -> str:
    return ", ".join(f"{field.name} ({field.type})" for field in schema)


def _is_plain(kind: Any) -> bool:
    types = _arrow().types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def _check_numbers(name: str, kind: Any) -> None:
    """Refuses columns that are no numbers."""
    types = _arrow().types
    if _is_plain(kind) or types.is_decimal(kind):
        return
    if types.is_temporal(kind):
        what = "dates or times"
    elif any(test(kind) for test in (types.is_string, types.is_large_string, types.is_string_view, types.is_dictionary)):
        what = "words"
    else:
        what = f"values of type {kind}"
    raise TypeError(f"column {name!r} holds {what}, and models on features take numbers: {PREPARED}")


def _check_gaps(name: str, column: Any, seen: int) -> None:
    if column.null_count:
        row = seen + int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
        raise ValueError(
            f"column {name!r} has a gap (null) in row {row}: fill gaps or leave such rows out first, or take AutoRegressor or "
            "AutoClassifier, which prepare them"
        )


def _numbers(name: str, column: Any, seen: int) -> NDArray[Any]:
    """A column as numpy sees it, in its own memory where that is possible."""
    _check_gaps(name, column, seen)
    if not _is_plain(column.type):
        column = column.cast(_arrow().float64())
    return column.to_numpy(zero_copy_only=False)


def _together(parts: list[list[NDArray[Any]]]) -> NDArray[Any] | None:
    """Targets of windows, one below the other: a vector where there is one of them."""
    if not parts[0]:
        return None
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    return columns[0] if len(columns) == 1 else np.column_stack(columns)


def applied(
    source: Any, columns: Sequence[str] | None, needed: list[str] | None, apply: Callable[[Any], Any], names: Callable[[Any], list[str]]
) -> Iterator[Any]:
    """Record batches of what a function makes of rows; `needed` are the columns that a model knows, where it does."""
    pa = _arrow()
    read = opened(source, None, columns or needed)

    def made() -> Iterator[Any]:
        for rows, _ in read.batches():
            if len(rows) == 0:
                continue
            with warnings.catch_warnings():
                # Columns were found by their names.
                warnings.filterwarnings("ignore", message="X does not have valid feature names")
                values = np.asarray(apply(rows))
            if np.iscomplexobj(values):
                raise TypeError('Arrow has no complex numbers: features with form="ctr" or weights="ctr" are real')
            table = values.reshape(len(values), -1)
            arrays = [pa.array(np.ascontiguousarray(column)) for column in table.T]
            yield pa.record_batch(arrays, names=names(values))

    return made()


def fit_stream(model: Any, source: Any, target: Any, columns: Any, classes: Any, least: int) -> None:
    """Fits a model to the batches of a source."""
    labels = model._labelled
    several = model._check_stream()
    read = opened(source, target, columns, labels)
    name = type(model).__name__
    if several and not read.again:
        raise ValueError(
            f"{several} reads the rows several times, and this source can be read once only: give a path, a table or a list of "
            "batches, or take a solver of one pass"
        )
    if labels and classes is None:
        if not read.again:
            raise ValueError(
                f"{name}.fit_stream has to know all labels before it begins, and this source can be read once only: say "
                "classes=[...], or give a source that can be read again"
            )
        classes = read.classes()
    known = {"classes": classes} if labels else {}
    found, rest = read.head(least)
    widths = {np.shape(rows)[1] if np.ndim(rows) == 2 else None for rows, _ in found}
    if len(widths) > 1 or None in widths:
        raise ValueError(f"all batches must be of two dimensions and one width, got columns {sorted(map(str, widths))}")
    together = [np.concatenate([np.asarray(part[k]) for part in found]) if len(found) > 1 else found[0][k] for k in (0, 1)]
    model._begin(*model._checked(*together, **known, **model._checks()))
    del together

    def checked(batches: Iterable[Batch]) -> Iterator[Batch]:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="X (does not have|has) (valid )?feature names")
            for rows, targets in batches:
                if len(rows):
                    yield model._checked(rows, targets, first=False, **known, **model._checks(first=False))

    if several:
        del rest
        model.model_ = model._from_batches(lambda: checked(read.batches()))
    else:
        model._sum_up(checked(chain(found, rest)))
    if read.names is not None:
        for owner in (model, getattr(model, "features_", None)):
            if owner is not None:
                owner.feature_names_in_ = np.array(read.names, dtype=object)


def as_file(source: Any, folder: str) -> str:
    """A source of any columns as one file: itself, or a Parquet file in a folder."""
    paths = _paths(source)
    if paths is not None and len(paths) == 1:
        return paths[0]
    pa = _arrow()
    import pyarrow.parquet as parquet

    if paths is not None:
        import pyarrow.dataset as dataset

        kind = "csv" if paths[0].lower().endswith((".csv", ".csv.gz")) else "parquet"
        batches: Any = dataset.dataset(paths, format=kind).to_batches()
    elif _is_arrow(source):
        batches = Table(source).record_batches()
    else:
        raise TypeError(f"source must be a path, a list of paths or an object with an Arrow stream, got {type(source).__name__}")
    path, writer = os.path.join(folder, "table.parquet"), None
    try:
        for batch in batches:
            columns = [c.dictionary_decode() if pa.types.is_dictionary(c.type) else c for c in batch.columns]
            table = pa.table(columns, names=batch.schema.names)
            if writer is None:
                writer = parquet.ParquetWriter(path, table.schema, compression="snappy")
            writer.write_table(table)
    finally:
        if writer is not None:
            writer.close()
    if writer is None:
        raise ValueError("the source has no rows: at least one is needed")
    return path


class Table(Arrow):
    """Record batches with columns of any kind."""

    def __init__(self, source: Any) -> None:
        self._source = source
        self.again = not isinstance(source, _arrow().RecordBatchReader)
        self._once = None if self.again else source
