"""Gaussian processes on random features: predictions that know how sure they are."""

from __future__ import annotations

import json
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.model_selection import train_test_split
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from bochner._base import FeatureTransformer
from bochner._bochner import GpClassifierModel, GpRegressorModel, GpSums, Map, maximise_evidence
from bochner._checks import RandomState, check_rows, explained, forget, plain, seed_of
from bochner._progress import progress
from bochner._ridge import _FeatureRidge


class _FeatureProcess(BaseEstimator):
    """What regression and classification share with ridge regression: how features are drawn and rows are weighted."""

    _draw = _FeatureRidge._draw
    _weights = _FeatureRidge._weights

    features: FeatureTransformer | None
    random_state: Any
    n_jobs: int | None
    verbose: int

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class FeatureGPRegressor(MultiOutputMixin, RegressorMixin, _FeatureProcess):
    """Gaussian-process regression on random features, in one pass over the rows.

    The process has covariance ``signal * <phi(x), phi(y)>``, which estimates ``signal * k(x, y)``, and is seen through
    normal noise. Its posterior costs the cube of the number of features, not of rows.

    Parameters
    ----------
    features : transformer, default=None
        Feature map, such as :class:`FourierFeatures`, which is also what None stands for. It is cloned, not changed.
        Complex features make a complex process, of which predictions are the real part.
    noise : float, default=0.1
        Variance of the noise; where the search for hyperparameters starts, if there is one.
    signal : float, default=1.0
        Variance of the process; likewise.
    normalize_y : bool, default=True
        Whether targets are divided by their standard deviation, so that both variances are in units of the variance
        of the targets. Their mean is subtracted in any case.
    optimizer : {"lbfgs"} or None, default=None
        Whether to choose length scale, signal and noise by maximum marginal likelihood, with exact gradients. Length
        scales are searched for :class:`FourierFeatures`; for other features they stay.
    length_scales : {"common", "per_input", "fixed"}, default="common"
        Whether the search scales all length scales by one factor, finds one for each column, or keeps them.
    max_rows : int, default=5000
        Rows used in the search, drawn at random.
    max_iter : int, default=60
        Evaluations of the likelihood in the search.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the features, where they have none of their own.
    n_jobs : int, default=None
        Threads; None and -1 mean all processors. Results do not depend on it.
    verbose : int, default=0
        Whether to show progress.

    Attributes
    ----------
    features_ : transformer
        The fitted feature map.
    noise_ : float
        Variance of the noise used.
    signal_ : float
        Variance of the process used.
    n_iter_ : int
        Evaluations of the likelihood; 1 without a search.
    log_marginal_likelihood_value_ : float
        Log marginal likelihood of the training targets.
    observation_variance_ : float or ndarray of shape (n_targets,)
        Variance of the noise in units of the targets: what an observation varies more than the process.
    n_features_in_ : int
        Columns of the rows seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where they had any.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import FeatureGPRegressor, FourierFeatures
    >>> X = np.linspace(0, 6, 200)[:, np.newaxis]
    >>> y = np.sin(X[:, 0])
    >>> model = FeatureGPRegressor(FourierFeatures(128, random_state=0), noise=1e-3).fit(X, y)
    >>> mean, std = model.predict([[3.0], [9.0]], return_std=True)
    >>> bool(abs(mean[0] - np.sin(3.0)) < 0.01 and std[1] > 10 * std[0])
    True
    """

    def __init__(
        self,
        features: FeatureTransformer | None = None,
        *,
        noise: float = 0.1,
        signal: float = 1.0,
        normalize_y: bool = True,
        optimizer: Literal["lbfgs"] | None = None,
        length_scales: Literal["common", "per_input", "fixed"] = "common",
        max_rows: int = 5000,
        max_iter: int = 60,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.features = features
        self.noise = noise
        self.signal = signal
        self.normalize_y = normalize_y
        self.optimizer = optimizer
        self.length_scales = length_scales
        self.max_rows = max_rows
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to rows and targets.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets.
        sample_weight : float or array-like of shape (n_samples,), default=None
            Weights of the rows: the variance of a row's noise is divided by its weight.

        Returns
        -------
        self : object
            The fitted model.
        """
        forget(self)
        rows, targets = self._check(X, y, first=True)
        weights = self._weights(rows, sample_weight)
        features = self._prepare(rows, targets)
        with explained(self, ("X", rows)), progress(self.verbose, type(self).__name__, rows.shape[0]) as report:
            self.model_ = GpRegressorModel.fit(
                features.map_, rows, targets, weights, self._plan(), n_jobs=self.n_jobs, progress=report
            )
        self.features_ = features
        return self

    def partial_fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Add rows to those of earlier calls; the result is that of one `fit` to all of them.

        Hyperparameters are searched for, where asked for, on the rows of the first call. After `fit`, and in a pickled
        copy, there are no sums to add to: it starts anew, with a warning.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            More rows.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Their targets.
        sample_weight : float or array-like of shape (n_samples,), default=None
            Their weights.

        Returns
        -------
        self : object
            The fitted model.
        """
        rows, targets = self._check(X, y, first=_FeatureRidge._starts(self))  # type: ignore[arg-type]
        weights = self._weights(rows, sample_weight)
        if not hasattr(self, "sums_"):
            self.features_ = self._prepare(rows, targets)
            self.sums_ = GpSums(self.features_.map_, targets.shape[1], targets.dtype.name)
        try:
            with explained(self, ("X", rows)), progress(self.verbose, type(self).__name__, rows.shape[0]) as report:
                self.sums_.push(rows, targets, weights, n_jobs=self.n_jobs, progress=report)
        except BaseException:
            # Part of the rows may have been added: better nothing than something between two states.
            forget(self)
            raise
        if hasattr(self, "model_"):
            del self.model_
        return self

    def _check(self, X: ArrayLike, y: ArrayLike, *, first: bool) -> tuple[Any, NDArray[Any]]:
        rows, targets = check_rows(self, X, y=y, reset=first, multi_output=True, y_numeric=True)
        if first:
            self.dtype_ = rows.dtype
            self.target_shape_ = targets.shape[1:]
        elif targets.shape[1:] != self.target_shape_:
            raise ValueError(f"y has shape {targets.shape}, but the first rows had {self.target_shape_} targets")
        targets = np.ascontiguousarray(targets.reshape(len(targets), -1), dtype=self.dtype_)
        return rows.astype(self.dtype_, copy=False), targets

    def _prepare(self, rows: Any, targets: NDArray[Any]) -> FeatureTransformer:
        """Features, and hyperparameters if they are to be searched for."""
        features = self._draw(rows)
        self.noise_, self.signal_, self.n_iter_ = self.noise, self.signal, 1
        if self.optimizer is None:
            return features
        if self.optimizer != "lbfgs":
            raise ValueError(f'optimizer must be "lbfgs" or None, got {self.optimizer!r}')
        plan = {
            **json.loads(self._plan()),
            "complex": features.map_.complex,
            "scales": self.length_scales,
            "max_rows": plain("max_rows", self.max_rows),
            "max_iter": plain("max_iter", self.max_iter),
        }
        found = json.loads(
            maximise_evidence(features.map_.spec, rows, targets, json.dumps(plan), n_jobs=self.n_jobs)
        )
        self.noise_, self.signal_ = found["noise"], found["signal"]
        self.n_iter_ = max(1, int(found.get("evaluations", 1)))
        drawn = features.map_
        tuned = Map(json.dumps(found["spec"]), drawn.input_dim, rows.dtype.name, drawn.complex, n_jobs=self.n_jobs)
        return features._adopt(tuned)

    def _plan(self) -> str:
        parameters = {"noise": self.noise_ if hasattr(self, "noise_") else self.noise}
        parameters["signal"] = self.signal_ if hasattr(self, "signal_") else self.signal
        plan = {name: plain(name, value) for name, value in parameters.items()}
        return json.dumps({**plan, "normalize_y": plain("normalize_y", self.normalize_y)})

    def _model(self) -> GpRegressorModel:
        """The fitted model, solved from the sums if rows were added since."""
        check_is_fitted(self)
        if not hasattr(self, "model_"):
            self.model_ = self.sums_.solve(self._plan(), n_jobs=self.n_jobs)
        return self.model_

    def predict(self, X: ArrayLike, return_std: bool = False, return_cov: bool = False) -> Any:
        """Predict targets.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        return_std : bool, default=False
            Whether to return the standard deviation of the process as well. Noise is not included: add
            `observation_variance_` to its square for the variance of an observation.
        return_cov : bool, default=False
            Whether to return the covariance between all pairs of rows as well.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_targets)
            Means of the process.
        std : ndarray of the shape of y
            Standard deviations, if asked for.
        cov : ndarray of shape (n_samples, n_samples) or (n_samples, n_samples, n_targets)
            Covariances, if asked for.
        """
        if return_std and return_cov:
            raise ValueError("at most one of return_std and return_cov can be True")
        model = self._model()
        rows = check_rows(self, X, reset=False).astype(model.dtype, copy=False)
        with explained(self, ("X", rows)):
            if return_std:
                mean, variance = model.predict_with_variance(rows, n_jobs=self.n_jobs)
                return self._shaped(mean), np.sqrt(self._shaped(variance))
            mean = self._shaped(model.predict(rows, n_jobs=self.n_jobs))
            if not return_cov:
                return mean
            targets = len(model.observation_variances)
            matrices = [model.covariance(rows, target, n_jobs=self.n_jobs) for target in range(targets)]
            return mean, np.stack(matrices, axis=-1) if self.target_shape_ else matrices[0]

    def sample_y(self, X: ArrayLike, n_samples: int = 1, random_state: RandomState = 0) -> NDArray[Any]:
        """Draw functions from the posterior and evaluate them.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples_X, n_features)
            Rows.
        n_samples : int, default=1
            Number of functions.
        random_state : int, Generator, RandomState or None, default=0
            Seed of the functions: the same ones at whatever rows.

        Returns
        -------
        samples : ndarray of shape (n_samples_X, n_samples) or (n_samples_X, n_targets, n_samples)
            Values of the functions.
        """
        model = self._model()
        rows = check_rows(self, X, reset=False).astype(model.dtype, copy=False)
        with explained(self, ("X", rows)):
            samples = model.sample(rows, n_samples, seed_of(random_state), n_jobs=self.n_jobs)
        return samples if self.target_shape_ else samples[:, 0]

    def _shaped(self, values: NDArray[Any]) -> NDArray[Any]:
        return values.reshape(len(values), *self.target_shape_)

    @property
    def log_marginal_likelihood_value_(self) -> float:
        """Log marginal likelihood of the training targets."""
        return self._model().log_marginal_likelihood

    @property
    def observation_variance_(self) -> Any:
        """Variance of the noise in units of the targets."""
        variances = np.asarray(self._model().observation_variances)
        return variances if self.target_shape_ else float(variances[0])

    def __getstate__(self) -> dict[str, Any]:
        """The model without the sums of `partial_fit`: a pickle predicts, and cannot be added to."""
        if hasattr(self, "sums_"):
            self._model()
        state: dict[str, Any] = dict(super().__getstate__())
        state.pop("sums_", None)
        return state

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_") or hasattr(self, "sums_")


class FeatureGPClassifier(ClassifierMixin, _FeatureProcess):
    """Gaussian-process classification on random features by the Dirichlet transform, in one pass over the rows.

    Every class has a process of its own for the logarithm of its share (Milios et al. 2018); probabilities are averages
    over draws from their posteriors.

    Parameters
    ----------
    features : transformer, default=None
        Feature map, such as :class:`FourierFeatures`, which is also what None stands for. It is cloned, not changed.
    alpha : float or sequence of float, default=0.01
        Concentration of the labels' Dirichlet law: small values trust labels. Of several values the one with the
        lowest negative log likelihood of held-out labels is taken.
    signal : float, default=None
        Variance of the processes; None takes the variance of the transformed labels.
    n_draws : int, default=512
        Draws from the posteriors for probabilities.
    validation_fraction : float, default=0.1
        Share of the rows held out to choose between several values of alpha.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the features, where they have none of their own, of draws and of the rows held out.
    n_jobs : int, default=None
        Threads; None and -1 mean all processors. Results do not depend on it.
    verbose : int, default=0
        Whether to show progress.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    features_ : transformer
        The fitted feature map.
    alpha_ : float
        The value of alpha used.
    validation_losses_ : ndarray of shape (n_alphas,)
        Negative log likelihood of held-out labels for each of several values of alpha.
    log_marginal_likelihood_value_ : float
        Log marginal likelihood of the transformed labels.
    n_features_in_ : int
        Columns of the rows seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where they had any.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner import FeatureGPClassifier, FourierFeatures
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> y = np.where(np.hypot(*X.T) < 1, "inside", "outside")
    >>> model = FeatureGPClassifier(FourierFeatures(128, random_state=0), random_state=0).fit(X, y)
    >>> model.predict([[0.0, 0.0], [2.0, 1.0]])
    array(['inside', 'outside'], dtype='<U7')
    """

    def __init__(
        self,
        features: FeatureTransformer | None = None,
        *,
        alpha: float | ArrayLike = 0.01,
        signal: float | None = None,
        n_draws: int = 512,
        validation_fraction: float = 0.1,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.features = features
        self.alpha = alpha
        self.signal = signal
        self.n_draws = n_draws
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to rows and labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : float or array-like of shape (n_samples,), default=None
            Weights of the rows: the variance of a row's noise is divided by its weight.

        Returns
        -------
        self : object
            The fitted model.
        """
        forget(self)
        rows, labels = check_rows(self, X, y=y, reset=True)
        labels = column_or_1d(labels, warn=True)
        check_classification_targets(labels)
        self.classes_, numbers = np.unique(labels, return_inverse=True)
        weights = self._weights(rows, sample_weight)
        features = self._draw(rows)
        seed = seed_of(self.random_state)
        numbers = np.ascontiguousarray(numbers.reshape(-1, 1), dtype=rows.dtype)
        self.alpha_ = self._choose(features, rows, numbers, seed)
        with explained(self, ("X", rows)), progress(self.verbose, type(self).__name__, rows.shape[0]) as report:
            self.model_ = GpClassifierModel.fit(
                features.map_, rows, numbers, weights, self._plan(self.alpha_, seed), n_jobs=self.n_jobs, progress=report
            )
        self.features_ = features
        return self

    def _choose(self, features: FeatureTransformer, rows: Any, numbers: NDArray[Any], seed: int) -> Any:
        if np.ndim(self.alpha) == 0:
            return plain("alpha", self.alpha)
        alphas = [float(alpha) for alpha in np.ravel(self.alpha)]
        if len(alphas) == 1 or len(numbers) < 10:
            return alphas[0]
        train, test = train_test_split(
            np.arange(len(numbers)), test_size=self.validation_fraction, random_state=seed % (1 << 32)
        )
        with explained(self, ("X", rows)):
            losses = GpClassifierModel.validate(
                features.map_,
                rows[train],
                numbers[train],
                rows[test],
                numbers[test],
                self._plan(alphas[0], seed),
                alphas,
                n_jobs=self.n_jobs,
            )
        self.validation_losses_ = np.asarray(losses)
        return alphas[int(np.argmin(losses))]

    def _plan(self, alpha: Any, seed: int) -> str:
        plan = {"alpha": alpha, "signal": self.signal, "n_samples": self.n_draws}
        plan = {name: plain(name, value) for name, value in plan.items()}
        return json.dumps({**plan, "classes": len(self.classes_), "seed": seed})

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Probabilities of classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        p : ndarray of shape (n_samples, n_classes)
            Probabilities, in the order of `classes_`.
        """
        check_is_fitted(self)
        rows = check_rows(self, X, reset=False).astype(self.model_.dtype, copy=False)
        with explained(self, ("X", rows)):
            return self.model_.probabilities(rows, n_jobs=self.n_jobs)

    def predict_log_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Logarithms of probabilities of classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        log_p : ndarray of shape (n_samples, n_classes)
            Logarithms, in the order of `classes_`.
        """
        return np.log(np.maximum(self.predict_proba(X), 1e-300))

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """The most probable label of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        y : ndarray of shape (n_samples,)
            Labels.
        """
        probabilities = self.predict_proba(X)
        return self.classes_[np.argmax(probabilities, axis=1)]

    @property
    def log_marginal_likelihood_value_(self) -> float:
        """Log marginal likelihood of the transformed labels."""
        check_is_fitted(self)
        return self.model_.log_marginal_likelihood

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")
