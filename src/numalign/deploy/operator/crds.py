"""The CustomResourceDefinitions of the two kinds, with OpenAPI schemas, CEL rules and printer columns.

`deploy render --component operator` prints them. The API server rejects what the schemas and rules exclude; the
operator checks the same again (`groups`, `schedulers`), because the definitions of another project may be installed
instead."""

from typing import Any, Final

from numalign.deploy.operator import kinds
from numalign.deploy.operator.kinds import Custom

Tree = dict[str, Any]

TEXT: Final[Tree] = {"type": "string"}
NUMBER: Final[Tree] = {"type": "integer", "format": "int64"}
MOST_GROUPS: Final = 128
MOST_ANNOTATIONS: Final = 8
# What Go's time.ParseDuration reads; the reference declares no pattern and fails later.
DURATION: Final[Tree] = {
    "type": "string",
    "maxLength": 64,
    "pattern": r"^-?(([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+|0)$",
}
NOT_NEGATIVE: Final = {"rule": "duration(self) >= duration('0s')", "message": "must not be negative"}
ONE_SPECIFIER: Final = {
    "rule": "[has(self.poolName), has(self.machineConfigPoolSelector), has(self.nodeSelector)]"
    ".filter(given, given).size() == 1",
    "message": "exactly one of poolName, machineConfigPoolSelector and nodeSelector is needed",
}
NAMED: Final = {
    "rule": "has(self.nodeSelector) == has(self.name)",
    "message": "name goes with nodeSelector, and only with it",
}


def definitions() -> list[Tree]:
    return [
        _definition(kinds.OPERATOR, _operator(), OPERATOR_COLUMNS),
        _definition(kinds.SCHEDULER, _scheduler(), SCHEDULER_COLUMNS),
    ]


def _column(name: str, path: str, words: str, **more: Any) -> Tree:
    return {"name": name, "type": "string", "jsonPath": path, "description": words} | more


READY: Final = _column("Ready", '.status.conditions[?(@.type=="Available")].status', "Whether all operands are ready.")
REASON: Final = _column("Reason", ".status.reason", "The reason of the condition that holds.")
AGE: Final = _column("Age", ".metadata.creationTimestamp", "Time since the object was created.", type="date")
OPERATOR_COLUMNS: Final = [READY, REASON, _column("Nodes", ".status.nodes", "Ready agents of the wanted ones."), AGE]
SCHEDULER_COLUMNS: Final = [
    READY,
    REASON,
    _column("Nodes", ".status.replicas", "Ready replicas of the wanted ones."),
    _column("Scheduler", ".status.schedulerName", "The schedulerName that pods ask for."),
    AGE,
]


def _definition(custom: Custom, schemas: tuple[Tree, Tree], columns: list[Tree]) -> Tree:
    spec, status = schemas
    schema = _object(
        apiVersion=TEXT,
        kind=TEXT,
        metadata={"type": "object"},
        spec=spec,
        status=status,
    ) | {
        "x-kubernetes-validations": [
            {
                "rule": f"self.metadata.name == '{custom.name}'",
                "message": f"the only name of a {custom.kind} is {custom.name}",
            }
        ]
    }
    version = {
        "name": kinds.VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
        "additionalPrinterColumns": columns,
    }
    names = {
        "kind": custom.kind,
        "listKind": f"{custom.kind}List",
        "plural": custom.plural,
        "singular": custom.kind.lower(),
        "shortNames": [custom.short],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{custom.plural}.{kinds.GROUP}"},
        "spec": {"group": kinds.GROUP, "names": names, "scope": "Cluster", "versions": [version]},
    }


