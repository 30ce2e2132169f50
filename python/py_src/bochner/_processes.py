"""Gaussian processes on random features: predictions that know how sure they are."""

from __future__ import annotations

import json
import warnings
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.utils.metaestimators import available_if

from bochner import _signatures
from bochner._bochner import Map, maximize_evidence, validate
from bochner._checks import RandomState, count, explained, plain, seed_of
from bochner._models import (
    DENSE,
    KINDS,
    Accumulating,
    AccumulatingClassification,
    FeatureModel,
    Probable,
    Process,
    Regression,
    learned,
)
from bochner._progress import progress


class SampledFunction:
    """A function drawn from the posterior of a process on features: always the same one, with exact derivatives."""

    def __init__(self, function: Any, several: bool) -> None:
        self._function, self._several = function, several

    def __call__(self, X: ArrayLike) -> NDArray[np.float64]:
        """Values of the function.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_features,)
            Rows, or a single one.

        Returns
        -------
        values : ndarray of shape (n_samples,) or (n_samples, n_targets), or of one row
            Values.
        """
        return self._shaped(self._function.values, X)

    def gradient(self, X: ArrayLike) -> NDArray[np.float64]:
        """Derivatives of the function by the columns of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_features,)
            Rows, or a single one.

        Returns
        -------
        gradient : ndarray of shape (n_samples, n_features) or (n_samples, n_targets, n_features), or of one row
            Derivatives.
        """
        return self._shaped(self._function.gradient, X)

    def _shaped(self, question: Any, X: ArrayLike) -> NDArray[np.float64]:
        rows = np.asarray(X, dtype=np.float64)
        found = question(np.ascontiguousarray(np.atleast_2d(rows)))
        found = found if self._several else found[:, 0]
        return found if rows.ndim > 1 else found[0]


class Searched:
    """Hyperparameters by maximum marginal likelihood."""

    # Parameters of every model that searches.
    optimizer: Any
    max_iter: int
    n_jobs: int | None
    verbose: int
    _learned: ClassVar[dict[str, tuple[str, str]]] = {
        "searched_": ("list of str", "Hyperparameters that the search has found; empty without a search."),
        "fixed_": ("list of str", "Hyperparameters of the kernel that the search has kept; empty without a search."),
        "converged_": ("bool", "Whether the search came to its end; true without a search."),
    }

    def _search(
        self, kind: str, on: str, rows: Any, targets: NDArray[Any], plan: str, complex: bool = False, seed: int = 0
    ) -> Any:
        """What the search has found, or None where there is to be none."""
        self.searched_, self.fixed_, self.converged_ = [], [], True
        if self.optimizer is None:
            return None
        most = getattr(self, "max_evaluations", self.max_iter)
        name = type(self).__name__
        with explained(self, ("X", rows)), progress(self.verbose, f"{name} search", most, unit="evaluations") as report:
            told = (kind, on, rows, targets, plan, complex, seed)
            found = json.loads(maximize_evidence(*told, n_jobs=self.n_jobs, progress=report))
        self.searched_, self.fixed_ = found["searched"], found["fixed"]
        self.converged_ = found["converged"]
        if not self.converged_:
            message = f"the search has not converged after {found['evaluations']} evaluations; allow more of them"
            warnings.warn(message, ConvergenceWarning, stacklevel=2)
        return found


