"""Random features and attention as pure functions of JAX.

What :func:`from_map` returns is called with rows and computes the features that the core computes, with the same draws: ``jit``,
``vmap``, ``grad`` and what is made of them work. Rows in float64 (``jax_enable_x64``) use the draws of float64; rows in half precision
are computed in float32 and rounded once. Features are made from a fitted transformer, or from its parameters:
``FourierFeatures(16, n_components=256, random_state=0)`` is that of :class:`bochner.FourierFeatures` for rows of 16 numbers.

Install with ``pip install bochner[jax]``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike

from bochner._base import FeatureTransformer
from bochner._bochner import Map
from bochner._catalogue import entry
from bochner._checks import RandomState, count
from bochner._features import CLASSES
from bochner._nets import attention_factor, at_unit_scale, fitted_map, map_from, pooling_sketches, positive_kind
from bochner._pieces import Piece, attention, pooled, value

try:
    import jax
    import jax.numpy as jnp
except ImportError as error:  # pragma: no cover - the extra is installed where this module is tested
    raise ImportError("bochner.jax needs JAX: pip install 'bochner[jax]'") from error

__all__ = ["CompactBilinearPooling", "Features", "LinearAttention", "from_map"]


class _Jax:
    """`bochner._pieces.Operations` of JAX."""

    cos, sin, exp = staticmethod(jnp.cos), staticmethod(jnp.sin), staticmethod(jnp.exp)
    lower = staticmethod(jnp.tril)

    def where(self, condition: Any, x: Any, y: Any) -> Any:
        return jnp.where(condition, x, y)

    def ones(self, like: Any, columns: int) -> Any:
        return jnp.ones((*like.shape[:-1], columns), like.dtype)

    def pad(self, x: Any, rows: int) -> Any:
        return jnp.pad(x, [(0, 0)] * (x.ndim - 2) + [(0, rows - x.shape[-2]), (0, 0)])

    def join(self, parts: Sequence[Any]) -> Any:
        return jnp.concatenate(list(parts), axis=-1)

    def scatter(self, x: Any, places: Any, columns: int) -> Any:
        return jnp.zeros((*x.shape[:-1], columns), x.dtype).at[..., places].add(x)

    def sums_before(self, x: Any) -> Any:
        return jnp.concatenate([jnp.zeros_like(x[..., :1, :, :]), jnp.cumsum(x, -3)[..., :-1, :, :]], axis=-3)

    def largest(self, x: Any, axes: tuple[int, ...]) -> Any:
        return jax.lax.stop_gradient(x.max(axes, keepdims=True))

    def spectrum(self, re: Any, im: Any) -> Any:
        return jnp.fft.rfft(re) if im is None else jnp.fft.fft(jax.lax.complex(re, im))

    def from_spectrum(self, spectrum: Any, columns: int, real: bool) -> tuple[Any, Any]:
        if real:
            return jnp.fft.irfft(spectrum, n=columns), None
        product = jnp.fft.ifft(spectrum)
        return product.real, product.imag


_JAX = _Jax()


def _widened(*arrays: Any) -> tuple[list[Any], Any]:
    """Arrays in the wider of float32 and what they have, and the dtype that results should have."""
    found = [jnp.asarray(array) for array in arrays]
    dtype = jnp.result_type(*found)
    if not jnp.issubdtype(dtype, jnp.floating):
        raise TypeError(f"rows must be of floating point numbers, got {dtype}")
    wide = jnp.promote_types(dtype, jnp.float32)
    return [array.astype(wide) for array in found], dtype


class Features:
    r"""Features of rows as a pure function.

    Parameters
    ----------
    in_features : int
        Columns of rows.
    sample : array-like of shape (n_samples, in_features), default=None
        Rows for parameters that are found from rows, such as ``length_scale="median"``.
    **parameters
        Those of the transformer of the same name.
    """

    _kind: type[FeatureTransformer]

    def __init__(self, in_features: int, *, sample: ArrayLike | None = None, **parameters: Any) -> None:
        self._start(map_from(self._kind(**parameters), count("in_features", in_features), sample))

    def _start(self, map: Map) -> None:
        self._map = map
        # Arrays of numpy: those of JAX would belong to the trace in which they were made.
        self._drawn: dict[str, Piece] = {}
        self._unit: tuple[Features, Any] | None = None

    @property
    def in_features(self) -> int:
        """Columns of rows."""
        return self._map.input_dim

    @property
    def out_features(self) -> int:
        """Number of features."""
        return self._map.output_dim

    @property
    def spec(self) -> dict[str, Any]:
        """Full description of the map."""
        found: dict[str, Any] = json.loads(self._map.spec)
        return found

    def pieces(self, dtype: str = "float32") -> Piece:
        """What the map is made of, in float32 or float64; structured projections come as the matrices they are."""
        if dtype not in self._drawn:
            self._drawn[dtype] = self._map.pieces(dtype)
        return self._drawn[dtype]

    def __call__(self, rows: Any, length_scale: Any = None) -> Any:
        """Features of rows of any shape (..., in_features).

        Parameters
        ----------
        rows : array of shape (..., in_features)
            Rows.
        length_scale : array, default=None
            In place of the map's own: a number, one for each column, or a metric of shape (in_features, in_features). The
            result can be differentiated in it.
        """
        (rows,), dtype = _widened(rows)
        if rows.shape[-1:] != (self.in_features,):
            raise ValueError(f"rows must have shape (..., {self.in_features}), got {rows.shape}")
        if length_scale is not None:
            return self._scaled(rows, jnp.asarray(length_scale, rows.dtype)).astype(dtype)
        re, im = value(self.pieces(rows.dtype.name), rows, _JAX)
        return re.astype(dtype) if im is None else jax.lax.complex(re, im)

    def _scaled(self, rows: Any, scale: Any) -> Any:
        if self._unit is None:
            map, _, center = at_unit_scale(self._map)
            self._unit = _of(map), center
        unit, center = self._unit
        shifted = rows - center.astype(rows.dtype)
        return unit((shifted @ scale.T if scale.ndim == 2 else shifted / scale) + center.astype(rows.dtype))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(in_features={self.in_features}, out_features={self.out_features})"


def _functions(kind: type[FeatureTransformer]) -> type[Features]:
    text = f"""{entry("maps", kind._map_name)["about"]}

    The function of :class:`bochner.{kind.__name__}`, whose parameters it takes; further arguments are those of :class:`Features`.
    """
    return type(kind.__name__, (Features,), {"_kind": kind, "__doc__": text, "__module__": __name__})


# Functions for every map of the catalogue, under the name of its transformer.
_FUNCTIONS = {name: _functions(kind) for name, kind in CLASSES.items()}
globals().update({functions.__name__: functions for functions in _FUNCTIONS.values()})
__all__ += sorted(functions.__name__ for functions in _FUNCTIONS.values())


def from_map(features: FeatureTransformer) -> Features:
    """The features of a fitted transformer as a pure function, with the same draws.

    Parameters
    ----------
    features : FeatureTransformer
        Any features of the library, fitted.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import FourierFeatures
    >>> from bochner.jax import from_map
    >>> X = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    >>> features = FourierFeatures(64, random_state=0).fit(X)
    >>> bool(np.allclose(jax.jit(from_map(features))(X), features.transform(X), atol=1e-6))
    True
    """
    return _of(fitted_map(features))


def _of(map: Map) -> Features:
    kind = _FUNCTIONS[json.loads(map.spec)["map"]]
    made = kind.__new__(kind)
    made._start(map)
    return made


class CompactBilinearPooling:
    """Sums over positions of sketches of outer products of descriptors, of one input or of two.

    Parameters are those of ``bochner.torch.CompactBilinearPooling``; the same ones make the same draws.
    """

    def __init__(
        self,
        in_features: int,
        in_features2: int | None = None,
        *,
        n_components: int = 1024,
        sketch: str = "tensor_srht",
        weights: str = "ctr",
        random_state: RandomState = None,
    ) -> None:
        self.weights, self.sketch = weights, sketch
        inputs = [in_features] if in_features2 is None else [in_features, in_features2]
        sketches = pooling_sketches(inputs, n_components, sketch, weights, random_state)
        self.features = [_FUNCTIONS["polynomial"](d, **given) for d, given in sketches]

    def __call__(self, x: Any, y: Any = None) -> Any:
        """Pooled features of shape (..., n_features) of descriptors of shape (..., n_positions, in_features)."""
        inputs = [x] if y is None else [x, y]
        if len(inputs) != len(self.features):
            raise ValueError(f"this pooling takes {len(self.features)} inputs, got {len(inputs)}")
        parts = [sketch(rows) for sketch, rows in zip(self.features, inputs, strict=True)]
        if y is None:
            return parts[0].sum(-2)
        re, im = pooled([(z.real, z.imag) if jnp.iscomplexobj(z) else (z, None) for z in parts], self.sketch == "tensor_sketch", _JAX)
        if im is None:
            return re
        return jnp.concatenate([re, im], axis=-1) if self.weights == "ctr" else jax.lax.complex(re, im)


class LinearAttention:
    """Attention through positive random features, in time and memory linear in the length of the sequence.

    Parameters are those of ``bochner.torch.LinearAttention``; the same ones make the same draws.
    """

    def __init__(
        self,
        head_dim: int,
        n_components: int = 256,
        *,
        kind: str = "positive",
        orthogonal: bool = True,
        random_state: RandomState = None,
    ) -> None:
        positive_kind(kind)
        self.features = _FUNCTIONS["positive"](
            head_dim, n_components=n_components, kind=kind, orthogonal=orthogonal, random_state=random_state
        )

    def __call__(
        self, query: Any, key: Any, value: Any, mask: Any = None, is_causal: bool = False, scale: float | None = None
    ) -> Any:
        """Means of values, of shape (..., n_queries, n_values).

        Parameters
        ----------
        query, key, value : array of shape (..., n_queries, head_dim), (..., n_keys, head_dim), (..., n_keys, n_values)
            Axes in front, such as batch and heads, are the same for all.
        mask : array of bool of shape (..., n_keys), default=None
            Which keys count.
        is_causal : bool, default=False
            Whether query i sees only keys up to i.
        scale : float, default=None
            Weights are proportional to ``exp(scale <q, k>)``; None means ``1 / sqrt(head_dim)``.
        """
        (q, k, v), dtype = _widened(query, key, value)
        factor = attention_factor(self.features.in_features, q.shape, k.shape, v.shape, is_causal, scale)
        weights = None if mask is None else jnp.asarray(mask, q.dtype)[..., None]
        pieces = self.features.pieces(q.dtype.name)
        return attention(pieces, factor * q, factor * k, v, _JAX, is_causal, weights).astype(dtype)
