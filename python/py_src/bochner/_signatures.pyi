"""Parameters of maps, models and kernels. Written by tools/python_stubs.py from the catalogue."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from numpy.typing import ArrayLike

from bochner._base import FeatureTransformer
from bochner._catalogue import Parameter
from bochner._checks import RandomState
from bochner.kernels import Kernel, OperatorKernel


class FourierMap:
    _parameters: ClassVar[tuple[Parameter, ...]]
    _map_name: ClassVar[str]
    n_components: int
    kernel: Literal["gaussian", "laplacian", "matern"]
    length_scale: float | ArrayLike | Literal["median"]
    nu: float
    norm: Literal[1, 2]
    order: int | None
    projection: Literal["auto", "gaussian", "orthogonal", "sorf"]
    form: Literal["cos_sin", "offset", "complex"]
    gamma: float | Literal["scale"] | None
    random_state: RandomState
    n_jobs: int | None
    def __init__(self, n_components: int = 1024, *, kernel: Literal["gaussian", "laplacian", "matern"] = "gaussian", length_scale: float | ArrayLike | Literal["median"] = 1.0, nu: float = 1.5, norm: Literal[1, 2] = 2, order: int | None = None, projection: Literal["auto", "gaussian", "orthogonal", "sorf"] = "auto", form: Literal["cos_sin", "offset", "complex"] = "cos_sin", gamma: float | Literal["scale"] | None = None, random_state: RandomState = None, n_jobs: int | None = None) -> None: ...

class PolynomialMap:
    _parameters: ClassVar[tuple[Parameter, ...]]
    _map_name: ClassVar[str]
    n_components: int
    degree: int
    gamma: float
    coef0: float
    sketch: Literal["tensor_srht", "rademacher", "gaussian", "tensor_sketch"]
    weights: Literal["ctr", "real", "complex"]
    srht: Literal["upsampled", "stacked", "tuple"]
    structure: Literal["flat", "tree", "compact"]
    random_state: RandomState
    n_jobs: int | None
    def __init__(self, n_components: int = 1024, *, degree: int = 2, gamma: float = 1.0, coef0: float = 0.0, sketch: Literal["tensor_srht", "rademacher", "gaussian", "tensor_sketch"] = "tensor_srht", weights: Literal["ctr", "real", "complex"] = "ctr", srht: Literal["upsampled", "stacked", "tuple"] = "upsampled", structure: Literal["flat", "tree", "compact"] = "flat", random_state: RandomState = None, n_jobs: int | None = None) -> None: ...

class PositiveMap:
    _parameters: ClassVar[tuple[Parameter, ...]]
    _map_name: ClassVar[str]
    n_components: int
    length_scale: float | ArrayLike | Literal["median"]
    orthogonal: bool
    kind: Literal["positive", "hyperbolic", "trigonometric"]
    random_state: RandomState
    n_jobs: int | None
    def __init__(self, n_components: int = 1024, *, length_scale: float | ArrayLike | Literal["median"] = 1.0, orthogonal: bool = True, kind: Literal["positive", "hyperbolic", "trigonometric"] = "positive", random_state: RandomState = None, n_jobs: int | None = None) -> None: ...

class OpticalMap:
    _parameters: ClassVar[tuple[Parameter, ...]]
    _map_name: ClassVar[str]
    n_components: int
    exponent: float
    projection: Literal["auto", "dense", "matrix_free", "structured"]
    binarize: float | None
    bias: float
    camera_bits: int | None
    noise: float
    encoding: Literal["bit_planes", "thermometer"] | None
    levels: int
    random_state: RandomState
    n_jobs: int | None
    def __init__(self, n_components: int = 1024, *, exponent: float = 2.0, projection: Literal["auto", "dense", "matrix_free", "structured"] = "auto", binarize: float | None = None, bias: float = 0.0, camera_bits: int | None = None, noise: float = 0.0, encoding: Literal["bit_planes", "thermometer"] | None = None, levels: int = 8, random_state: RandomState = None, n_jobs: int | None = None) -> None: ...

class SphericalMap:
    _parameters: ClassVar[tuple[Parameter, ...]]
    _map_name: ClassVar[str]
    n_components: int
    degree: int
    a: float
    projection: Literal["auto", "gaussian", "orthogonal", "sorf"]
    radial_fit: Literal["convex", "mixture"]
    random_state: RandomState
    n_jobs: int | None
    def __init__(self, n_components: int = 1024, *, degree: int = 3, a: float = 2.0, projection: Literal["auto", "gaussian", "orthogonal", "sorf"] = "auto", radial_fit: Literal["convex", "mixture"] = "convex", random_state: RandomState = None, n_jobs: int | None = None) -> None: ...

class CompressiveMap:
    _parameters: ClassVar[tuple[Parameter, ...]]
    _map_name: ClassVar[str]
    n_components: int
    compressed_dim: int
    orthoprojector: Literal["gaussian", "sign", "srht"]
    length_scale: float | ArrayLike | Literal["median"]
    projection: Literal["gaussian", "auto", "orthogonal", "sorf"]
    form: Literal["cos_sin", "offset", "complex"]
    random_state: RandomState
    n_jobs: int | None
    def __init__(self, n_components: int = 1024, *, compressed_dim: int = 64, orthoprojector: Literal["gaussian", "sign", "srht"] = "gaussian", length_scale: float | ArrayLike | Literal["median"] = 1.0, projection: Literal["gaussian", "auto", "orthogonal", "sorf"] = "gaussian", form: Literal["cos_sin", "offset", "complex"] = "cos_sin", random_state: RandomState = None, n_jobs: int | None = None) -> None: ...

class MaclaurinMap:
    _parameters: ClassVar[tuple[Parameter, ...]]
    _map_name: ClassVar[str]
    n_components: int
    kernel: Literal["gaussian", "exponential", "polynomial"] | ArrayLike
    length_scale: float | ArrayLike | Literal["median"]
    degree: int
    gamma: float
    coef0: float
    allocation: Literal["optimized", "random"]
    statistics: Literal["pairwise", "one_pass"]
    sketch: Literal["tensor_srht", "rademacher", "gaussian", "tensor_sketch"]
    weights: Literal["ctr", "real", "complex"]
    srht: Literal["upsampled", "stacked", "tuple"]
    max_degree: int
    min_degree: int
    center: bool
    random_state: RandomState
    n_jobs: int | None
    def __init__(self, n_components: int = 1024, *, kernel: Literal["gaussian", "exponential", "polynomial"] | ArrayLike = "gaussian", length_scale: float | ArrayLike | Literal["median"] = 1.0, degree: int = 3, gamma: float = 1.0, coef0: float = 1.0, allocation: Literal["optimized", "random"] = "optimized", statistics: Literal["pairwise", "one_pass"] = "pairwise", sketch: Literal["tensor_srht", "rademacher", "gaussian", "tensor_sketch"] = "tensor_srht", weights: Literal["ctr", "real", "complex"] = "ctr", srht: Literal["upsampled", "stacked", "tuple"] = "upsampled", max_degree: int = 10, min_degree: int = 2, center: bool = True, random_state: RandomState = None, n_jobs: int | None = None) -> None: ...

class OrthoProjectionMap:
    _parameters: ClassVar[tuple[Parameter, ...]]
    _map_name: ClassVar[str]
    n_components: int
    orthoprojector: Literal["gaussian", "sign", "srht"]
    random_state: RandomState
    n_jobs: int | None
    def __init__(self, n_components: int = 64, *, orthoprojector: Literal["gaussian", "sign", "srht"] = "gaussian", random_state: RandomState = None, n_jobs: int | None = None) -> None: ...

class LearnedFourierMap:
    _parameters: ClassVar[tuple[Parameter, ...]]
    _map_name: ClassVar[str]
    n_components: int
    n_learned: int
    max_iter: int
    random_state: RandomState
    n_jobs: int | None
    def __init__(self, n_components: int = 2048, *, n_learned: int = 512, max_iter: int = 150, random_state: RandomState = None, n_jobs: int | None = None) -> None: ...

class RidgeModel:
    _parameters: ClassVar[tuple[Parameter, ...]]
    features: FeatureTransformer | None
    alpha: float
    solver: Literal["auto", "cholesky", "dual", "cg", "sgd"]
    fit_intercept: bool
    tol: float | None
    max_iter: int | None
    memory_budget: int | None
    random_state: RandomState
    keep_sums: bool
    n_jobs: int | None
    verbose: int
    def __init__(self, features: FeatureTransformer | None = None, *, alpha: float = 1.0, solver: Literal["auto", "cholesky", "dual", "cg", "sgd"] = "auto", fit_intercept: bool = True, tol: float | None = None, max_iter: int | None = None, memory_budget: int | None = None, random_state: RandomState = None, keep_sums: bool = False, n_jobs: int | None = None, verbose: int = 0) -> None: ...

class RidgeClassifierModel:
    _parameters: ClassVar[tuple[Parameter, ...]]
    features: FeatureTransformer | None
    alpha: float
    solver: Literal["auto", "cholesky", "dual", "cg", "sgd"]
    fit_intercept: bool
    tol: float | None
    max_iter: int | None
    memory_budget: int | None
    random_state: RandomState
    keep_sums: bool
    n_jobs: int | None
    verbose: int
    def __init__(self, features: FeatureTransformer | None = None, *, alpha: float = 1.0, solver: Literal["auto", "cholesky", "dual", "cg", "sgd"] = "auto", fit_intercept: bool = True, tol: float | None = None, max_iter: int | None = None, memory_budget: int | None = None, random_state: RandomState = None, keep_sums: bool = False, n_jobs: int | None = None, verbose: int = 0) -> None: ...

class SvmModel:
    _parameters: ClassVar[tuple[Parameter, ...]]
    features: FeatureTransformer | None
    C: float
    loss: Literal["squared_hinge", "hinge"]
    tol: float
    max_iter: int
    fit_intercept: bool
    intercept_scaling: float
    memory_budget: int | None
    random_state: RandomState
    n_jobs: int | None
    verbose: int
    def __init__(self, features: FeatureTransformer | None = None, *, C: float = 1.0, loss: Literal["squared_hinge", "hinge"] = "squared_hinge", tol: float = 0.001, max_iter: int = 1000, fit_intercept: bool = True, intercept_scaling: float = 1.0, memory_budget: int | None = None, random_state: RandomState = None, n_jobs: int | None = None, verbose: int = 0) -> None: ...

class KernelSvmModel:
    _parameters: ClassVar[tuple[Parameter, ...]]
    kernel: Kernel | None
    C: float
    tol: float
    max_iter: int | None
    memory_budget: int | None
    n_jobs: int | None
    verbose: int
    def __init__(self, kernel: Kernel | None = None, *, C: float = 1.0, tol: float = 0.001, max_iter: int | None = None, memory_budget: int | None = None, n_jobs: int | None = None, verbose: int = 0) -> None: ...

class GpRegressorModel:
    _parameters: ClassVar[tuple[Parameter, ...]]
    features: FeatureTransformer | None
    noise: float
    signal: float
    normalize_y: bool
    optimizer: Literal["lbfgs"] | None
    length_scales: Literal["common", "per_input", "metric", "fixed"]
    max_rows: int
    max_iter: int
    search_nu: bool
    random_state: RandomState
    keep_sums: bool
    n_jobs: int | None
    verbose: int
    def __init__(self, features: FeatureTransformer | None = None, *, noise: float = 0.1, signal: float = 1.0, normalize_y: bool = True, optimizer: Literal["lbfgs"] | None = None, length_scales: Literal["common", "per_input", "metric", "fixed"] = "common", max_rows: int = 2000, max_iter: int = 120, search_nu: bool = False, random_state: RandomState = None, keep_sums: bool = False, n_jobs: int | None = None, verbose: int = 0) -> None: ...

class GpClassifierModel:
    _parameters: ClassVar[tuple[Parameter, ...]]
    features: FeatureTransformer | None
    alpha: float | ArrayLike
    signal: float | None
    inference: Literal["dirichlet", "variational"]
    n_draws: int
    max_iter: int
    learning_rate: float
    validation_fraction: float
    optimizer: Literal["lbfgs"] | None
    length_scales: Literal["common", "per_input", "metric", "fixed"]
    max_rows: int
    max_evaluations: int
    search_nu: bool
    random_state: RandomState
    keep_sums: bool
    n_jobs: int | None
    verbose: int
    def __init__(self, features: FeatureTransformer | None = None, *, alpha: float | ArrayLike = 0.01, signal: float | None = None, inference: Literal["dirichlet", "variational"] = "dirichlet", n_draws: int = 512, max_iter: int = 20, learning_rate: float = 0.02, validation_fraction: float = 0.1, optimizer: Literal["lbfgs"] | None = None, length_scales: Literal["common", "per_input", "metric", "fixed"] = "common", max_rows: int = 2000, max_evaluations: int = 120, search_nu: bool = False, random_state: RandomState = None, keep_sums: bool = False, n_jobs: int | None = None, verbose: int = 0) -> None: ...

class LocalGpModel:
    _parameters: ClassVar[tuple[Parameter, ...]]
    n_components: int
    length_scale: float | ArrayLike | Literal["median"]
    noise: float
    signal_variance: float
    threshold: float
    max_clusters: int | None
    normalize_y: bool
    sketch: Literal["tensor_srht", "rademacher", "gaussian", "tensor_sketch"]
    weights: Literal["ctr", "real"]
    max_degree: int
    optimizer: Literal["lbfgs"] | None
    length_scales: Literal["common", "per_input", "metric", "fixed"]
    max_rows: int
    max_iter: int
    random_state: RandomState
    n_jobs: int | None
    verbose: int
    def __init__(self, n_components: int = 256, *, length_scale: float | ArrayLike | Literal["median"] = 1.0, noise: float = 0.01, signal_variance: float = 1.0, threshold: float = 2.0, max_clusters: int | None = None, normalize_y: bool = False, sketch: Literal["tensor_srht", "rademacher", "gaussian", "tensor_sketch"] = "tensor_srht", weights: Literal["ctr", "real"] = "ctr", max_degree: int = 10, optimizer: Literal["lbfgs"] | None = None, length_scales: Literal["common", "per_input", "metric", "fixed"] = "common", max_rows: int = 1000, max_iter: int = 120, random_state: RandomState = None, n_jobs: int | None = None, verbose: int = 0) -> None: ...

class SviClassifierModel:
    _parameters: ClassVar[tuple[Parameter, ...]]
    features: FeatureTransformer | None
    alpha: float | ArrayLike
    signal: float | None
    inference: Literal["dirichlet", "variational"]
    n_draws: int
    max_iter: int
    learning_rate: float
    validation_fraction: float
    optimizer: Literal["lbfgs"] | None
    length_scales: Literal["common", "per_input", "metric", "fixed"]
    max_rows: int
    max_evaluations: int
    search_nu: bool
    random_state: RandomState
    n_jobs: int | None
    verbose: int
    def __init__(self, features: FeatureTransformer | None = None, *, alpha: float | ArrayLike = 0.01, signal: float | None = None, inference: Literal["dirichlet", "variational"] = "dirichlet", n_draws: int = 512, max_iter: int = 20, learning_rate: float = 0.02, validation_fraction: float = 0.1, optimizer: Literal["lbfgs"] | None = None, length_scales: Literal["common", "per_input", "metric", "fixed"] = "common", max_rows: int = 2000, max_evaluations: int = 120, search_nu: bool = False, random_state: RandomState = None, n_jobs: int | None = None, verbose: int = 0) -> None: ...

class OperatorRidgeModel:
    _parameters: ClassVar[tuple[Parameter, ...]]
    kernel: Literal["decomposable", "curl_free", "divergence_free", "helmholtz"] | OperatorKernel
    length_scale: float | Literal["median"]
    A: ArrayLike | Literal["covariance"] | Literal["learned"] | None
    n_components: int
    alpha: float
    solver: Literal["auto", "stein", "cholesky", "cg", "lbfgs", "sgd"]
    projection: Literal["auto", "gaussian", "orthogonal", "sorf"]
    fit_intercept: bool
    random_state: RandomState
    keep_sums: bool
    n_jobs: int | None
    verbose: int
    def __init__(self, kernel: Literal["decomposable", "curl_free", "divergence_free", "helmholtz"] | OperatorKernel = "decomposable", *, length_scale: float | Literal["median"] = 1.0, A: ArrayLike | Literal["covariance"] | Literal["learned"] | None = None, n_components: int = 1024, alpha: float = 1.0, solver: Literal["auto", "stein", "cholesky", "cg", "lbfgs", "sgd"] = "auto", projection: Literal["auto", "gaussian", "orthogonal", "sorf"] = "auto", fit_intercept: bool = True, random_state: RandomState = None, keep_sums: bool = False, n_jobs: int | None = None, verbose: int = 0) -> None: ...

class OperatorRidgeClassifierModel:
    _parameters: ClassVar[tuple[Parameter, ...]]
    length_scale: float | Literal["median"]
    A: ArrayLike | Literal["covariance"] | Literal["learned"] | None
    coding: Literal["simplex", "one_hot"]
    n_components: int
    alpha: float
    solver: Literal["auto", "stein", "cholesky", "cg", "lbfgs", "sgd"]
    projection: Literal["auto", "gaussian", "orthogonal", "sorf"]
    fit_intercept: bool
    random_state: RandomState
    keep_sums: bool
    n_jobs: int | None
    verbose: int
    def __init__(self, *, length_scale: float | Literal["median"] = 1.0, A: ArrayLike | Literal["covariance"] | Literal["learned"] | None = None, coding: Literal["simplex", "one_hot"] = "simplex", n_components: int = 1024, alpha: float = 1.0, solver: Literal["auto", "stein", "cholesky", "cg", "lbfgs", "sgd"] = "auto", projection: Literal["auto", "gaussian", "orthogonal", "sorf"] = "auto", fit_intercept: bool = True, random_state: RandomState = None, keep_sums: bool = False, n_jobs: int | None = None, verbose: int = 0) -> None: ...

class OperatorGpModel:
    _parameters: ClassVar[tuple[Parameter, ...]]
    kernel: Literal["decomposable", "curl_free", "divergence_free", "helmholtz"] | OperatorKernel
    n_components: int
    length_scale: float | ArrayLike | Literal["median"]
    A: ArrayLike | Literal["covariance"] | None
    noise: float
    signal: float
    normalize_y: bool
    optimizer: Literal["lbfgs"] | None
    length_scales: Literal["common", "per_input", "fixed"]
    max_rows: int
    max_iter: int
    projection: Literal["auto", "gaussian", "orthogonal", "sorf"]
    random_state: RandomState
    keep_sums: bool
    n_jobs: int | None
    verbose: int
    def __init__(self, kernel: Literal["decomposable", "curl_free", "divergence_free", "helmholtz"] | OperatorKernel = "decomposable", n_components: int = 1024, *, length_scale: float | ArrayLike | Literal["median"] = 1.0, A: ArrayLike | Literal["covariance"] | None = None, noise: float = 0.1, signal: float = 1.0, normalize_y: bool = True, optimizer: Literal["lbfgs"] | None = None, length_scales: Literal["common", "per_input", "fixed"] = "common", max_rows: int = 2000, max_iter: int = 120, projection: Literal["auto", "gaussian", "orthogonal", "sorf"] = "auto", random_state: RandomState = None, keep_sums: bool = False, n_jobs: int | None = None, verbose: int = 0) -> None: ...

class ExactKernelRidgeModel:
    _parameters: ClassVar[tuple[Parameter, ...]]
    kernel: Kernel | None
    alpha: float
    memory_budget: int | None
    n_jobs: int | None
    verbose: int
    def __init__(self, kernel: Kernel | None = None, *, alpha: float = 1.0, memory_budget: int | None = None, n_jobs: int | None = None, verbose: int = 0) -> None: ...

class ExactGpRegressorModel:
    _parameters: ClassVar[tuple[Parameter, ...]]
    kernel: Kernel | None
    noise: float
    signal: float
    normalize_y: bool
    length_scale: float | ArrayLike | Literal["median"]
    optimizer: Literal["lbfgs"] | None
    length_scales: Literal["common", "per_input", "metric", "fixed"]
    max_rows: int
    max_iter: int
    search_nu: bool
    n_jobs: int | None
    verbose: int
    def __init__(self, kernel: Kernel | None = None, *, noise: float = 0.1, signal: float = 1.0, normalize_y: bool = True, length_scale: float | ArrayLike | Literal["median"] = 1.0, optimizer: Literal["lbfgs"] | None = None, length_scales: Literal["common", "per_input", "metric", "fixed"] = "common", max_rows: int = 2000, max_iter: int = 120, search_nu: bool = False, n_jobs: int | None = None, verbose: int = 0) -> None: ...

class ExactGpClassifierModel:
    _parameters: ClassVar[tuple[Parameter, ...]]
    kernel: Kernel | None
    alpha: float
    signal: float | None
    n_draws: int
    length_scale: float | ArrayLike | Literal["median"]
    optimizer: Literal["lbfgs"] | None
    length_scales: Literal["common", "per_input", "metric", "fixed"]
    max_rows: int
    max_iter: int
    search_nu: bool
    random_state: RandomState
    n_jobs: int | None
    verbose: int
    def __init__(self, kernel: Kernel | None = None, *, alpha: float = 0.01, signal: float | None = None, n_draws: int = 512, length_scale: float | ArrayLike | Literal["median"] = 1.0, optimizer: Literal["lbfgs"] | None = None, length_scales: Literal["common", "per_input", "metric", "fixed"] = "common", max_rows: int = 2000, max_iter: int = 120, search_nu: bool = False, random_state: RandomState = None, n_jobs: int | None = None, verbose: int = 0) -> None: ...

class ExactOperatorRidgeModel:
    _parameters: ClassVar[tuple[Parameter, ...]]
    kernel: OperatorKernel | None
    alpha: float
    n_jobs: int | None
    verbose: int
    def __init__(self, kernel: OperatorKernel | None = None, *, alpha: float = 1.0, n_jobs: int | None = None, verbose: int = 0) -> None: ...

class OperatorFeaturesMap:
    _parameters: ClassVar[tuple[Parameter, ...]]
    _map_name: ClassVar[str]
    n_components: int
    kernel: Literal["decomposable", "curl_free", "divergence_free", "helmholtz"] | OperatorKernel
    length_scale: float | ArrayLike | Literal["median"]
    A: ArrayLike | None
    projection: Literal["auto", "gaussian", "orthogonal", "sorf"]
    random_state: RandomState
    n_jobs: int | None
    def __init__(self, n_components: int = 1024, *, kernel: Literal["decomposable", "curl_free", "divergence_free", "helmholtz"] | OperatorKernel = "decomposable", length_scale: float | ArrayLike | Literal["median"] = 1.0, A: ArrayLike | None = None, projection: Literal["auto", "gaussian", "orthogonal", "sorf"] = "auto", random_state: RandomState = None, n_jobs: int | None = None) -> None: ...

@dataclass(frozen=True)
class GaussianKernel:
    _parameters: ClassVar[tuple[Parameter, ...]]
    _name: ClassVar[str]
    _about: ClassVar[str]
    length_scale: float = 1.0

@dataclass(frozen=True)
class LaplacianKernel:
    _parameters: ClassVar[tuple[Parameter, ...]]
    _name: ClassVar[str]
    _about: ClassVar[str]
    length_scale: float = 1.0
    norm: Literal[1, 2] = 2

@dataclass(frozen=True, kw_only=True)
class MaternKernel:
    _parameters: ClassVar[tuple[Parameter, ...]]
    _name: ClassVar[str]
    _about: ClassVar[str]
    nu: float = 1.5
    length_scale: float = 1.0

@dataclass(frozen=True)
class ExponentialKernel:
    _parameters: ClassVar[tuple[Parameter, ...]]
    _name: ClassVar[str]
    _about: ClassVar[str]
    length_scale: float = 1.0

@dataclass(frozen=True)
class PolynomialKernel:
    _parameters: ClassVar[tuple[Parameter, ...]]
    _name: ClassVar[str]
    _about: ClassVar[str]
    degree: int = 2
    gamma: float = 1.0
    coef0: float = 0.0

@dataclass(frozen=True)
class SphericalKernel:
    _parameters: ClassVar[tuple[Parameter, ...]]
    _name: ClassVar[str]
    _about: ClassVar[str]
    degree: int = 3
    a: float = 2.0

@dataclass(frozen=True)
class OpticalKernel:
    _parameters: ClassVar[tuple[Parameter, ...]]
    _name: ClassVar[str]
    _about: ClassVar[str]
    exponent: float = 2.0
    bias: float = 0.0

@dataclass(frozen=True)
class CompressiveKernel:
    _parameters: ClassVar[tuple[Parameter, ...]]
    _name: ClassVar[str]
    _about: ClassVar[str]
    compressed_dim: int = 64
    length_scale: float = 1.0

@dataclass(frozen=True)
class LowOrderKernel:
    _parameters: ClassVar[tuple[Parameter, ...]]
    _name: ClassVar[str]
    _about: ClassVar[str]
    length_scale: float = 1.0
    order: int = 2

@dataclass(frozen=True)
class CurlFreeKernel:
    _parameters: ClassVar[tuple[Parameter, ...]]
    _name: ClassVar[str]
    _about: ClassVar[str]
    length_scale: float | ArrayLike = 1.0
    base: Literal["gaussian", "matern"] = "gaussian"
    nu: float = 2.5

@dataclass(frozen=True)
class DivergenceFreeKernel:
    _parameters: ClassVar[tuple[Parameter, ...]]
    _name: ClassVar[str]
    _about: ClassVar[str]
    length_scale: float | ArrayLike = 1.0
    base: Literal["gaussian", "matern"] = "gaussian"
    nu: float = 2.5

@dataclass(frozen=True)
class HelmholtzKernel:
    _parameters: ClassVar[tuple[Parameter, ...]]
    _name: ClassVar[str]
    _about: ClassVar[str]
    length_scale: float | ArrayLike = 1.0
    curl_free: float = 0.5
    base: Literal["gaussian", "matern"] = "gaussian"
    nu: float = 2.5