class Sampled(Process):
    """A process on features, whose posterior is one of functions that can be drawn."""

    def sample_y(self, X: ArrayLike, n_samples: int = 1, random_state: RandomState = 0) -> NDArray[Any]:
        """Draw functions from the posterior and evaluate them.

        Parameters
        ----------
        n_samples : int, default=1
            Number of functions.
        random_state : int, Generator, RandomState or None, default=0
            Seed of the functions: the same ones at whatever rows.

        Returns
        -------
        samples : ndarray of shape (n_samples_X, n_samples) or (n_samples_X, n_targets, n_samples)
            Values of the functions.
        """
        samples = self._ask("sample", X, n_samples=count("n_samples", n_samples), seed=seed_of(random_state))
        return samples if self.target_shape_ else samples[:, 0]

    def sample_functions(self, n: int = 1, random_state: RandomState = None) -> list[SampledFunction]:
        """Draw functions from the posterior that can be called and differentiated anywhere.

        Parameters
        ----------
        n : int, default=1
            Number of functions.
        random_state : int, Generator, RandomState or None, default=None
            Seed of the functions; those of `sample_y` with the same one.

        Returns
        -------
        functions : list of SampledFunction
            ``f(X)`` are values and ``f.gradient(X)`` derivatives.
        """
        drawn = self._model().sample_functions(count("n", n), seed_of(random_state))
        return [SampledFunction(function, bool(self.target_shape_)) for function in drawn]

    @property
    def observation_variance_(self) -> Any:
        """float or ndarray of shape (n_targets,): Variance of the noise in units of the targets: what an observation varies
        more than the process.
        """
        variances = np.asarray(self._model().learned("observation_variances"))
        return variances if self.target_shape_ else float(variances[0])


class FeatureGPRegressor(_signatures.GpRegressorModel, Searched, FeatureModel, Accumulating, Sampled):
    """Gaussian-process regression on random features, in one pass over the rows.

    The process has covariance ``signal * <phi(x), phi(y)>``, which estimates ``signal * k(x, y)``, and is seen through
    normal noise. Its posterior costs the cube of the number of features, not of rows. Complex features make a complex process,
    of which predictions are the real part.

    >>> X = np.linspace(0, 6, 200)[:, np.newaxis]
    >>> y = np.sin(X[:, 0])
    >>> model = FeatureGPRegressor(FourierFeatures(128, random_state=0), noise=1e-3).fit(X, y)
    >>> mean, std = model.predict([[3.0], [9.0]], return_std=True)
    >>> bool(abs(mean[0] - np.sin(3.0)) < 0.01 and std[1] > 10 * std[0])
    True
    """

    _learned = {
        "noise_": ("float", "Variance of the noise used."),
        "signal_": ("float", "Variance of the process used."),
        "n_iter_": ("int", "Evaluations of the likelihood; 1 without a search."),
    }

    def _prepare(self, rows: Any, targets: NDArray[Any]) -> None:
        """Features, and hyperparameters if they are to be searched for."""
        super()._prepare(rows, targets)
        self.noise_, self.signal_, self.n_iter_ = self.noise, self.signal, 1
        drawn = self.features_.map_
        found = self._search(self._kind, drawn.spec, rows, targets, self._plan(), drawn.complex)
        if found is None:
            return
        self.noise_, self.signal_ = found["noise"], found["signal"]
        self.n_iter_ = max(1, int(found["evaluations"]))
        spec = json.dumps(found["spec"])
        self.features_._adopt(Map(spec, rows.shape[1], rows.dtype.name, drawn.complex, n_jobs=self.n_jobs))

    def _fitted(self, rows: Any, targets: NDArray[Any], weights: NDArray[Any] | None, kind: str | None = None) -> Any:
        model = super()._fitted(rows, targets, weights, kind)
        if self.optimizer is not None:
            # Those of all rows.
            self.signal_, self.noise_ = model.learned("variances")
        return model

    def _take(self, params: dict[str, Any]) -> None:
        for name in ("noise", "signal"):
            if name in params or self.optimizer is None:
                setattr(self, f"{name}_", getattr(self, name))

    def _plan(self, **others: Any) -> str:
        found = {name: getattr(self, f"{name}_", getattr(self, name)) for name in ("noise", "signal")}
        return super()._plan(**found | others)


