"""CustomResourceDefinitions that an installation brings.

`render` installs them; the simulator, the lab and tests take the definition of NodeResourceTopology from here, too.
There both versions are served, v1alpha2 is stored, all lists are atomic, and there is no status subresource (exporter
spec 1.1 to 1.6)."""

from typing import Any, Final

from numalign.api.nrt import wire

Tree = dict[str, Any]

PLURAL: Final = "noderesourcetopologies"
QUANTITY_PATTERN: Final = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
TEXT: Final[Tree] = {"type": "string"}
APPROVED: Final = "https://github.com/kubernetes/enhancements/pull/1870"


def node_resource_topologies() -> Tree:
    names = {
        "kind": wire.KIND,
        "listKind": f"{wire.KIND}List",
        "plural": PLURAL,
        "singular": "noderesourcetopology",
        "shortNames": ["node-res-topo"],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{wire.GROUP}", "annotations": {"api-approved.kubernetes.io": APPROVED}},
        "spec": {
            "group": wire.GROUP,
            "names": names,
            "scope": "Cluster",
            "versions": [
                _version(wire.V1ALPHA1, ["topologyPolicies", "zones"], {}),
                _version(wire.V1ALPHA2, ["zones"], {"attributes": _list(_attribute())}),
            ],
        },
    }


def _version(name: str, required: list[str], more: Tree) -> Tree:
    properties = {
        "apiVersion": TEXT,
        "kind": TEXT,
        "metadata": {"type": "object"},
        "topologyPolicies": _list(TEXT),
        "zones": _list(_zone()),
    }
    schema = {"type": "object", "required": required, "properties": properties | more}
    stored = name == wire.V1ALPHA2
    return {
        "name": name,
        "served": True,
        "storage": stored,
        "schema": {"openAPIV3Schema": schema},
        "additionalPrinterColumns": _columns(by_attributes=stored),
    }


def _columns(*, by_attributes: bool) -> list[Tree]:
    """What `kubectl get noderesourcetopologies` shows. JSONPath finds single values, so zones are not counted."""
    attribute = '.attributes[?(@.name=="{}")].value'
    policies = (
        [
            _column("Policy", attribute.format("topologyManagerPolicy"), "Topology Manager policy"),
            _column("Scope", attribute.format("topologyManagerScope"), "Topology Manager scope"),
        ]
        if by_attributes
        else [_column("Policy", ".topologyPolicies[0]", "Topology Manager policy and scope")]
    )
    free = '.zones[{}].resources[?(@.name=="cpu")].available'
    cpus = [
        _column(f"Free-CPU-{number + 1}", free.format(number), f"Free CPUs of the {place} NUMA zone in the report")
        for number, place in enumerate(("first", "second"))
    ]
    beat = ".metadata.annotations.numalign\\.io/heartbeat"
    return [
        *policies,
        *cpus,
        _column("Heartbeat", beat, "Time since numalign's agent last wrote the report", "date"),
        _column("Age", ".metadata.creationTimestamp", "Time since the report was created", "date"),
    ]


def _column(name: str, path: str, description: str, kind: str = "string") -> Tree:
    return {"name": name, "type": kind, "jsonPath": path, "description": description}


def _zone() -> Tree:
    cost = _object(["name", "value"], name=TEXT, value={"type": "integer", "format": "int64"})
    amounts = dict.fromkeys(("capacity", "allocatable", "available"), _quantity())
    resource = _object(["allocatable", "available", "capacity", "name"], name=TEXT, **amounts)
    return _object(
        ["name", "type"],
        name=TEXT,
        type=TEXT,
        parent=TEXT,
        costs=_list(cost),
        attributes=_list(_attribute()),
        resources=_list(resource),
    )


def _attribute() -> Tree:
    return _object(["name", "value"], name=TEXT, value=TEXT)


def _quantity() -> Tree:
    return {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "pattern": QUANTITY_PATTERN,
        "x-kubernetes-int-or-string": True,
    }


def _object(required: list[str], **properties: Tree) -> Tree:
    return {"type": "object", "required": required, "properties": properties}


def _list(items: Tree) -> Tree:
    return {"type": "array", "items": items}


def every() -> list[Tree]:
    """The definitions of an installation."""
    return [node_resource_topologies()]
