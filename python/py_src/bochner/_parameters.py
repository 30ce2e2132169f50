"""Parameters that the core's catalogue does not list: those that only Python has, and those of models."""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Iterable
from typing import Any

from bochner._catalogue import CATALOGUE, Parameter, entry, items, parameters

_COMMON = """
random_state : int, Generator, RandomState or None, default=None
    Seed of the features, where they have none of their own.
n_jobs : int, default=None
    Threads; None and -1 mean all processors. Results do not depend on it.
verbose : int, default=0
    Whether to show progress.
features : transformer, default=None
    Feature map, such as :class:`FourierFeatures`, which is also what None stands for. It is cloned, not changed.
kernel : kernel, default=None
    One of :mod:`bochner.kernels`; None stands for ``Gaussian()``.
alpha : float, default=1.0
    Penalty on the squared coefficients.
noise : float, default=0.1
    Variance of the noise; where the search for hyperparameters starts, if there is one.
signal : float, default=1.0
    Variance of the process, which is the factor of the kernel; likewise.
normalize_y : bool, default=True
    Whether targets are divided by their standard deviation, so that both variances are in units of the variance of the
    targets. Their mean is subtracted in any case.
n_draws : int, default=512
    Draws from the posteriors for probabilities.
A : array-like of shape (n_targets, n_targets), "covariance", "learned" or None, default=None
    How the outputs of a decomposable kernel are related: a positive semi-definite matrix, the covariance of the targets, a
    matrix learned together with the regression, or not at all.
n_components : int, default=1024
    Cosines and sines in all.
"""


def _read(text: str) -> list[Parameter]:
    """Parameters as docstrings write them; those without a type are common ones, or those of a map."""
    found = []
    for name, (head, *about) in items(filter(None, text.splitlines())).items():
        if " : " in head:
            kind, default = head.split(" : ", 1)[1].split(", default=")
            found.append(Parameter(name, literal_eval(default), kind, " ".join(line.strip() for line in about)))
        elif "." in name:
            map, name = name.split(".")
            found += [p for p in parameters(entry("maps", map)) if p.name == name]
        else:
            found.append(_KNOWN[name])
    return found


_KNOWN: dict[str, Parameter] = {}
_KNOWN.update({parameter.name: parameter for parameter in _read(_COMMON)})

# What Python has besides the parameters of a map, or in place of them: parts by name are two parameters here.
_BESIDES: dict[str, str] = {
    "fourier": """
gamma : float or "scale", default=None
    Another way to give the length scale of the Gaussian kernel ``exp(-gamma |x - y|^2)``, as in
    :class:`sklearn.kernel_approximation.RBFSampler`; takes the place of `length_scale` if given.
""",
    "optical": """
encoding : {"bit_planes", "thermometer"}, default=None
    Another binary code in place of `binarize`: the digits of a value's level, or as many ones as there are thresholds below
    it. Ranges are those of the columns seen in `fit`.
levels : int, default=8
    Bits per value of `encoding`.
""",
}
# What it leaves to other doors.
_LEFT_OUT = {"encoding", "gain", "quantile", "ratio", "exact_constant", "cut"}
_DRAWN = """
random_state : int, Generator, RandomState or None, default=None
    Seed of the draw. An integer is the seed itself: the same features in every language.
n_jobs
"""


def _drawn(map: dict[str, Any]) -> Iterable[Parameter]:
    yield from (p for p in parameters(map) if p.name not in _LEFT_OUT)
    yield from _read(_BESIDES.get(map["name"], "") + _DRAWN)


MAPS = {map["name"]: list(_drawn(map)) for map in CATALOGUE["maps"]}

_OPERATOR = """
n_components
alpha
solver : {"auto", "stein", "cholesky", "cg", "lbfgs", "sgd"}, default="auto"
    How the equations are solved: in closed form for decomposable kernels, by factorisation, conjugate gradients, quasi-Newton
    steps or stochastic gradients.
fourier.projection
fit_intercept : bool, default=True
    Whether to add a constant vector that is not penalised.
random_state
"""

