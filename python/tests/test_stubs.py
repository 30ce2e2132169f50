"""The stub file says what the module has: names, members, parameters and their defaults."""

import ast
import inspect
from pathlib import Path

import bochner
from bochner import _bochner

STUB = ast.parse((Path(bochner.__file__).parent / "_bochner.pyi").read_text())


def public(names):
    return {name for name in names if not name.startswith("_")}


def stub_parameters(function):
    arguments = function.args
    names = [argument.arg for argument in arguments.args if argument.arg not in ("self", "cls")]
    defaults = [ast.literal_eval(default) for default in arguments.defaults]
    return names, defaults


def real_parameters(function):
    parameters = [p for p in inspect.signature(function).parameters.values() if p.name not in ("self", "cls")]
    return [p.name for p in parameters], [p.default for p in parameters if p.default is not p.empty]


def stub_functions(body):
    return {node.name: node for node in body if isinstance(node, ast.FunctionDef)}


def test_stub_names_what_the_module_has():
    named = set()
    for node in STUB.body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            named.add(node.name)
        elif isinstance(node, ast.AnnAssign):
            named.add(node.target.id)
    assert public(named) == public(dir(_bochner))


def test_stub_functions_have_the_parameters_of_the_module():
    for name, node in stub_functions(STUB.body).items():
        assert stub_parameters(node) == real_parameters(getattr(_bochner, name)), name


def test_stub_classes_have_the_members_of_the_module():
    for node in STUB.body:
        if not isinstance(node, ast.ClassDef):
            continue
        real = getattr(_bochner, node.name)
        if issubclass(real, Exception):
            assert issubclass(real, eval(node.bases[0].id)), node.name
            continue
        functions = stub_functions(node.body)
        assert public(functions) == public(vars(real)), node.name
        for name, function in functions.items():
            if name == "__new__":
                assert stub_parameters(function) == real_parameters(real), node.name
            elif any(getattr(d, "id", None) == "property" for d in function.decorator_list):
                assert not callable(inspect.getattr_static(real, name)), f"{node.name}.{name}"
            else:
                assert stub_parameters(function) == real_parameters(getattr(real, name)), f"{node.name}.{name}"
