"""Base classes that take the parameters of maps, models and kernels. Their types are in the stub file beside this one, which
`tools/python_stubs.py` writes.
"""

import functools
import inspect
import warnings
from dataclasses import field, make_dataclass
from typing import Any

from bochner._catalogue import CATALOGUE, camel, declared, parameters
from bochner._parameters import MAPS, MODELS, OPERATOR_FEATURES


def by_keyword(kind: Any) -> Any:
    """A kernel whose parameters are named: scikit-learn's of the same name has them in another order."""
    made = kind.__init__
    positions = inspect.signature(made).parameters.values()

    @functools.wraps(made)
    def __init__(self: Any, *given: Any, **named: Any) -> None:
        if given:
            name = type(self).__name__
            known = ", ".join(f"{p.name}=..." for p in list(positions)[1:])
            message = f"write {name}({known}): scikit-learn has another order, and positions go in version 0.3"
            warnings.warn(message, FutureWarning, stacklevel=2)
        made(self, *given, **named)

    named = [p if p.name == "self" else p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in positions]
    __init__.__signature__ = inspect.Signature(named, return_annotation=None)  # type: ignore[attr-defined]
    kind.__init__ = __init__
    return kind


for name, known in MAPS.items():
    globals()[f"{camel(name)}Map"] = declared(f"{camel(name)}Map", known, _map_name=name)
for name, known in MODELS.items():
    globals()[f"{camel(name)}Model"] = declared(f"{camel(name)}Model", known, _kind=name)
OperatorFeaturesMap = declared("OperatorFeaturesMap", OPERATOR_FEATURES, _map_name="operator")
for entry in CATALOGUE["kernels"] + CATALOGUE["operator_kernels"]:
    name, known = f"{camel(entry['name'])}Kernel", tuple(parameters(entry))
    if entry["name"] != "decomposable":
        globals()[name] = make_dataclass(
            name,
            [(p.name, p.annotation, field(default=p.default)) for p in known],
            frozen=True,
            # Values are judged by the core.
            namespace={
                "__post_init__": lambda self: self._check(),
                "__module__": __name__,
                "_name": entry["name"],
                "_about": entry["about"],
                "_parameters": known,
            },
        )
        # The only kernel with two parameters that scikit-learn has by the same name: there the length scale comes first.
        if entry["name"] == "matern":
            by_keyword(globals()[name])