_MODELS = {
    "ridge": """
features
alpha
solver : {"auto", "cholesky", "dual", "cg", "sgd"}, default="auto"
    How the equations are solved: by factorisation of the Gram matrix, or of the inner products of all rows where they are
    fewer than features; by conjugate gradients or averaged stochastic gradients on features that are made again in every
    pass, for more features than a Gram matrix could hold. "auto" picks from the numbers of rows and features and the memory;
    `solver_reason_` says why. Sums of `partial_fit` are always factorised.
fit_intercept : bool, default=True
    Whether to add a constant that is not penalised.
tol : float, default=None
    Relative residual at which conjugate gradients stop; None means 1e-10 in float64 and 1e-6 in float32.
max_iter : int, default=None
    Most steps of conjugate gradients (None means 500), or passes of stochastic gradients (10).
memory_budget : int, default=None
    Bytes a fit may take besides the rows; None makes Gram matrices of up to 20,000 features.
random_state
""",
    "svm": """
features
C : float, default=1.0
    Price of a violated margin: the loss summed over rows is multiplied by it.
loss : {"squared_hinge", "hinge"}, default="squared_hinge"
    What a violated margin costs.
tol : float, default=1e-3
    Duality gap, relative to the objective, at which a problem is solved.
max_iter : int, default=1000
    Most passes over the rows.
fit_intercept : bool, default=True
    Whether to add a constant column, whose weight is penalised like the others.
intercept_scaling : float, default=1.0
    Value of that column.
memory_budget : int, default=None
    Bytes for features of all rows; beyond it they are made again, block by block, in every pass. None means 4 GiB.
random_state : int, Generator, RandomState or None, default=None
    Seed of the order of visits, and of the features where they have none of their own.
""",
    "gp_regressor": """
features
noise
signal
normalize_y
optimizer : {"lbfgs"} or None, default=None
    Whether to choose length scale, signal and noise by maximum marginal likelihood, with exact gradients. Length scales are
    searched for :class:`FourierFeatures`, beginning with those of the features times the power of ten that makes the targets
    likeliest; for other features they stay.
length_scales : {"common", "per_input", "fixed"}, default="common"
    Whether the search scales all length scales by one factor, finds one for each column, or keeps them.
max_rows : int, default=5000
    Rows used in the search, drawn at random.
max_iter : int, default=60
    Evaluations of the likelihood in the search.
random_state
""",
    "gp_classifier": """
features
alpha : float or sequence of float, default=0.01
    Concentration of the labels' Dirichlet law: small values trust labels. Of several values the one with the lowest negative
    log likelihood of held-out labels is taken.
signal : float, default=None
    Variance of the processes; None takes the variance of the transformed labels, and 30 for variational inference.
inference : {"dirichlet", "variational"}, default="dirichlet"
    How posteriors are found. Variational inference has no use for `alpha`, takes real features, and has no `partial_fit`.
n_draws : int, default=512
    Draws from the posteriors for probabilities; variational inference has 512.
max_iter : int, default=20
    Passes of variational inference over the rows, in their order but shuffled once before the first.
learning_rate : float, default=0.02
    Size of its steps, which shrink to nothing over the last third.
validation_fraction : float, default=0.1
    Share of the rows held out to choose between several values of alpha.
random_state : int, Generator, RandomState or None, default=None
    Seed of the features, where they have none of their own, of draws and of the rows held out.
""",
    "local_gp": """
n_components : int, default=256
    Budget of features around each centroid. Time grows with its square and with the number of centroids.
fourier.length_scale
noise : float, default=0.01
    Variance of the noise of the targets.
signal_variance : float, default=1.0
    Variance of the function: the kernel's value at distance 0.
threshold : float, default=2.0
    Rows become centroids until none is this many length scales away from all of them; infinity means a single centroid, the
    mean.
max_clusters : int, default=None
    Most centroids.
normalize_y : bool, default=False
    Whether the mean of the targets is subtracted before the fit and added to predictions.
maclaurin.sketch
weights : {"ctr", "real"}, default="ctr"
    Complex or real directions.
maclaurin.max_degree
random_state
""",
    "operator_ridge": f"""
kernel : {{"decomposable", "curl_free", "divergence_free"}} or operator-valued kernel, default="decomposable"
    Kernel of the functions, or one of :class:`bochner.kernels.Decomposable`, :class:`bochner.kernels.CurlFree`,
    :class:`bochner.kernels.DivergenceFree` and :class:`bochner.kernels.Helmholtz`, which have their own parameters.
compressive.length_scale
A
{_OPERATOR}""",
    "operator_ridge_classifier": f"""
compressive.length_scale
A
coding : {{"simplex", "one_hot"}}, default="simplex"
    What stands for a class.
{_OPERATOR}""",
    "exact_kernel_ridge": """
kernel
alpha
memory_budget : int, default=None
    Bytes that may be used. Where the kernel matrix does not fit, conjugate gradients take the place of its factorisation;
    without a budget they do beyond 20,000 rows.
""",
    "exact_gp_regressor": "kernel\nnoise\nsignal\nnormalize_y",
    "exact_gp_classifier": """
kernel
alpha : float, default=0.01
    Concentration of the labels' Dirichlet law: small values trust labels.
signal : float, default=None
    Factor of the kernel; None takes the variance of the transformed labels.
n_draws
random_state : int, Generator, RandomState or None, default=None
    Seed of the draws.
""",
    "exact_operator_ridge": """
kernel : operator-valued kernel, default=None
    One of :class:`bochner.kernels.Decomposable`, :class:`bochner.kernels.CurlFree`,
    :class:`bochner.kernels.DivergenceFree` and :class:`bochner.kernels.Helmholtz`; None is a Gaussian kernel of length scale 1
    for outputs that are not related.
alpha : float, default=1.0
    Added to the diagonal.
""",
    "kernel_svm": """
kernel
C : float, default=1.0
    Price of a violated margin.
tol : float, default=1e-3
    Violation of the optimality conditions at which a pair is solved.
max_iter : int, default=None
    Most steps for a pair of classes; None means ten million.
memory_budget : int, default=None
    Bytes of kernel values kept for a pair of classes; None means 1 GiB.
""",
}
# Models by the names that files give them; the core's catalogue will list them.
MODELS = {name: _read(f"{text}\nn_jobs\nverbose") for name, text in _MODELS.items()}
