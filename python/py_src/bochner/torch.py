"""Random features, pooling and attention as modules of torch.

A module holds a map of the core and computes the features that the core computes. On the CPU the core does it, and takes
gradients back; on other devices, for second derivatives, in traced and in compiled programs torch does, with the same draws.
Rows in half precision are computed in float32 and rounded once.

Modules are made from a fitted transformer (:func:`from_map`), or from its parameters: ``FourierFeatures(16, n_components=256,
random_state=0)`` is that of :class:`bochner.FourierFeatures` for rows of 16 numbers. `state_dict` keeps parameters and seed instead of
weights, and the map is drawn again when they are loaded.

Install with ``pip install bochner[torch]``.
"""

from __future__ import annotations

import json
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from bochner import _bochner
from bochner._base import FeatureTransformer
from bochner._bochner import Map
from bochner._catalogue import entry
from bochner._checks import RandomState, count
from bochner._features import CLASSES
from bochner._nets import attention_factor, at_unit_scale, fitted_map, map_from, pooling_sketches, positive_kind
from bochner._pieces import Piece, attention, each_array, pooled, value

try:
    import torch
except ImportError as error:  # pragma: no cover - the extra is installed where this module is tested
    raise ImportError("bochner.torch needs torch: pip install 'bochner[torch]'") from error
from torch import Tensor, nn

__all__ = ["CompactBilinearPooling", "FeatureModule", "LinearAttention", "from_map"]

# Precisions in which the core computes.
_EXACT = {torch.float32: "float32", torch.float64: "float64"}
_HALF = (torch.float16, torch.bfloat16)


class _Torch:
    """`bochner._pieces.Operations` of torch."""

    cos, sin, exp = staticmethod(torch.cos), staticmethod(torch.sin), staticmethod(torch.exp)
    where, lower = staticmethod(torch.where), staticmethod(torch.tril)

    def ones(self, like: Tensor, columns: int) -> Tensor:
        return like.new_ones((*like.shape[:-1], columns))

    def pad(self, x: Tensor, rows: int) -> Tensor:
        return nn.functional.pad(x, (0, 0, 0, rows - x.shape[-2]))

    def join(self, parts: Any) -> Tensor:
        return torch.cat(list(parts), dim=-1)

    def scatter(self, x: Tensor, places: Tensor, columns: int) -> Tensor:
        return x.new_zeros((*x.shape[:-1], columns)).index_add(-1, places, x)

    def sums_before(self, x: Tensor) -> Tensor:
        return torch.cat([torch.zeros_like(x[..., :1, :, :]), torch.cumsum(x, -3)[..., :-1, :, :]], dim=-3)

    def largest(self, x: Tensor, axes: tuple[int, ...]) -> Tensor:
        return x.detach().amax(axes, keepdim=True)

    def spectrum(self, re: Tensor, im: Tensor | None) -> Tensor:
        return torch.fft.rfft(re) if im is None else torch.fft.fft(torch.complex(re, im))

    def from_spectrum(self, spectrum: Tensor, columns: int, real: bool) -> tuple[Tensor, Tensor | None]:
        if real:
            return torch.fft.irfft(spectrum, n=columns), None
        product = torch.fft.ifft(spectrum)
        return product.real, product.imag


_TORCH = _Torch()


def _traced() -> bool:
    """Whether a program is being recorded, in which calls of the core would not appear."""
    compiler = getattr(torch, "compiler", None)
    return torch.jit.is_tracing() or (compiler is not None and compiler.is_compiling())


def _numbers(x: Tensor) -> Any:
    return x.detach().resolve_conj().contiguous().numpy()


class _Features(torch.autograd.Function):
    """Features by the core; their derivative is a function of its own, which has one as well."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, module: FeatureModule) -> Tensor:
        ctx.save_for_backward(rows)
        ctx.module = module
        return torch.from_numpy(module._map.transform(_numbers(rows)))

    @staticmethod
    def backward(ctx: Any, cotangents: Tensor) -> Any:
        (rows,) = ctx.saved_tensors
        return _Pullback.apply(rows, cotangents, ctx.module), None


class _Pullback(torch.autograd.Function):
    """Gradients in features taken back to rows by the core; what is derived from them by torch."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, cotangents: Tensor, module: FeatureModule) -> Tensor:
        ctx.save_for_backward(rows, cotangents)
        ctx.module = module
        return torch.from_numpy(module._map.pullback(_numbers(rows), _numbers(cotangents)))

    @staticmethod
    def backward(ctx: Any, sensitivity: Tensor) -> Any:
        saved, again = ctx.saved_tensors, torch.is_grad_enabled()
        with torch.enable_grad():
            rows, cotangents = (x if again and x.requires_grad else x.detach().requires_grad_() for x in saved)
            (pulled,) = torch.autograd.grad(ctx.module._by_torch(rows), rows, cotangents, create_graph=True)
            found = torch.autograd.grad(pulled, (rows, cotangents), sensitivity, create_graph=again, allow_unused=True)
        return (*found, None)


