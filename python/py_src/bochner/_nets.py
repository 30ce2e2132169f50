"""What the doors to torch and JAX share: maps for them, from transformers or from parameters."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bochner._base import FeatureTransformer, check_features
from bochner._bochner import Map
from bochner._checks import RandomState, count, seed_of


def fitted_map(features: Any) -> Map:
    """The map of a fitted transformer."""
    check_features(features)
    if not hasattr(features, "map_"):
        raise ValueError(f"from_map needs features that are fitted: call {type(features).__name__}.fit, or give parameters")
    return features.map_


def map_from(estimator: FeatureTransformer, n_inputs: int, sample: ArrayLike | None) -> Map:
    """The map of a transformer that has not been fitted, for rows of so many columns."""
    if sample is not None:
        return estimator.fit(sample).map_
    seed = seed_of(estimator.random_state)
    draws = np.random.default_rng(0).normal(size=(8, n_inputs))
    # What follows from parameters and seed is the same for all rows.
    specs = [json.loads(estimator._resolved(rows, seed)) for rows in (draws, 3.0 * draws + 1.0)]
    found = sorted(name for name in specs[0] if specs[0][name] != specs[1][name])
    if found:
        names = ", ".join("the allocation and the center" if name == "resolved" else name for name in found)
        raise ValueError(f"{type(estimator).__name__} finds {names} from rows: give some as sample=, or use from_map")
    return Map(json.dumps(specs[0]), n_inputs, "float64", estimator._complex_output(), n_jobs=estimator.n_jobs)


def at_unit_scale(map: Map) -> tuple[Map, NDArray[np.float64], NDArray[np.float64]]:
    """The map with length scale 1, the length scale that it had (a number, one for each column, or a metric), and its center."""
    spec = json.loads(map.spec)
    if spec.get("length_scale") is None:
        raise ValueError(f'the map "{spec["map"]}" has no length scale that could be learned')
    scale = np.asarray(spec["length_scale"], dtype=np.float64)
    center = (spec.get("resolved") or {}).get("centre")
    center = np.zeros(map.input_dim) if center is None else np.asarray(center, dtype=np.float64)
    unit = Map(json.dumps(spec | {"length_scale": 1.0}), map.input_dim, "float64", map.complex)
    return unit, scale, center


def pooling_sketches(
    inputs: Sequence[int], n_components: int, sketch: str, weights: str, random_state: RandomState
) -> list[tuple[int, dict[str, Any]]]:
    """The sketches that pool descriptors: of degree 2 for one input, one of degree 1 for each of two.

    For each its number of columns and its parameters.
    """
    pairs = weights == "ctr"
    count("n_components", n_components, 2 if pairs else 1)
    seed, options = seed_of(random_state), {"n_components": n_components, "sketch": sketch}
    if len(inputs) == 1:
        return [(inputs[0], options | {"degree": 2, "weights": weights, "random_state": seed})]
    # Products are taken of complex numbers; their parts are put side by side in the end.
    options |= {"degree": 1, "weights": "complex" if pairs else weights}
    options |= {"n_components": n_components // 2} if pairs else {}
    seeds = np.random.SeedSequence(seed).generate_state(len(inputs), np.uint64)
    return [(d, options | {"random_state": int(s)}) for d, s in zip(inputs, seeds, strict=True)]


def positive_kind(kind: str) -> None:
    """Refuses features of attention that are not positive."""
    if kind not in ("positive", "hyperbolic"):
        raise ValueError(f'kind must be "positive" or "hyperbolic", whose features are positive, got {kind!r}')


def attention_factor(
    d: int, q: Sequence[int], k: Sequence[int], v: Sequence[int], causal: bool, scale: float | None
) -> float:
    """What queries and keys are multiplied by; refuses shapes that do not fit."""
    if min(len(q), len(k), len(v)) < 2 or q[-1] != d or k[-1] != d:
        raise ValueError(f"query and key must have shape (..., length, {d}), got {tuple(q)} and {tuple(k)}")
    if k[-2] != v[-2] or (causal and q[-2] != k[-2]):
        raise ValueError(
            "key and value, for causal attention query as well, must have the same length, got "
            f"{q[-2]} queries, {k[-2]} keys and {v[-2]} values"
        )
    if scale is not None and not scale >= 0.0:
        raise ValueError(f"scale must not be negative, got {scale}")
    return math.sqrt(1.0 / math.sqrt(d) if scale is None else scale)
