"""Custom resource definitions that tests write to a server, ours or the real one."""

from __future__ import annotations

from typing import Any

Tree = dict[str, Any]

TEXT = {"type": "string"}
AMOUNT = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "pattern": r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?[0-9]+))?$",
    "x-kubernetes-int-or-string": True,
}


def struct(required: str, **fields: Tree) -> Tree:
    return {"type": "object", "properties": fields, **({"required": required.split()} if required else {})}


def listed(items: Tree, **more: Any) -> Tree:
    return {"type": "array", "items": items, **more}


def version(name: str, schema: Tree, *, storage: bool, **more: Any) -> Tree:
    return {"name": name, "served": True, "storage": storage, "schema": {"openAPIV3Schema": schema}, **more}


def definition(group: str, kind: str, plural: str, scope: str, versions: list[Tree]) -> Tree:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{group}",
            "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes/enhancements/pull/1870"},
        },
        "spec": {"group": group, "scope": scope, "names": {"plural": plural, "kind": kind}, "versions": versions},
    }


PAIR = struct("name value", name=TEXT, value=TEXT)
RESOURCE = struct(
    "allocatable available capacity name", name=TEXT, allocatable=AMOUNT, available=AMOUNT, capacity=AMOUNT
)
COST = struct("name value", name=TEXT, value={"type": "integer", "format": "int64"})
ZONE = struct(
    "name type",
    name=TEXT,
    type=TEXT,
    parent=TEXT,
    costs=listed(COST),
    attributes=listed(PAIR),
    resources=listed(RESOURCE),
)
OLD_REPORT = struct("topologyPolicies zones", topologyPolicies=listed(TEXT), zones=listed(ZONE))
REPORT = struct("zones", topologyPolicies=listed(TEXT), attributes=listed(PAIR), zones=listed(ZONE))

REPORTS = definition(
    "topology.node.k8s.io",
    "NodeResourceTopology",
    "noderesourcetopologies",
    "Cluster",
    [version("v1alpha1", OLD_REPORT, storage=False), version("v1alpha2", REPORT, storage=True)],
)

FREE = {"x-kubernetes-preserve-unknown-fields": True}
THING = struct(
    "",
    set=listed(TEXT, **{"x-kubernetes-list-type": "set"}),
    named=listed(
        struct("name", name=TEXT, a=TEXT, b=TEXT),
        **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    ),
    whole={**struct("", a=TEXT, b=TEXT), "x-kubernetes-map-type": "atomic"},
    parts={"type": "object", "additionalProperties": TEXT},
    free=FREE,
    either={"x-kubernetes-int-or-string": True},
)
THINGS = definition(
    "ex.com",
    "Thing",
    "things",
    "Namespaced",
    [
        version(
            "v1",
            struct("", spec=THING, status=struct("", a=TEXT, b=TEXT)),
            storage=True,
            subresources={"status": {}},
        )
    ],
)

CONDITION = struct(
    "lastTransitionTime message reason status type",
    lastTransitionTime={"type": "string", "format": "date-time"},
    message={"type": "string", "maxLength": 32768},
    observedGeneration={"type": "integer", "format": "int64", "minimum": 0},
    reason={"type": "string", "minLength": 1, "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"},
    status={"type": "string", "enum": ["True", "False", "Unknown"]},
    type=TEXT,
)
POD_SET = struct(
    "count podTemplateRef", count={"type": "integer", "minimum": 1}, podTemplateRef=struct("name", name=TEXT)
)
PROVISIONING_REQUESTS = definition(
    "autoscaling.x-k8s.io",
    "ProvisioningRequest",
    "provisioningrequests",
    "Namespaced",
    [
        version(
            "v1",
            struct(
                "spec",
                spec=struct(
                    "podSets provisioningClassName",
                    podSets=listed(POD_SET, minItems=1, maxItems=32),
                    provisioningClassName=TEXT,
                    parameters={"type": "object", "additionalProperties": {"type": "string", "maxLength": 255}},
                ),
                status=struct(
                    "",
                    conditions=listed(
                        CONDITION, **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}
                    ),
                ),
            ),
            storage=True,
            subresources={"status": {}},
        )
    ],
)

# One field for every rule that a schema can have.
ALTERNATIVES: list[Tree] = [{"required": ["a"]}, {"required": ["b"]}]
AB: Tree = {"type": "object", "properties": {"a": TEXT, "b": TEXT}}
SAMPLE_FIELDS: dict[str, Tree] = {
    "s": {"type": "string", "minLength": 2, "maxLength": 4, "pattern": "^a.*$"},
    "i": {"type": "integer", "minimum": 1, "maximum": 10, "multipleOf": 2},
    "x": {"type": "number", "minimum": 1, "exclusiveMinimum": True, "maximum": 10, "exclusiveMaximum": True},
    "b": {"type": "boolean"},
    "e": {"type": "string", "enum": ["A", "B"]},
    "ei": {"type": "integer", "enum": [1, 2]},
    "ios": {"x-kubernetes-int-or-string": True},
    "l": {"type": "array", "items": TEXT, "minItems": 1, "maxItems": 2},
    "set": {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"},
    "ml": {
        "type": "array",
        "items": {"type": "object", "properties": {"name": TEXT, "v": {"type": "integer"}}, "required": ["name"]},
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    },
    "o": {"type": "object", "properties": {"r": TEXT, "q": {"type": "string", "default": "qq"}}, "required": ["r"]},
    "m": {"type": "object", "additionalProperties": {"type": "integer"}, "minProperties": 1, "maxProperties": 2},
    "n": {"type": "string", "nullable": True},
    "dt": {"type": "string", "format": "date-time"},
    "ip": {"type": "string", "format": "ipv4"},
    "i32": {"type": "integer", "format": "int32"},
    "p": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "any": {"x-kubernetes-preserve-unknown-fields": True},
    "er": {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
    "ao": {**AB, "anyOf": ALTERNATIVES},
    "oo": {**AB, "oneOf": ALTERNATIVES},
    "al": {"type": "integer", "allOf": [{"minimum": 5}, {"maximum": 7}]},
    "no": {"type": "string", "not": {"enum": ["bad"]}},
    "byte": {"type": "string", "format": "byte"},
    "dur": {"type": "string", "format": "duration"},
}
SAMPLE = struct("spec", spec=struct("", **SAMPLE_FIELDS))
SAMPLES = definition("ex.com", "Sample", "samples", "Namespaced", [version("v1", SAMPLE, storage=True)])

KOORDINATOR_DEVICES = definition(
    "scheduling.koordinator.sh",
    "Device",
    "devices",
    "Cluster",
    [version("v1alpha1", {"type": "object", "x-kubernetes-preserve-unknown-fields": True}, storage=True)],
)