def _operator() -> tuple[Tree, Tree]:
    config = _config()
    group = _object(
        name={
            "type": "string",
            "minLength": 1,
            "maxLength": kinds.LONGEST_GROUP_NAME,
            "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
        },
        poolName={"type": "string", "minLength": 1, "maxLength": 63},
        machineConfigPoolSelector=_selector(),
        nodeSelector=_selector(),
        annotations=_texts() | {"maxProperties": MOST_ANNOTATIONS},
        config=config,
    ) | {"x-kubernetes-validations": [ONE_SPECIFIER, NAMED]}
    exclude = _object(namespace=TEXT, name=TEXT)
    spec = _object(
        nodeGroups=_list(group) | {"maxItems": MOST_GROUPS},
        imageSpec=TEXT,
        logLevel=_one_of("Normal", "Debug", "Trace", "TraceAll", default="Normal"),
        podExcludes=_list(exclude),
    )
    place = _object(namespace=TEXT, name=TEXT)
    status = _status(
        nodes=TEXT,
        daemonsets=_list(place),
        machineconfigpools=_list(_object(name=TEXT, config=config)),
        nodeGroups=_list(_object(daemonsets=place, config=config, selector=TEXT, nodes=NUMBER, ready=NUMBER)),
        removedNodeGroups=_list(_object(name=TEXT, selector=_selector())),
    )
    return spec, status


def _scheduler() -> tuple[Tree, Tree]:
    resource = _object(["name"], name=TEXT, weight=NUMBER | {"minimum": 1})
    spec = _object(
        imageSpec=TEXT,
        schedulerName={"type": "string", "maxLength": 253},
        logLevel=_one_of("Normal", "Debug", "Trace", "TraceAll", default="Normal"),
        cacheResyncPeriod=_duration(),
        cacheResyncDebug=_one_of("Disabled", "DumpJSONFile"),
        schedulerInformer=_one_of("Shared", "Dedicated"),
        cacheResyncDetection=_one_of("Relaxed", "Aggressive"),
        scoringStrategy=_object(
            type=_one_of("MostAllocated", "BalancedAllocation", "LeastAllocated", default="LeastAllocated"),
            resources=_list(resource),
        ),
        preemptionMode=_one_of("Enabled", "Disabled"),
        replicas={"type": "integer", "format": "int32", "minimum": 0},
    )
    status = _status(
        deployment=_object(namespace=TEXT, name=TEXT),
        schedulerName=TEXT,
        formerSchedulerNames=_list(TEXT),
        cacheResyncPeriod=TEXT,
        replicas=TEXT,
    )
    return spec, status


def _config() -> Tree:
    toleration = _object(key=TEXT, operator=TEXT, value=TEXT, effect=TEXT, tolerationSeconds=NUMBER)
    return _object(
        podsFingerprinting=_one_of("Disabled", "Enabled", "EnabledExclusiveResources"),
        infoRefreshMode=_one_of("Periodic", "Events", "PeriodicAndEvents"),
        infoRefreshPeriod=_duration(),
        infoRefreshPause=_one_of("Disabled", "Enabled"),
        tolerations=_list(toleration),
    )


def _status(**fields: Tree) -> Tree:
    related = _object(group=TEXT, resource=TEXT, namespace=TEXT, name=TEXT)
    condition = _object(
        ["type", "status", "reason", "message", "lastTransitionTime"],
        type=TEXT,
        status=_one_of("True", "False", "Unknown"),
        reason=TEXT,
        message=TEXT,
        lastTransitionTime={"type": "string", "format": "date-time"},
        observedGeneration=NUMBER,
    )
    conditions = _list(condition) | {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}
    return _object(
        observedGeneration=NUMBER,
        reason=TEXT,
        conditions=conditions,
        relatedObjects=_list(related),
        **fields,
    )


def _selector() -> Tree:
    requirement = _object(["key", "operator"], key=TEXT, operator=TEXT, values=_list(TEXT))
    return _object(matchLabels=_texts(), matchExpressions=_list(requirement))


def _duration() -> Tree:
    return DURATION | {"x-kubernetes-validations": [NOT_NEGATIVE]}


def _one_of(*values: str, default: str = "") -> Tree:
    return {"type": "string", "enum": [*values]} | ({"default": default} if default else {})


def _texts() -> Tree:
    return {"type": "object", "additionalProperties": TEXT}


def _object(required: list[str] | None = None, /, **properties: Tree) -> Tree:
    return {"type": "object", "properties": properties} | ({"required": required} if required else {})


def _list(items: Tree) -> Tree:
    return {"type": "array", "items": items}