class FeatureGPClassifier(_signatures.GpClassifierModel, Searched, FeatureModel, Probable, AccumulatingClassification):
    """Gaussian-process classification on random features.

    Every class has a process of its own for the logarithm of its share; probabilities are averages over draws from their
    posteriors. By the Dirichlet transform (Milios et al. 2018) these are regressions, solved in one pass over the rows
    with a matrix of features by features for every class. Variational inference with mini-batches and Adam takes many
    passes and no such matrix: it is for more features than one could be made of.

    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> y = np.where(np.hypot(*X.T) < 1, "inside", "outside")
    >>> model = FeatureGPClassifier(FourierFeatures(128, random_state=0), random_state=0).fit(X, y)
    >>> model.predict([[0.0, 0.0], [2.0, 1.0]])
    array(['inside', 'outside'], dtype='<U7')
    """

    _learned = {
        "alpha_": ("float", "The value of alpha used."),
        "validation_losses_": (
            "ndarray of shape (n_alphas,)",
            "Negative log likelihood of held-out labels for each of several values of alpha.",
        ),
    }

    def _prepare(self, rows: Any, targets: NDArray[Any]) -> None:
        super()._prepare(rows, targets)
        self.seed_ = seed_of(self.random_state)
        drawn = self.features_.map_
        found = self._search(self._kind, drawn.spec, rows, targets, self._plan(), drawn.complex)
        if found is not None:
            spec = json.dumps(found["spec"])
            self.features_._adopt(Map(spec, rows.shape[1], rows.dtype.name, drawn.complex, n_jobs=self.n_jobs))
            if self.inference == "variational":
                # Its signal is that of another likelihood.
                self.searched_.remove("signal")
                self.fixed_.append("signal")
            else:
                self.signal_ = found["signal"]
        if self.inference != "variational":
            self.alpha_ = self._choose(rows, targets)

    def _fitted(self, rows: Any, targets: NDArray[Any], weights: NDArray[Any] | None, kind: str | None = None) -> Any:
        if self.inference != "variational":
            return super()._fitted(rows, targets, weights)
        # Batches are taken in the order of the rows, which must not be that of the labels.
        order = np.random.default_rng(self.seed_).permutation(rows.shape[0])
        weights = None if weights is None else weights[order]
        return super()._fitted(rows[order], targets[order], weights, kind="svi_classifier")

    # Variational inference takes many passes over the same rows.
    partial_fit = available_if(lambda self: self.inference != "variational")(AccumulatingClassification.partial_fit)

    def _begin(self, rows: Any, targets: NDArray[Any]) -> None:
        if self.inference == "variational":
            raise ValueError('sums over rows need inference="dirichlet": variational inference takes many passes')
        if np.size(self.alpha) != 1:
            raise ValueError(f"alpha must be one number where rows come in parts, got {np.size(self.alpha)} of them")
        super()._begin(rows, targets)

    def _choose(self, rows: Any, numbers: NDArray[Any]) -> Any:
        """The alpha of several that predicts held-out labels best."""
        if np.ndim(self.alpha) == 0:
            return plain("alpha", self.alpha)
        alphas = [float(alpha) for alpha in np.ravel(self.alpha)]
        if len(alphas) == 1 or len(numbers) < 10:
            return alphas[0]
        train, test = train_test_split(
            np.arange(len(numbers)), test_size=self.validation_fraction, random_state=self.seed_ % (1 << 32)
        )
        parts = (rows[train], numbers[train], rows[test], numbers[test])
        known = (self._plan(alpha=alphas[0]), alphas, len(self.classes_), self.seed_)
        with explained(self, ("X", rows)):
            losses = validate(self._on(), *parts, *known, n_jobs=self.n_jobs)
        self.validation_losses_ = np.asarray(losses)
        return alphas[int(np.argmin(losses))]

    def _take(self, params: dict[str, Any]) -> None:
        if "alpha" in params or np.ndim(self.alpha) == 0:
            self.alpha_ = plain("alpha", self.alpha)
        if "signal" in params:
            self.__dict__.pop("signal_", None)

    def _check_stream(self) -> str | None:
        if self.inference == "variational":
            raise ValueError('rows that come in batches need inference="dirichlet": variational inference shuffles all of them')
        return super()._check_stream()

    def _plan(self, **others: Any) -> str:
        found = {"alpha": getattr(self, "alpha_", self.alpha), "signal": getattr(self, "signal_", self.signal)}
        return super()._plan(**found | others)

    log_marginal_likelihood_value_ = learned(
        "log_marginal_likelihood",
        "float",
        "Log marginal likelihood of the transformed labels; a lower bound of that of the labels for variational inference.",
    )

    @property
    def n_iter_(self) -> int:
        """int: Passes over the rows that learned something: 1 by the Dirichlet transform."""
        self._model()
        return self.max_iter if self.inference == "variational" else 1


