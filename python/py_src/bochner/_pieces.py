"""Features and attention computed from what a map is made of, by any library of arrays: torch or JAX.

What kinds of pieces there are and what they do stands in the core (``bochner::feature::Piece``); here is a function for each.
A library is an `Operations`: the functions that have another name in each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

# What a piece is: its kind, numbers, arrays, and pieces of its own.
Piece = dict[str, Any]
# Real parts and imaginary parts; the latter None for real numbers.
Value = tuple[Any, Any]


class Operations(Protocol):
    """What torch and JAX call differently. Axes are counted from the last."""

    def cos(self, x: Any) -> Any: ...
    def sin(self, x: Any) -> Any: ...
    def exp(self, x: Any) -> Any: ...
    def where(self, condition: Any, x: Any, y: Any) -> Any: ...
    def ones(self, like: Any, columns: int) -> Any:
        """Ones in as many columns, otherwise as `like`."""

    def pad(self, x: Any, rows: int) -> Any:
        """Zeros below, so that there are `rows`."""

    def lower(self, x: Any) -> Any:
        """Zeros above the diagonals of square matrices."""

    def join(self, parts: Sequence[Any]) -> Any:
        """Columns side by side."""

    def scatter(self, x: Any, places: Any, columns: int) -> Any:
        """Every column added to another one of a new array."""

    def sums_before(self, x: Any) -> Any:
        """Sums over the third axis from the end, up to the place before."""

    def largest(self, x: Any, axes: tuple[int, ...]) -> Any:
        """Largest numbers, as constants, with axes of length 1."""

    def spectrum(self, re: Any, im: Any) -> Any: ...
    def from_spectrum(self, spectrum: Any, columns: int, real: bool) -> Value: ...


def value(piece: Piece, x: Any, to: Operations) -> Value:
    """The value of a piece at rows: its real and its imaginary parts."""
    return _KINDS[piece["kind"]](piece, x, to)


def _chain(piece: Piece, x: Any, to: Operations) -> Value:
    re, im = x, None
    for step in piece["pieces"]:
        re, im = (to.join([re, im]), None) if step["kind"] == "side_by_side" else value(step, re, to)
    return re, im


def _affine(piece: Piece, x: Any, to: Operations) -> Value:
    if "centre" in piece:
        x = x - piece["centre"]
    if "factors" in piece:
        x = x * piece["factors"]
    return (x @ piece["weights"] if "weights" in piece else x), None


def _lift(piece: Piece, x: Any, to: Operations) -> Value:
    x = piece["scale"] * x
    return (to.join([x, piece["bias"] * to.ones(x, 1)]) if "bias" in piece else x), None


def _unit(piece: Piece, x: Any, to: Operations) -> Value:
    return x * _norm_sq(x) ** -0.5, None


def _linear(piece: Piece, x: Any, to: Operations) -> Value:
    return x @ piece["weights"], x @ piece["weights_im"] if "weights_im" in piece else None


def _constant(piece: Piece, x: Any, to: Operations) -> Value:
    # Of rows, for those who differentiate in them.
    return piece["value"] + 0.0 * x[..., :1], None


def _waves(piece: Piece, x: Any, to: Operations) -> Value:
    phases, scale = x @ piece["weights"], piece["scale"]
    if "amplitudes" in piece:
        scale = scale * piece["amplitudes"]
    if "rate" in piece:
        scale = scale * to.exp(piece["rate"] * _norm_sq(x))
    return scale * to.cos(phases), scale * to.sin(phases)


def _cosines(piece: Piece, x: Any, to: Operations) -> Value:
    return piece["scale"] * to.cos(x @ piece["weights"] + piece["offsets"]), None


def exponents(piece: Piece, x: Any, to: Operations) -> Any:
    """Logarithms of positive features."""
    z, shift = x @ piece["weights"], piece["shift"] - piece["rate"] * _norm_sq(x)
    return (to.join([z, -z]) if piece["both"] else z) + shift


def _exponentials(piece: Piece, x: Any, to: Operations) -> Value:
    return to.exp(exponents(piece, x, to)), None


def _moduli(piece: Piece, x: Any, to: Operations) -> Value:
    re, im = x @ piece["weights"], x @ piece["weights_im"]
    intensity, half = re * re + im * im, 0.5 * piece["exponent"]
    if half != 1.0:
        # A dark pixel has no slope: elsewhere a root of 0 would make one of NaN.
        lit = intensity > 0.0
        intensity = to.where(lit, to.where(lit, intensity, intensity + 1.0) ** half, 0.0 * intensity)
    return piece["scale"] * intensity, None


def _times(a: Value, b: Value) -> Value:
    (re, im), (other_re, other_im) = a, b
    if im is None or other_im is None:
        return re * other_re, None
    return re * other_re - im * other_im, re * other_im + im * other_re


def _product(piece: Piece, x: Any, to: Operations) -> Value:
    inputs = [value(of, x, to)[0] for of in piece.get("inputs", [])] or [x] * len(piece["factors"])
    first, *rest = [value(factor, of, to) for factor, of in zip(piece["factors"], inputs, strict=True)]
    first = (piece["scale"] * first[0], None if first[1] is None else piece["scale"] * first[1])
    for factor in rest:
        first = _times(first, factor)
    return first


def _count_sketch(piece: Piece, x: Any, to: Operations, columns: int) -> Value:
    def sketch(signs: Any) -> Any:
        return to.scatter(x * signs, piece["hashes"], columns)

    return sketch(piece["weights"]), sketch(piece["weights_im"]) if "weights_im" in piece else None


def _convolved(factors: Sequence[Value], to: Operations) -> Value:
    """Circular convolutions of the rows of arrays with as many columns."""
    (re, im), *rest = factors
    if not rest:
        return re, im
    spectrum = to.spectrum(re, im)
    for factor in rest:
        spectrum = spectrum * to.spectrum(*factor)
    return to.from_spectrum(spectrum, re.shape[-1], im is None)


def _convolution(piece: Piece, x: Any, to: Operations) -> Value:
    return _convolved([_count_sketch(factor, x, to, int(piece["outputs"])) for factor in piece["factors"]], to)


def pooled(parts: Sequence[Value], convolves: bool, to: Operations) -> Value:
    """Sums over the second last axis of the sketches of products: their factors are features of degree 1."""
    if any(re.shape[-2] == 1 for re, _ in parts):
        # What is the same for all positions is a factor of the sum.
        parts = [(_summed(re), None if im is None else _summed(im)) for re, im in parts]
    if convolves:
        re, im = _convolved(parts, to)
    else:
        re, im = parts[0]
        for part in parts[1:]:
            re, im = _times((re, im), part)
        scale = re.shape[-1] ** (0.5 * (len(parts) - 1))
        re, im = scale * re, None if im is None else scale * im
    return re.sum(-2), None if im is None else im.sum(-2)


def _summed(x: Any) -> Any:
    return x.sum(-2)[..., None, :]


def _concat(piece: Piece, x: Any, to: Operations) -> Value:
    amplitudes = piece["amplitudes"]
    values = [value(of, x, to) for of in piece["pieces"]]
    re = to.join([amplitudes[i] * re for i, (re, _) in enumerate(values)])
    if values[0][1] is None:
        return re, None
    return re, to.join([amplitudes[i] * im for i, (_, im) in enumerate(values)])


def _series(piece: Piece, x: Any, to: Operations) -> Value:
    damping = piece["rate"] * _norm_sq(x)
    real, imaginary, spare = [], [], []
    for term in piece["pieces"]:
        # A sketch of degree n of rows times t is t^n times the sketch: the weight stands where it cannot overflow.
        re, im = value(term["pieces"][0], x * to.exp((term["ln_weight"] - damping) / term["degree"]), to)
        if term["paired"]:
            half = re.shape[-1] // 2
            spare.append(re[..., 2 * half :])
            re, im = re[..., :half], re[..., half : 2 * half]
        real.append(re)
        imaginary.append(im)
    constants = to.exp(piece["ln_constant"] - damping) * to.ones(x, int(piece["constants"]))
    if piece["split"]:
        return to.join([constants, *spare, *real, *imaginary]), None
    re = to.join([constants, *real])
    return re, to.join([0.0 * constants, *imaginary]) if imaginary and imaginary[0] is not None else None


def _norm_sq(x: Any) -> Any:
    return (x * x).sum(-1)[..., None]


_KINDS: dict[str, Callable[[Piece, Any, Operations], Value]] = {
    "affine": _affine,
    "chain": _chain,
    "concat": _concat,
    "constant": _constant,
    "convolution": _convolution,
    "cosines": _cosines,
    "exponentials": _exponentials,
    "identity": lambda piece, x, to: (x, None),
    "lift": _lift,
    "linear": _linear,
    "moduli": _moduli,
    "product": _product,
    "series": _series,
    "unit": _unit,
    "waves": _waves,
}


def each_array(piece: Piece, change: Callable[[Any], Any]) -> Piece:
    """The same piece with other arrays."""

    def changed(content: Any) -> Any:
        if isinstance(content, list):
            return [each_array(part, change) for part in content]
        return content if isinstance(content, (str, float)) else change(content)

    return {name: changed(content) for name, content in piece.items()}


# Keys whose products with as many queries are taken at once.
_CHUNK = 128


def attention(piece: Piece, q: Any, k: Any, v: Any, to: Operations, causal: bool, mask: Any = None) -> Any:
    """Means of `v` weighted by positive features of queries and keys; `mask` multiplies the keys' features.

    The largest exponent of every query, and that of all keys, are taken out: they cancel.
    """
    q, k = exponents(piece, q, to), exponents(piece, k, to)
    q, k = to.exp(q - to.largest(q, (-1,))), to.exp(k - to.largest(k, (-2, -1)))
    if mask is not None:
        k = k * mask
    v = to.join([v, to.ones(v, 1)])
    if not causal:
        out = q @ (_turned(k) @ v)
        return out[..., :-1] / out[..., -1:]
    length = q.shape[-2]
    chunks = math.ceil(length / _CHUNK)
    size = min(_CHUNK, length)

    def cut(x: Any) -> Any:
        return to.pad(x, chunks * size).reshape(*x.shape[:-2], chunks, size, x.shape[-1])

    q, k, v = cut(q), cut(k), cut(v)
    near = to.lower(q @ _turned(k)) @ v
    out = near + q @ to.sums_before(_turned(k) @ v) if chunks > 1 else near
    out = out.reshape(*out.shape[:-3], chunks * size, out.shape[-1])[..., :length, :]
    return out[..., :-1] / out[..., -1:]


def _turned(x: Any) -> Any:
    return x.swapaxes(-1, -2)
