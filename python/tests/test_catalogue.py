"""Every map and every kernel of the catalogue has its class, which says what the catalogue says and works throughout."""

import importlib.util
import inspect
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

import bochner
from bochner import FeatureRidge, FourierFeatures, MaclaurinFeatures, PolynomialSketch, kernels
from bochner._catalogue import CATALOGUE, parameters
from bochner._files import FEATURES, KERNELS
from bochner._models import KINDS
from bochner._parameters import MODELS
from catalogue import ESTIMATORS

MAPS = {entry["name"]: entry for entry in CATALOGUE["maps"]}
ALL_KERNELS = CATALOGUE["kernels"] + CATALOGUE["operator_kernels"]
# Parameters that only the command line and Rust have, and those that Python says in its own way.
ELSEWHERE = {"gain", "quantile", "ratio", "exact_constant", "cut", "encoding"}
by_name = pytest.mark.parametrize("name", MAPS)


def documented(thing):
    """Type and sentence of every parameter in a docstring."""
    section = inspect.getdoc(thing).split("Parameters\n----------\n")[1].split("\n\n")[0]
    found = re.findall(r"^(\w+) : (.*)\n((?:    .*\n?)+)", section, re.M)
    return {name: (kind, " ".join(about.split())) for name, kind, about in found}


def test_every_map_and_every_kernel_has_its_class():
    assert set(FEATURES) == set(MAPS)
    assert set(KERNELS) == {entry["name"] for entry in ALL_KERNELS}
    assert {kind.__name__ for kind in FEATURES.values()} <= set(bochner.__all__)


@by_name
def test_signature_and_docstring_of_a_map_are_the_catalogues(name):
    kind = FEATURES[name]
    known = [p for p in parameters(MAPS[name]) if p.name not in ELSEWHERE]
    taken = inspect.signature(kind).parameters
    assert [n for n in taken if n in {p.name for p in known}] == [p.name for p in known]
    assert list(taken)[-2:] == ["random_state", "n_jobs"]
    kinds = [parameter.kind for parameter in taken.values()]
    assert kinds[0] is inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert set(kinds[1:]) == {inspect.Parameter.KEYWORD_ONLY}
    texts = documented(kind)
    assert list(texts) == list(taken)
    for parameter in known:
        assert taken[parameter.name].default == parameter.default
        default = f'"{parameter.default}"' if isinstance(parameter.default, str) else parameter.default
        assert texts[parameter.name] == (f"{parameter.type}, default={default}", parameter.about)


@pytest.mark.parametrize("entry", [e for e in ALL_KERNELS if e["name"] != "decomposable"], ids=lambda entry: entry["name"])
def test_signature_and_docstring_of_a_kernel_are_the_catalogues(entry):
    kind = KERNELS[entry["name"]]
    taken, texts = inspect.signature(kind).parameters, documented(kind)
    assert {name: parameter.default for name, parameter in taken.items()} == {
        p["name"]: p["default"] for p in entry["parameters"]
    }
    assert {name: about for name, (_, about) in texts.items()} == {p.name: p.about for p in parameters(entry)}


@pytest.mark.parametrize("entry", CATALOGUE["kernels"], ids=lambda entry: entry["name"])
def test_every_kernel_is_evaluated_planned_and_saved(entry, rows, tmp_path):
    kernel = KERNELS[entry["name"]]()
    X = rows[:60] / np.linalg.norm(rows[:60], axis=1, keepdims=True)
    K = kernel(X)
    assert K.shape == (60, 60) and np.linalg.eigvalsh(K).min() > -1e-10 * np.trace(K)
    assert bochner.plan(X, kernel, error=0.3, random_state=0, n_draws=1).choices
    model = bochner.exact.KernelRidge(kernel).fit(X, X[:, 0])
    model.save(tmp_path / "model")
    again = bochner.load(tmp_path / "model")
    assert again.kernel == kernel and np.array_equal(again.predict(X), model.predict(X))


@by_name
def test_every_map_goes_all_the_way(name, rows, tmp_path):
    features = FEATURES[name](random_state=0)
    Z = clone(features).fit(rows).transform(rows)
    fitted = features.fit(rows)
    assert np.array_equal(fitted.transform(rows), Z)
    assert fitted.exact_kernel(rows).shape == (200, 200)
    np.testing.assert_allclose(fitted.estimate(rows, rows[:50]), Z @ Z[:50].conj().T, atol=1e-12)
    error = np.linalg.norm(fitted.estimate(rows) - fitted.exact_kernel(rows)) / np.linalg.norm(fitted.exact_kernel(rows))
    assert error < 0.5
    model = FeatureRidge(clone(features)).fit(rows, np.sin(rows[:, 0]))
    model.save(tmp_path / "model")
    again = bochner.load(tmp_path / "model")
    assert repr(again) == repr(model)
    assert np.array_equal(again.predict(rows), model.predict(rows))