# Files know variational inference as a kind of its own.
KINDS["svi_classifier"] = FeatureGPClassifier


class LocalGPRegressor(_signatures.LocalGpModel, Searched, Regression):
    r"""Gaussian process regression with the Gaussian kernel, for length scales short against the spread of the rows.

    Maclaurin features estimate the kernel well near their origin only. The kernel does not change when all rows are
    shifted: rows are clustered, the features are taken around every centroid, and a row is predicted around the
    centroid nearest to it (Wacker 2022, section 5.5). Rows beyond the threshold of all centroids are predicted from the
    rows of the fit nearest to them: far from all of those the mean is 0 and the standard deviation that of the prior.

    >>> x = np.linspace(-6, 6, 120)
    >>> model = LocalGPRegressor(11, length_scale=0.6, random_state=0).fit(x[:, None], np.sin(2 * x))
    >>> mean, std = model.predict([[4.03]], return_std=True)
    >>> bool(abs(mean[0] - np.sin(8.06)) < 0.05 and std[0] < 0.1)
    True
    """

    _row_checks = DENSE
    _apart = ("normalize_y",)
    _learned = {
        "noise_": ("float", "Variance of the noise used."),
        "signal_variance_": ("float", "Variance of the function used."),
        "length_scale_": ("float, list of float or list of lists", "Length scales used, or the linear metric."),
    }
    centroids_ = learned(
        "centroids", "ndarray of shape (n_centroids, n_features)", "The centroids, the mean of the rows first."
    )

    @property
    def spec_(self) -> dict[str, Any]:
        """dict: Full description of the features."""
        return self._described()

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit to rows and targets."""
        return self._fit(X, y)

    def _checks(self, first: bool = True) -> dict[str, Any]:
        return {"ensure_min_samples": 2}

    def _prepare(self, rows: Any, targets: NDArray[Any]) -> None:
        mean = targets.mean(axis=0) if self.normalize_y else np.zeros(targets.shape[1])
        self.target_units_ = (mean, np.ones_like(mean))
        self.seed_ = seed_of(self.random_state)
        self.noise_, self.signal_variance_, self.length_scale_ = self.noise, self.signal_variance, self.length_scale
        found = self._search(self._kind, "", rows, targets, self._plan())
        self.n_iter_ = 1 if found is None else max(1, int(found["evaluations"]))
        if found is not None:
            self.noise_, self.signal_variance_ = found["noise"], found["signal"]
            self.length_scale_ = found["length_scale"]

    def _fitted(self, rows: Any, targets: NDArray[Any], weights: NDArray[Any] | None, kind: str | None = None) -> Any:
        return super()._fitted(rows, targets - self.target_units_[0], weights)

    def _plan(self, **others: Any) -> str:
        others["threshold"] = None if self.threshold == np.inf else self.threshold
        # A constant and one column beside it are the least.
        least = {"n_components": 2, "weights": "real"} if self.n_components in (1, 2) else {}
        names = ("noise", "signal_variance", "length_scale")
        found = {name: getattr(self, f"{name}_", getattr(self, name)) for name in names}
        return super()._plan(**found | others | least)

    def predict(self, X: ArrayLike, return_std: bool = False, include_noise: bool = False) -> Any:
        """Predictive mean, and standard deviation where asked for.

        Returns
        -------
        mean : ndarray of shape (n_samples,) or (n_samples, n_targets)
            Predictive means.
        std : ndarray of shape (n_samples,) or (n_samples, n_targets)
            Standard deviations, the same for all targets; only if `return_std`.
        """
        if not return_std:
            return super().predict(X)
        mean, std = self._with_std(X)
        return mean, np.sqrt(std**2 + self.noise_) if include_noise else std