class FeatureModule(nn.Module):
    r"""Features of rows as a module: what the modules of all maps have in common.

    Parameters
    ----------
    in_features : int
        Columns of rows.
    learn_length_scale : bool, default=False
        Whether the length scale, one for each column or the metric, whichever the parameter `length_scale` says, is a
        parameter of the module that training changes.
    backend : {"auto", "torch"}, default="auto"
        "auto" lets the core compute on the CPU; "torch" never does, which programs that transform functions
        (``torch.func``) need.
    sample : array-like of shape (n_samples, in_features), default=None
        Rows for parameters that are found from rows, such as ``length_scale="median"``.
    **parameters
        Those of the transformer of the same name.
    """

    _kind: type[FeatureTransformer]

    def __init__(
        self,
        in_features: int,
        *,
        learn_length_scale: bool = False,
        backend: str = "auto",
        sample: ArrayLike | None = None,
        **parameters: Any,
    ) -> None:
        estimator = self._kind(**parameters)
        self._start(map_from(estimator, count("in_features", in_features), sample), learn_length_scale, backend)

    def _start(self, map: Map, learn_length_scale: bool, backend: str) -> None:
        super().__init__()
        if backend not in ("auto", "torch"):
            raise ValueError(f'backend must be "auto" or "torch", got {backend!r}')
        self.backend = backend
        self._learned: str | None = None
        if learn_length_scale:
            map, scale, center = at_unit_scale(map)
            self._learned = "metric" if scale.ndim == 2 else "log_length_scale"
            start = torch.tensor(scale if scale.ndim == 2 else np.log(scale), dtype=torch.get_default_dtype())
            self.register_parameter(self._learned, nn.Parameter(start))
            self._center = tuple(center)
        self._adopt(map)

    def _adopt(self, map: Map) -> None:
        self._map = map
        self._drawn: dict[tuple[torch.device, torch.dtype], Piece] = {}

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
        """Full description of the map; a length scale that is learned is not in it."""
        return cast(dict[str, Any], json.loads(self._map.spec))

    @property
    def length_scale(self) -> Tensor:
        """The length scale that is learned; the metric, where that is."""
        if self._learned is None:
            raise AttributeError
        found: Tensor = getattr(self, self._learned)
        return found if self._learned == "metric" else found.exp()

    def __getattr__(self, name: str) -> Any:
        if name == "length_scale":
            # An error of another kind would stop programs that ask what there is, such as torch's own.
            raise AttributeError("length_scale: this module learns none; what is fixed stands in spec")
        return super().__getattr__(name)

    def forward(self, rows: Tensor) -> Tensor:
        """Features of rows of any shape (..., in_features)."""
        if rows.shape[-1:] != (self.in_features,):
            raise ValueError(f"rows must have shape (..., {self.in_features}), got {tuple(rows.shape)}")
        if rows.dtype not in _EXACT and rows.dtype not in _HALF:
            raise TypeError(f"rows must be of floating point numbers, got {rows.dtype}")
        if rows.dtype in _HALF:
            features = self.forward(rows.float())
            return features if features.is_complex() else features.to(rows.dtype)
        rows = self._scaled(rows)
        if self.backend == "torch" or rows.device.type != "cpu" or rows.numel() == 0 or _traced():
            return self._by_torch(rows)
        features = cast(Tensor, _Features.apply(rows.reshape(-1, self.in_features), self))
        return features.reshape(*rows.shape[:-1], self.out_features)

    def _scaled(self, rows: Tensor) -> Tensor:
        if self._learned is None:
            return rows
        center = rows.new_tensor(self._center)
        scale = self.length_scale.to(rows.dtype)
        turned = (rows - center) @ scale.T if self._learned == "metric" else (rows - center) / scale
        return turned + center

    def _parts(self, rows: Tensor) -> tuple[Tensor, Tensor | None]:
        with torch.autocast(rows.device.type, enabled=False):
            return value(self.pieces(rows.device, rows.dtype), rows, _TORCH)

    def _by_torch(self, rows: Tensor) -> Tensor:
        re, im = self._parts(rows)
        return re if im is None else torch.complex(re, im)

    def pieces(self, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32) -> Piece:
        """What the map is made of, with arrays on a device; kept until the module changes.

        Structured projections come as the matrices they are: a sketch of degree 3 from 512 columns to 8192 takes 50 MB in
        float32. On the CPU they are only made where torch computes. Before a module is traced or compiled this must be called
        once: drawing is no operation of torch.
        """
        place = (torch.device(device), dtype)
        if place not in self._drawn:
            if _traced():
                raise RuntimeError(f"call pieces({str(place[0])!r}, {dtype}) of {type(self).__name__} before it is traced or compiled")
            with torch.no_grad():
                drawn = self._map.pieces(_EXACT[dtype])
                self._drawn[place] = each_array(drawn, lambda array: torch.from_numpy(array).to(place[0]))
        return self._drawn[place]

    def get_extra_state(self) -> dict[str, Any]:
        return {"spec": self._map.spec, "in_features": self.in_features, "complex": self._map.complex}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        if state != self.get_extra_state():
            self._adopt(Map(state["spec"], state["in_features"], "float64", state["complex"]))

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_drawn": {}}

    def extra_repr(self) -> str:
        learned = "" if self._learned is None else f", learns {self._learned}"
        return f"in_features={self.in_features}, out_features={self.out_features}, map={self.spec['map']}{learned}"


