"""The ValidatingAdmissionPolicies about pods for direct mode: who writes decisions, and what is refused at creation.

The agent gives a container the CPUs and devices that the decision on its pod names. Only the scheduler writes it, with
a Binding, and `decisions` keeps it so: without this policy, users who may change pods could give themselves devices.
`objects` renders it with agents in direct mode.

`manifest` also refuses wrong annotations. CEL cannot read JSON, so it looks for the fields by regular expressions and
refuses what is surely wrong; the scheduler checks everything else, and names the field. `objects` renders it with the
scheduler, and `tools/rbacmanifest.py` writes it to examples/direct-mode-policy.yaml."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from numalign.api.attributes import devicespec, directresult, directspec
from numalign.deploy.rights import ADMISSION

NAME: Final = "numalign-direct-mode"
MAPPING: Final = r"^\\s*\\{(.|\\n)*\\}\\s*$"
WORDS: Final[tuple[tuple[str, str, Collection[str]], ...]] = (
    ("zones", "policy", directspec.POLICIES),
    ("zones", "scope", directspec.SCOPES),
    ("zones", "exclusive", directspec.EXCLUSIVE),
    ("zones", "strategy", directspec.STRATEGIES),
    ("zones", "memory", directspec.MEMORY),
    ("cpus", "required", directspec.BIND_POLICIES),
    ("cpus", "preferred", directspec.BIND_POLICIES),
    ("cpus", "exclusive", directspec.CPU_EXCLUSIONS),
)
"""Variable, field and its words."""
ANNOTATIONS: Final = {
    "zones": directspec.TOPOLOGY_SPEC,
    "cpus": directspec.CPU_SPEC,
    "devices": devicespec.DEVICE_SPEC,
}


def decisions(name: str) -> list[dict[str, Any]]:
    """The policy that keeps decisions as the scheduler wrote them, and its binding."""
    policy = {
        "failurePolicy": "Fail",
        # Annotations can be changed with the status, too.
        "matchConstraints": _constraints("pods", "pods/status"),
        "matchConditions": [{"name": "decided", "expression": _annotated([directresult.RESULT])}],
        "variables": _VERSIONS,
        "validations": [_decision()],
    }
    return _with_binding(name, policy)


def manifest(name: str = NAME) -> list[dict[str, Any]]:
    """The policy and its binding."""
    policy = {
        "failurePolicy": "Fail",
        "matchConstraints": _constraints("pods"),
        "matchConditions": [{"name": "annotated", "expression": _annotated((*directspec.SPECS, directresult.RESULT))}],
        "variables": [
            *_VERSIONS,
            *(
                {"name": variable, "expression": f"variables.now[?'{annotation}'].orValue('')"}
                for variable, annotation in ANNOTATIONS.items()
            ),
            {
                "name": "names",
                "expression": "object.spec.containers.map(c, c.name) + "
                "(has(object.spec.initContainers) ? object.spec.initContainers.map(c, c.name) : [])",
            },
            {
                "name": "excluded",
                "expression": r"""variables.zones.find('"exclude"\\s*:\\s*\\[[^\\]]*').findAll('"[^"]*"')"""
                """.filter(n, n != '"exclude"')""",
            },
        ],
        "validations": [
            *map(_shape, ANNOTATIONS),
            *(_words(*each) for each in WORDS),
            *_containers(),
            _whole_cpus(),
            _decision(),
        ],
    }
    return _with_binding(name, policy)


def _constraints(*resources: str) -> dict[str, Any]:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": [*resources]}
    return {"resourceRules": [rule]}


def _with_binding(name: str, policy: dict[str, Any]) -> list[dict[str, Any]]:
    binding = {"policyName": name, "validationActions": ["Deny"]}
    return [
        {"apiVersion": ADMISSION, "kind": kind, "metadata": {"name": name}, "spec": spec}
        for kind, spec in (("ValidatingAdmissionPolicy", policy), ("ValidatingAdmissionPolicyBinding", binding))
    ]


def _annotations(of: str) -> str:
    return f"(has({of}.metadata.annotations) ? {of}.metadata.annotations : {{}})"


def _annotated(names: Collection[str]) -> str:
    """Other pods cost no more than this."""
    listed = ", ".join(f"'{name}'" for name in names)
    old = f"(oldObject != null && '{directresult.RESULT}' in {_annotations('oldObject')})"
    return f"[{listed}].exists(n, n in {_annotations('object')}) || {old}"


_VERSIONS: Final = [
    {"name": "now", "expression": _annotations("object")},
    {"name": "before", "expression": f"oldObject != null ? {_annotations('oldObject')} : {{}}"},
]


def _field(variable: str, name: str = "") -> str:
    return f"metadata.annotations[{ANNOTATIONS[variable]}]" + (f".{name}" if name else "")


def _shape(variable: str) -> dict[str, str]:
    text = f"variables.{variable}"
    return {
        "expression": f"{text} == '' || (size({text}) <= {directspec.LONGEST} && {text}.matches('{MAPPING}'))",
        "message": f"{_field(variable)}: not a JSON object of at most {directspec.LONGEST} characters",
    }


def _words(variable: str, name: str, words: Collection[str]) -> dict[str, str]:
    """Every value of a field of this name, unless it is an object: a container may have the name."""
    start = rf'"{name}"\\s*:\\s*'
    found = f"variables.{variable}.findAll('{start}[^{{\\\\s][^,}}]*')"
    return {
        "expression": f"{found}.all(f, f.matches('^{start}\"({'|'.join(words)})\"\\\\s*$'))",
        "message": f"{_field(variable, name)}: not one of {', '.join(words)}",
    }


def _containers() -> list[dict[str, str]]:
    at = _field("zones", "containers.exclude")
    return [
        {
            "expression": """variables.excluded.all(n, variables.names.exists(c, '"' + c + '"' == n))""",
            "message": f"{at}: the pod has no container of one of these names",
        },
        {
            "expression": """!variables.names.all(c, ('"' + c + '"') in variables.excluded)""",
            "message": f"{at}: every container is excluded",
        },
    ]


def _whole_cpus() -> dict[str, str]:
    requests = "has(c.resources) && has(c.resources.requests) && 'cpu' in c.resources.requests"
    whole = "string(c.resources.requests['cpu']).matches('^[0-9]+(000m)?$')"
    each = f"""('"' + c.name + '"') in variables.excluded || !({requests}) || {whole}"""
    init = f"(!has(object.spec.initContainers) || object.spec.initContainers.all(c, {each}))"
    return {
        "expression": f"""!variables.cpus.matches('"required"') || (object.spec.containers.all(c, {each}) && {init})""",
        "message": f"{_field('cpus', 'required')}: a container that is not excluded requests no whole number of CPUs",
    }


def _decision() -> dict[str, str]:
    name = directresult.RESULT
    return {
        "expression": f"variables.now[?'{name}'].orValue('') == variables.before[?'{name}'].orValue('')",
        "message": f"metadata.annotations[{name}]: only the scheduler writes it, when it binds the pod",
        "reason": "Forbidden",
    }
