"""scikit-learn's own checks, all of them."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from catalogue import ESTIMATORS


@parametrize_with_checks(ESTIMATORS)
def test_estimator_follows_the_protocol(estimator, check):
    check(estimator)
