"""The stub file of `bochner._signatures`, from the catalogue: what editors and mypy know of parameters.

    python tools/python_stubs.py > python/py_src/bochner/_signatures.pyi
"""

from dataclasses import is_dataclass
from inspect import signature

from bochner import _signatures

HEAD = '''"""Parameters of maps, models and kernels. Written by tools/python_stubs.py from the catalogue."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from numpy.typing import ArrayLike

from bochner._base import FeatureTransformer
from bochner._catalogue import Parameter
from bochner._checks import RandomState
from bochner.kernels import Kernel, OperatorKernel
'''


def stub(name: str, base: type) -> str:
    known = base._parameters
    lines = ["", f"class {name}:", "    _parameters: ClassVar[tuple[Parameter, ...]]"]
    if is_dataclass(base):
        named = ", kw_only=True" if "*" in str(signature(base)) else ""
        lines = ["", f"@dataclass(frozen=True{named})", *lines[1:], "    _name: ClassVar[str]", "    _about: ClassVar[str]"]
        return "\n".join([*lines, *(f"    {p.name}: {p.annotation} = {written(p.default)}" for p in known)])
    lines += ["    _map_name: ClassVar[str]"] if name.endswith("Map") else []
    lines += [f"    {p.name}: {p.annotation}" for p in known]
    taken = [f"{p.name}: {p.annotation} = {written(p.default)}" for p in known]
    kinds = [parameter.kind for parameter in base.__init__.__signature__.parameters.values()]
    # Without `self`.
    taken.insert(kinds.index(kinds[-1].KEYWORD_ONLY) - 1, "*")
    return "\n".join([*lines, f"    def __init__(self, {', '.join(taken)}) -> None: ..."])


def written(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def stubs() -> str:
    bases = {name: base for name, base in vars(_signatures).items() if isinstance(base, type) and hasattr(base, "_parameters")}
    return "\n".join([HEAD, *(stub(name, base) for name, base in bases.items())]) + "\n"


if __name__ == "__main__":
    print(stubs(), end="")