def _module(kind: type[FeatureTransformer]) -> type[FeatureModule]:
    about = entry("maps", kind._map_name)["about"]
    text = f"""{about}

    The module of :class:`bochner.{kind.__name__}`, whose parameters it takes; further arguments are those of
    :class:`FeatureModule`.
    """
    return type(kind.__name__, (FeatureModule,), {"_kind": kind, "__doc__": text, "__module__": __name__})


# A module for every map of the catalogue, under the name of its transformer.
_MODULES = {name: _module(kind) for name, kind in CLASSES.items()}
globals().update({module.__name__: module for module in _MODULES.values()})
__all__ += sorted(module.__name__ for module in _MODULES.values())


def from_map(features: FeatureTransformer, *, learn_length_scale: bool = False, backend: str = "auto") -> FeatureModule:
    """The module of a fitted transformer, with the same draws.

    Parameters
    ----------
    features : FeatureTransformer
        Any features of the library, fitted.
    learn_length_scale, backend
        As for :class:`FeatureModule`.

    Returns
    -------
    module : FeatureModule
        Of the class with the transformer's name, such as ``bochner.torch.FourierFeatures``.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import FourierFeatures
    >>> from bochner.torch import from_map
    >>> X = np.random.default_rng(0).normal(size=(5, 3))
    >>> features = FourierFeatures(64, random_state=0).fit(X)
    >>> bool((from_map(features)(torch.from_numpy(X)).numpy() == features.transform(X)).all())
    True
    """
    return _of(fitted_map(features), learn_length_scale, backend)


def _of(map: Map, learn_length_scale: bool = False, backend: str = "auto") -> FeatureModule:
    kind = _MODULES[json.loads(map.spec)["map"]]
    module = kind.__new__(kind)
    module._start(map, learn_length_scale, backend)
    return module


