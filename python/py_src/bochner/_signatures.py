"""Base classes that take the parameters of maps, models and kernels. Their types are in the stub file beside this one, which
`tools/python_stubs.py` writes.
"""

from dataclasses import field, make_dataclass

from bochner._catalogue import CATALOGUE, camel, declared, parameters
from bochner._parameters import MAPS, MODELS, OPERATOR_FEATURES

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