@by_name
def test_kernel_is_a_parameter_and_exact_kernel_the_matrix(name, rows):
    fitted = FEATURES[name](random_state=0).fit(rows)
    exact = fitted.exact_kernel
    assert str(inspect.signature(exact)).startswith("(X: 'ArrayLike', Y: 'ArrayLike | None' = None)")
    K = exact(rows)
    assert K.shape == (200, 200)
    np.testing.assert_allclose(exact(rows, rows[:50]), K[:, :50], rtol=1e-12, atol=1e-14)
    given = [p["default"] for p in MAPS[name]["parameters"] if p["name"] == "kernel"]
    assert [value for parameter, value in fitted.get_params().items() if parameter == "kernel"] == given
    assert not given or (fitted.kernel == given[0] and type(fitted.get_params()["kernel"]) is type(given[0]))
    # Version 0.1 had the matrix by this name; it goes in version 0.3.
    with pytest.warns(FutureWarning, match="exact_kernel"):
        assert np.array_equal(fitted.kernel(rows), K)
    with pytest.warns(FutureWarning, match="exact_kernel"):
        assert np.array_equal(fitted.kernel(rows, rows[:50]), exact(rows, rows[:50]))


def test_every_model_of_the_catalogue_has_its_class():
    assert set(KINDS) == {entry["name"] for entry in CATALOGUE["models"]}
    assert all(getattr(bochner.exact if kind.__module__ == "bochner.exact" else bochner, kind.__name__) is kind for kind in KINDS.values())
    assert {type(estimator) for estimator in ESTIMATORS} >= {*KINDS.values(), *FEATURES.values()}


@by_name
def test_domains_are_those_of_the_core(name, rows):
    entry = MAPS[name]
    for parameter in entry["parameters"]:
        if parameter["name"] in ELSEWHERE or "word" not in parameter["domain"]:
            continue
        with pytest.raises(ValueError, match=f"{parameter['name']} must be"):
            FEATURES[name](**{parameter["name"]: "nonsense"}).fit(rows)
    with pytest.raises(ValueError, match="n_components must be a whole number from 1 to 1073741824, got 0"):
        bochner._bochner.check("maps", name, '{"n_components": 0}')


def test_what_a_map_has_no_use_for_is_held_to_its_domain(rows):
    assert PolynomialSketch(16, gamma=0.0, coef0=1.0).fit_transform(rows).shape == (200, 16)
    with pytest.raises(ValueError, match="nu must be a positive finite number, got -1"):
        FourierFeatures(16, nu=-1.0).fit(rows)


def test_models_are_described_and_stubs_are_current():
    path = Path(__file__).parents[2] / "tools" / "python_stubs.py"
    spec = importlib.util.spec_from_file_location("python_stubs", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    stub = Path(__file__).parents[1] / "py_src" / "bochner" / "_signatures.pyi"
    assert stub.read_text() == module.stubs(), "run tools/python_stubs.py"
    assert all(parameter.about.endswith(".") for known in MODELS.values() for parameter in known)


def test_old_names_work_with_a_warning(rows):
    with pytest.warns(FutureWarning, match="centre is called center"):
        features = MaclaurinFeatures(33, centre=False)
    assert features.center is False
    with pytest.warns(FutureWarning, match="centre is called center"):
        assert features.set_params(centre=True).center is True
    with pytest.warns(FutureWarning, match="DivergenceFree"):
        assert kernels.DivFree is kernels.DivergenceFree
    with pytest.warns(FutureWarning, match="divergence_free"):
        bochner.OperatorRidge("div_free", n_components=16).fit(rows[:, :2], rows[:, 2:4])
    fitted = MaclaurinFeatures(17, kernel=[1.0, 1.0]).fit(rows)
    with pytest.warns(FutureWarning, match="exact_kernel"):
        assert np.array_equal(fitted.kernel(rows), fitted.exact_kernel(rows))
    with pytest.raises(TypeError, match="unexpected keyword argument 'nonsense'"):
        FourierFeatures(nonsense=1)
