"""Examples in docstrings run, and everything public has one."""

import doctest
import importlib
import inspect
import pkgutil

import pytest

import bochner
from bochner import _catalogue

PUBLIC = [bochner, bochner.exact, bochner.kernels, bochner.metrics, bochner.plot, bochner.stats]
# That of torch is tested where torch is, by test_torch.py.
NAMES = [module.name for module in pkgutil.iter_modules(bochner.__path__) if module.name != "torch"]
MODULES = [bochner.__name__, *(f"bochner.{name}" for name in NAMES)]


@pytest.mark.parametrize("name", MODULES)
def test_examples_give_what_they_show(name):
    results = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert results.failed == 0


@pytest.mark.parametrize("module", PUBLIC, ids=lambda m: m.__name__)
def test_everything_public_is_documented_with_an_example(module):
    for name in module.__all__:
        thing = getattr(module, name)
        if not callable(thing) or (inspect.isclass(thing) and issubclass(thing, Exception)):
            continue
        if thing in (bochner.kernels.Kernel, bochner.kernels.OperatorKernel):
            continue
        text = inspect.getdoc(thing)
        assert "Examples\n--------\n>>>" in text, name
        documented = text.split("Parameters\n----------\n")[1].split("\n\n")[0]
        for parameter in inspect.signature(thing).parameters:
            assert f"{parameter} :" in documented, f"{name}: {parameter}"


@pytest.mark.parametrize("estimator", [bochner.AutoRegressor(), bochner.FourierFeatures(), bochner.exact.KernelRidge()], ids=repr)
def test_notebooks_link_an_estimator_to_its_page(estimator, monkeypatch):
    monkeypatch.setattr(_catalogue, "_address", lambda: "")
    assert "href" not in estimator._repr_html_()
    monkeypatch.setattr(_catalogue, "_address", lambda: "https://example.org/guide")
    module = "bochner.exact" if isinstance(estimator, bochner.exact.KernelRidge) else "bochner"
    page = f"https://example.org/guide/generated/reference/{module}.{type(estimator).__name__}.html"
    assert f'href="{page}"' in estimator._repr_html_()