class CompactBilinearPooling(nn.Module):
    r"""Sums over positions of sketches of outer products of descriptors.

    With one input the features of an image estimate the inner products of ``sum_l f_l f_l^T`` (Gao et al. 2016); with two,
    those of ``sum_l f_l g_l^T`` for descriptors f and g of two networks or two senses (Fukui et al. 2016).

    Parameters
    ----------
    in_features : int
        Channels of the descriptors.
    in_features2 : int, default=None
        Channels of the second input's, where there is one.
    n_components : int, default=1024
        Features; one fewer where they come in pairs and the number is odd.
    sketch : {"tensor_srht", "rademacher", "gaussian", "tensor_sketch"}, default="tensor_srht"
        As for :class:`bochner.PolynomialSketch`.
    weights : {"ctr", "real", "complex"}, default="ctr"
        As for :class:`bochner.PolynomialSketch`.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the draws.
    backend : {"auto", "torch"}, default="auto"
        As for :class:`FeatureModule`.

    Examples
    --------
    >>> from bochner.torch import CompactBilinearPooling
    >>> x, y = torch.randn(2, 49, 16), torch.randn(2, 1, 30)
    >>> CompactBilinearPooling(16, 30, n_components=512)(x, y).shape
    torch.Size([2, 512])
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
        backend: str = "auto",
    ) -> None:
        super().__init__()
        self.weights, self.sketch = weights, sketch
        inputs = [in_features] if in_features2 is None else [in_features, in_features2]
        sketches = pooling_sketches(inputs, n_components, sketch, weights, random_state)
        self.features = nn.ModuleList([_MODULES["polynomial"](d, backend=backend, **given) for d, given in sketches])

    def forward(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        """Pooled features of shape (..., n_features) of descriptors of shape (..., n_positions, in_features).

        The second input's may have one position for all, such as the embedding of a question.
        """
        inputs = [x] if y is None else [x, y]
        if len(inputs) != len(self.features):
            raise ValueError(f"this pooling takes {len(self.features)} inputs, got {len(inputs)}")
        parts = [sketch(rows) for sketch, rows in zip(self.features, inputs, strict=True)]
        if y is None:
            return cast(Tensor, parts[0].sum(-2))
        parts = [(z.real, z.imag) if z.is_complex() else (z, None) for z in parts]
        re, im = pooled(parts, self.sketch == "tensor_sketch", _TORCH)
        if im is None:
            return cast(Tensor, re)
        return torch.cat([re, im], dim=-1) if self.weights == "ctr" else torch.complex(re, im)


class LinearAttention(nn.Module):
    r"""Attention through positive random features, in time and memory linear in the length of the sequence.

    Called like ``torch.nn.functional.scaled_dot_product_attention``, which it estimates (Choromanski et al. 2021). Weights are positive
    and add up to 1. A mask may hide keys from all queries; dropout of weights, which are never formed, there is none.

    Parameters
    ----------
    head_dim : int
        Columns of queries and keys.
    n_components : int, default=256
        Features.
    kind : {"positive", "hyperbolic"}, default="positive"
        As for :class:`bochner.PositiveFeatures`.
    orthogonal : bool, default=True
        As for :class:`bochner.PositiveFeatures`.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the draws.
    backend : {"auto", "torch"}, default="auto"
        "auto" lets the core compute on the CPU where no gradient is asked for; "torch" never does.

    Examples
    --------
    >>> from bochner.torch import LinearAttention
    >>> q, k, v = torch.randn(3, 2, 4, 100, 8)
    >>> LinearAttention(8)(q, k, v, is_causal=True).shape
    torch.Size([2, 4, 100, 8])
    """

    def __init__(
        self,
        head_dim: int,
        n_components: int = 256,
        *,
        kind: str = "positive",
        orthogonal: bool = True,
        random_state: RandomState = None,
        backend: str = "auto",
    ) -> None:
        super().__init__()
        positive_kind(kind)
        self.features = _MODULES["positive"](
            head_dim, n_components=n_components, kind=kind, orthogonal=orthogonal, random_state=random_state, backend=backend
        )

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
    ) -> Tensor:
        """Means of values, of shape (..., n_queries, n_values).

        Parameters
        ----------
        query, key, value : Tensor of shape (..., n_queries, head_dim), (..., n_keys, head_dim), (..., n_keys, n_values)
            Axes in front, such as batch and heads, are the same for all.
        attn_mask : Tensor of bool, default=None
            Which keys count, of shape (..., 1, n_keys): the same for all queries.
        dropout_p : float, default=0.0
            Must be 0.
        is_causal : bool, default=False
            Whether query i sees only keys up to i.
        scale : float, default=None
            Weights are proportional to ``exp(scale <q, k>)``; None means ``1 / sqrt(head_dim)``.
        """
        if dropout_p != 0.0:
            raise ValueError(f"dropout_p must be 0, got {dropout_p}: the weights that it would drop are never formed")
        d = self.features.in_features
        factor = attention_factor(d, query.shape, key.shape, value.shape, is_causal, scale)
        mask = None if attn_mask is None else _key_mask(attn_mask, key)
        if query.dtype in _HALF:
            found = self._attend(query.float(), key.float(), value.float(), mask, is_causal, factor)
            return found.to(query.dtype)
        return self._attend(query, key, value, mask, is_causal, factor)

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool, factor: float) -> Tensor:
        q, k = factor * q, factor * k
        needs = torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad)
        plain = q.device.type == "cpu" and self.features.backend == "auto" and q.shape[:-2] == k.shape[:-2] == v.shape[:-2]
        if needs or not plain or mask is not None or _traced():
            with torch.autocast(q.device.type, enabled=False):
                pieces = self.features.pieces(q.device, q.dtype)
                mask = None if mask is None else mask.to(q.dtype)
                return cast(Tensor, attention(pieces, q, k, v, _TORCH, causal, mask))
        # The core divides by the fourth root itself.
        back, out = q.shape[-1] ** 0.25, v.new_empty((*q.shape[:-1], v.shape[-1]))
        for index in np.ndindex(*q.shape[:-2]):
            queries, keys, values = (_numbers(x[index]) for x in (back * q, back * k, v))
            out[index] = torch.from_numpy(_bochner.attention(self.features._map, queries, keys, values, causal))
        return out


def _key_mask(mask: Tensor, key: Tensor) -> Tensor:
    """A mask of keys as a column of zeros and ones."""
    if mask.dtype != torch.bool or mask.ndim < 2 or mask.shape[-2] != 1 or mask.shape[-1] != key.shape[-2]:
        raise ValueError(
            f"attn_mask must be a mask of bool of shape (..., 1, {key.shape[-2]}), the same for all queries, got shape "
            f"{tuple(mask.shape)} of {mask.dtype}"
        )
    return mask.swapaxes(-1, -2)
