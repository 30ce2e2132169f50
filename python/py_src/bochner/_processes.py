"""Gaussian processes on random features: predictions that know how sure they are."""

from __future__ import annotations

import json
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import train_test_split
from sklearn.utils.metaestimators import available_if

from bochner._base import FeatureTransformer
from bochner._bochner import GpClassifierModel, GpRegressorModel, GpSums, Map, maximise_evidence
from bochner._checks import RandomState, explained, plain, seed_of
from bochner._models import (
    AccumulatingClassification,
    AccumulatingRegression,
    FeatureModel,
    Probable,
    predict_process,
)
from bochner._progress import progress


class FeatureGPRegressor(FeatureModel, AccumulatingRegression):
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
        scales are searched for :class:`FourierFeatures`, beginning with those of the features times the power of ten
        that makes the targets likeliest; for other features they stay.
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

    def _fit(self, rows: Any, targets: NDArray[Any], weights: NDArray[Any] | None) -> Self:
        features = self._prepare(rows, targets)
        with explained(self, ("X", rows)), progress(self.verbose, type(self).__name__, rows.shape[0]) as report:
            self.model_ = GpRegressorModel.fit(
                features.map_, rows, targets, weights, self._plan(), n_jobs=self.n_jobs, progress=report
            )
        self.features_ = features
        return self

    def _begin(self, rows: Any, targets: NDArray[Any]) -> None:
        self.features_ = self._prepare(rows, targets)
        self.n_outputs_ = targets.shape[1]

    def _empty(self) -> GpSums:
        return GpSums(self.features_.map_, self.n_outputs_, self.dtype_.name)

    def _solved(self) -> GpRegressorModel:
        return self.sums_.regressor(self._plan(), n_jobs=self.n_jobs)

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
        spec, steps = features.map_.spec, plan["max_iter"]
        with progress(self.verbose, f"{type(self).__name__} search", steps, unit="evaluations") as report:
            found = json.loads(
                maximise_evidence(spec, rows, targets, json.dumps(plan), n_jobs=self.n_jobs, progress=report)
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
        return predict_process(self, X, return_std, return_cov)

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
        rows = self._rows(X, model)
        with explained(self, ("X", rows)):
            samples = model.sample(rows, n_samples, seed_of(random_state), n_jobs=self.n_jobs)
        return samples if self.target_shape_ else samples[:, 0]

    @property
    def log_marginal_likelihood_value_(self) -> float:
        """Log marginal likelihood of the training targets."""
        return self._model().log_marginal_likelihood

    @property
    def observation_variance_(self) -> Any:
        """Variance of the noise in units of the targets."""
        variances = np.asarray(self._model().observation_variances)
        return variances if self.target_shape_ else float(variances[0])


class FeatureGPClassifier(FeatureModel, Probable, AccumulatingClassification):
    """Gaussian-process classification on random features.

    Every class has a process of its own for the logarithm of its share; probabilities are averages over draws from their
    posteriors. By the Dirichlet transform (Milios et al. 2018) these are regressions, solved in one pass over the rows
    with a matrix of features by features for every class. Variational inference with mini-batches and Adam takes many
    passes and no such matrix: it is for more features than one could be made of.

    Parameters
    ----------
    features : transformer, default=None
        Feature map, such as :class:`FourierFeatures`, which is also what None stands for. It is cloned, not changed.
    alpha : float or sequence of float, default=0.01
        Concentration of the labels' Dirichlet law: small values trust labels. Of several values the one with the
        lowest negative log likelihood of held-out labels is taken.
    signal : float, default=None
        Variance of the processes; None takes the variance of the transformed labels, and 30 for variational inference.
    inference : {"dirichlet", "variational"}, default="dirichlet"
        How posteriors are found. Variational inference has no use for `alpha`, takes real features, and has no
        `partial_fit`.
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
        Log marginal likelihood of the transformed labels; a lower bound of that of the labels for variational inference.
    n_iter_ : int
        Passes over the rows that learned something: 1 by the Dirichlet transform.
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
        inference: Literal["dirichlet", "variational"] = "dirichlet",
        n_draws: int = 512,
        max_iter: int = 20,
        learning_rate: float = 0.02,
        validation_fraction: float = 0.1,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.features = features
        self.alpha = alpha
        self.signal = signal
        self.inference = inference
        self.n_draws = n_draws
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _fit(self, rows: Any, targets: NDArray[Any], weights: NDArray[Any] | None) -> Self:
        if self._variational():
            return self._climb(rows, targets, weights)
        features = self._draw(rows)
        self.seed_ = seed_of(self.random_state)
        self.alpha_ = self._choose(features, rows, targets, self.seed_)
        with explained(self, ("X", rows)), progress(self.verbose, type(self).__name__, rows.shape[0]) as report:
            self.model_ = GpClassifierModel.fit(
                features.map_, rows, targets, weights, self._plan(), n_jobs=self.n_jobs, progress=report
            )
        self.features_ = features
        return self

    def _variational(self) -> bool:
        if self.inference not in ("dirichlet", "variational"):
            raise ValueError(f'inference must be "dirichlet" or "variational", got {self.inference!r}')
        return self.inference == "variational"

    def _climb(self, rows: Any, targets: NDArray[Any], weights: NDArray[Any] | None) -> Self:
        features = self._draw(rows)
        self.seed_ = seed_of(self.random_state)
        plan = {"signal": 30.0 if self.signal is None else self.signal}
        plan |= {name: getattr(self, name) for name in ("max_iter", "learning_rate")}
        plan = {name: plain(name, value) for name, value in plan.items()}
        plan |= {"classes": len(self.classes_), "seed": self.seed_}
        # Batches are taken in the order of the rows, which must not be that of the labels.
        order = np.random.default_rng(self.seed_).permutation(rows.shape[0])
        weights = None if weights is None else weights[order]
        with explained(self, ("X", rows)), progress(self.verbose, type(self).__name__, rows.shape[0]) as report:
            self.model_ = GpClassifierModel.fit_variational(
                features.map_,
                rows[order],
                targets[order],
                weights,
                json.dumps(plan),
                n_jobs=self.n_jobs,
                progress=report,
            )
        self.features_ = features
        return self

    # Variational inference takes many passes over the same rows.
    partial_fit = available_if(lambda self: self.inference != "variational")(AccumulatingClassification.partial_fit)

    def _begin(self, rows: Any, targets: NDArray[Any]) -> None:
        if self._variational():
            raise ValueError('sums over rows need inference="dirichlet": variational inference takes many passes')
        alphas = np.ravel(self.alpha)
        if len(alphas) != 1:
            raise ValueError(f"alpha must be one number where rows come in parts, got {len(alphas)} of them")
        self.features_ = self._draw(rows)
        self.seed_ = seed_of(self.random_state)
        self.alpha_ = plain("alpha", self.alpha if np.ndim(self.alpha) == 0 else float(alphas[0]))

    def _empty(self) -> GpSums:
        return GpSums(self.features_.map_, 1, self.dtype_.name, len(self.classes_))

    def _solved(self) -> GpClassifierModel:
        return self.sums_.classifier(self._plan(), n_jobs=self.n_jobs)

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
                self._plan(alphas[0]),
                alphas,
                n_jobs=self.n_jobs,
            )
        self.validation_losses_ = np.asarray(losses)
        return alphas[int(np.argmin(losses))]

    def _plan(self, alpha: Any = None) -> str:
        alpha = self.alpha_ if alpha is None else alpha
        plan = {"alpha": alpha, "signal": self.signal, "n_samples": self.n_draws}
        plan = {name: plain(name, value) for name, value in plan.items()}
        return json.dumps({**plan, "classes": len(self.classes_), "seed": self.seed_})

    @property
    def log_marginal_likelihood_value_(self) -> float:
        """Log marginal likelihood of the transformed labels, or the lower bound of variational inference."""
        return self._model().log_marginal_likelihood

    @property
    def n_iter_(self) -> int:
        """Passes over the rows that learned something."""
        self._model()
        return self.max_iter if self.inference == "variational" else 1
