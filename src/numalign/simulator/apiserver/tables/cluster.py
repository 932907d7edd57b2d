"""The columns of cluster objects: nodes, namespaces, events, leases, RBAC, services, storage, custom resources."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from numalign.api.decode import quantity
from numalign.simulator.apiserver.defaults.kinds import OLD_CLASS
from numalign.simulator.apiserver.tables import columns
from numalign.simulator.apiserver.tables.columns import (
    AGE,
    NONE,
    UNSET,
    TableColumn,
    TableLayout,
    booleans,
    integers,
    items,
    name,
    named,
    part,
    wide,
)
from numalign.simulator.trees import Tree

ROLE_PREFIX: Final = "node-role.kubernetes.io/"
ROLE_LABEL: Final = "kubernetes.io/role"
SUBJECTS: Final = ("User", "Group", "ServiceAccount")
EVENT_COLUMNS: Final = (
    *map(TableColumn, ("Last Seen", "Type", "Reason", "Object")),
    *wide("Subobject", "Source"),
    TableColumn("Message"),
    *wide("First Seen", "Count"),
    TableColumn("Name", priority=1, format="name"),
)
DEFINITION: Final = named(
    "Scope",
    "Versions",
    TableColumn("Created At", "date"),
    *wide("Group", "Kind", "ShortNames"),
    TableColumn("Established", "boolean", priority=1),
)
NODE_WIDE: Final = wide("Internal-IP", "External-IP", "OS-Image", "Kernel-Version", "Container-Runtime")
SHOWN_ENDPOINTS: Final = 3
SERVICE: Final = named("Type", "Cluster-IP", "External-IP", "Port(s)", AGE, *wide("Selector"))
ACCESS_MODES: Final = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
VOLUME: Final = ("Capacity", "Access Modes", "Reclaim Policy", "Status", "Claim", "StorageClass")
CLAIM: Final = ("Status", "Volume", "Capacity", "Access Modes", "StorageClass", "VolumeAttributesClass")
STORAGE: Final = "storage.k8s.io"


def node(tree: Tree, now: datetime) -> list[Any]:
    info = part(part(tree, "status"), "nodeInfo")
    kernel = info.get("kernelVersion") or columns.UNKNOWN
    return [
        name(tree),
        _node_state(tree),
        ",".join(_roles(part(tree["metadata"], "labels"))) or NONE,
        columns.age(tree, now),
        info.get("kubeletVersion", ""),
        _address(tree, "InternalIP"),
        _address(tree, "ExternalIP"),
        info.get("osImage") or columns.UNKNOWN,
        f"{kernel} ({info['architecture']})" if info.get("architecture") else kernel,
        info.get("containerRuntimeVersion") or columns.UNKNOWN,
    ]


def _node_state(tree: Tree) -> str:
    ready = [each for each in items(part(tree, "status"), "conditions") if each.get("type") == "Ready"]
    state = "Unknown" if not ready else "Ready" if ready[-1].get("status") == "True" else "NotReady"
    return f"{state},SchedulingDisabled" if part(tree, "spec").get("unschedulable") else state


def _roles(labels: Tree) -> list[str]:
    roles = {key.removeprefix(ROLE_PREFIX) for key in labels if key.startswith(ROLE_PREFIX)}
    return sorted(filter(None, roles | {labels.get(ROLE_LABEL, "")}))


def _address(tree: Tree, kind: str) -> str:
    addresses = items(part(tree, "status"), "addresses")
    return next((str(each.get("address", "")) for each in addresses if each.get("type") == kind), NONE)


def event(tree: Tree, now: datetime) -> list[Any]:
    """Of both groups: events.k8s.io has other names for the same fields."""
    about, series = part(tree, "involvedObject") or part(tree, "regarding"), part(tree, "series")
    first = tree.get("firstTimestamp") or tree.get("deprecatedFirstTimestamp") or tree.get("eventTime")
    last = tree.get("lastTimestamp") or tree.get("deprecatedLastTimestamp") or first
    count = tree.get("count") or tree.get("deprecatedCount") or 1
    kind = str(about.get("kind", "")).lower()
    return [
        columns.age_since(series.get("lastObservedTime") if series else last, now),
        tree.get("type", ""),
        tree.get("reason", ""),
        f"{kind}/{about['name']}" if about.get("name") else kind,
        about.get("fieldPath", ""),
        _source(tree),
        str(tree.get("message") or tree.get("note", "")).strip(),
        columns.age_since(first, now),
        series.get("count", 0) if series else count,
        name(tree),
    ]


def _source(tree: Tree) -> str:
    source = part(tree, "source") or part(tree, "deprecatedSource")
    component = source.get("component") or tree.get("reportingComponent") or tree.get("reportingController", "")
    host = source.get("host") or tree.get("reportingInstance", "")
    return f"{component}, {host}" if host else str(component)


def role_binding(tree: Tree, now: datetime) -> list[Any]:
    role = part(tree, "roleRef")
    cells = [name(tree), f"{role.get('kind', '')}/{role.get('name', '')}", columns.age(tree, now)]
    return [*cells, *(", ".join(_subjects(tree, kind)) for kind in SUBJECTS)]


def _subjects(tree: Tree, kind: str) -> list[str]:
    subjects = [each for each in items(tree, "subjects") if each.get("kind") == kind]
    if kind == "ServiceAccount":
        return [f"{each.get('namespace', '')}/{each.get('name', '')}" for each in subjects]
    return [each.get("name", "") for each in subjects]


def quota(tree: Tree, now: datetime) -> list[Any]:
    status = part(tree, "status")
    used = part(status, "used")
    amounts = [
        f"{each}: {_amount(used.get(each))}/{_amount(hard)}" for each, hard in sorted(part(status, "hard").items())
    ]
    limits = [text for text in amounts if text.startswith("limits.")]
    requests = [text for text in amounts if not text.startswith("limits.")]
    return [name(tree), ", ".join(requests), ", ".join(limits), columns.age(tree, now)]


def _amount(written: Any) -> str:
    return str(quantity.parse(written)) if written is not None else "0"


def priority_class(tree: Tree, now: datetime) -> list[Any]:
    cells = [name(tree), tree.get("value", 0), bool(tree.get("globalDefault")), columns.age(tree, now)]
    return [*cells, tree.get("preemptionPolicy", "")]


def definition(tree: Tree, now: datetime) -> list[Any]:
    spec, names = part(tree, "spec"), part(part(tree, "spec"), "names")
    served = [each for each in items(spec, "versions") if each.get("served")]
    versions = sorted(f"{each['name']}(storage)" if each.get("storage") else each["name"] for each in served)
    return [
        name(tree),
        spec.get("scope", ""),
        ",".join(versions),
        tree["metadata"].get("creationTimestamp", ""),
        spec.get("group", ""),
        names.get("kind", ""),
        ",".join(items(names, "shortNames")),
        columns.is_true(items(part(tree, "status"), "conditions"), "Established"),
    ]


def aged(cells: Callable[[Tree], list[Any]]) -> columns.Row:
    """The row of a simple kind: name, its own cells, age."""
    return lambda tree, now: [name(tree), *cells(tree), columns.age(tree, now)]


EVENT: Final = TableLayout(EVENT_COLUMNS, event)
BINDING: Final = TableLayout(named("Role", AGE, *wide("Users", "Groups", "ServiceAccounts")), role_binding)

LAYOUTS: Final = {
    ("", "Node"): TableLayout(named("Status", "Roles", AGE, "Version", *NODE_WIDE), node),
    ("", "Event"): EVENT,
    ("events.k8s.io", "Event"): EVENT,
    ("rbac.authorization.k8s.io", "RoleBinding"): BINDING,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): BINDING,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): TableLayout(DEFINITION, definition),
    ("node.k8s.io", "RuntimeClass"): TableLayout(named("Handler", AGE), aged(lambda tree: [tree.get("handler", "")])),
    ("", "ResourceQuota"): TableLayout(named("Request", "Limit", AGE), quota),
    ("scheduling.k8s.io", "PriorityClass"): TableLayout(
        named(*integers("Value"), *booleans("Global-Default"), AGE, "PreemptionPolicy"), priority_class
    ),
    ("", "Namespace"): TableLayout(named("Status", AGE), aged(lambda tree: [part(tree, "status").get("phase", "")])),
    ("", "ConfigMap"): TableLayout(
        named("Data", AGE), aged(lambda tree: [len(part(tree, "data")) + len(part(tree, "binaryData"))])
    ),
    ("", "Secret"): TableLayout(
        named("Type", "Data", AGE), aged(lambda tree: [tree.get("type", ""), len(part(tree, "data"))])
    ),
    ("", "ServiceAccount"): TableLayout(named(AGE), aged(lambda tree: [])),
    ("coordination.k8s.io", "Lease"): TableLayout(
        named("Holder", AGE), aged(lambda tree: [part(tree, "spec").get("holderIdentity", "")])
    ),
}


def service(tree: Tree, now: datetime) -> list[Any]:
    spec = part(tree, "spec")
    addresses = items(spec, "clusterIPs")
    return [
        name(tree),
        spec.get("type", ""),
        addresses[0] if addresses else NONE,
        _external(spec, part(tree, "status")),
        ",".join(map(_port, items(spec, "ports"))) or NONE,
        columns.age(tree, now),
        columns.labels(spec.get("selector")),
    ]


def _external(spec: Tree, status: Tree) -> str:
    own = items(spec, "externalIPs")
    if spec.get("type") == "ExternalName":
        return str(spec.get("externalName", ""))
    if spec.get("type") != "LoadBalancer":
        return ",".join(own) or NONE
    entries = items(part(status, "loadBalancer"), "ingress")
    balanced = sorted({each.get("ip") or each.get("hostname", "") for each in entries} - {""})
    return ",".join([*balanced, *own]) or "<pending>"


def _port(port: Tree) -> str:
    outside = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port.get('port')}{outside}/{port.get('protocol', '')}"


def slice_of_endpoints(tree: Tree, now: datetime) -> list[Any]:
    ports = [str(each.get("port") or each.get("name") or "*") for each in items(tree, "ports")]
    addresses = [address for each in items(tree, "endpoints") for address in items(each, "addresses")]
    return [name(tree), tree.get("addressType", ""), _first_of(ports), _first_of(addresses), columns.age(tree, now)]


def endpoints(tree: Tree, now: datetime) -> list[Any]:
    found = [address for subset in items(tree, "subsets") for address in _addresses(subset)]
    return [name(tree), _first_of(found) if items(tree, "subsets") else NONE, columns.age(tree, now)]


def _addresses(subset: Tree) -> list[str]:
    addresses = [str(each.get("ip", "")) for each in items(subset, "addresses")]
    ports = [each.get("port") for each in items(subset, "ports")]
    return [f"{address}:{port}" for port in ports for address in addresses] if ports else addresses


def _first_of(texts: list[str]) -> str:
    shown = ",".join(texts[:SHOWN_ENDPOINTS])
    rest = len(texts) - SHOWN_ENDPOINTS
    return f"{shown} + {rest} more..." if rest > 0 else shown or UNSET


NETWORK_LAYOUTS: Final = {
    ("", "Service"): TableLayout(SERVICE, service),
    ("", "Endpoints"): TableLayout(named("Endpoints", AGE), endpoints),
    ("discovery.k8s.io", "EndpointSlice"): TableLayout(
        named("AddressType", "Ports", "Endpoints", AGE), slice_of_endpoints
    ),
}


def volume(tree: Tree, now: datetime) -> list[Any]:
    spec, status, claim = part(tree, "spec"), part(tree, "status"), part(part(tree, "spec"), "claimRef")
    return [
        name(tree),
        _storage(part(spec, "capacity")),
        _modes(spec),
        spec.get("persistentVolumeReclaimPolicy", ""),
        _phase(tree),
        f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else "",
        _class(tree),
        spec.get("volumeAttributesClassName", UNSET),
        status.get("reason", ""),
        columns.age(tree, now),
        spec.get("volumeMode", UNSET),
    ]


def claim(tree: Tree, now: datetime) -> list[Any]:
    spec, status = part(tree, "spec"), part(tree, "status")
    is_bound = bool(spec.get("volumeName"))
    return [
        name(tree),
        _phase(tree),
        spec.get("volumeName", ""),
        _storage(part(status, "capacity")) if is_bound else "",
        _modes(status) if is_bound else "",
        _class(tree),
        spec.get("volumeAttributesClassName", UNSET),
        columns.age(tree, now),
        spec.get("volumeMode", UNSET),
    ]


def _phase(tree: Tree) -> str:
    return "Terminating" if "deletionTimestamp" in tree["metadata"] else str(part(tree, "status").get("phase", ""))


def _storage(amounts: Tree) -> str:
    return str(quantity.parse(amounts["storage"])) if "storage" in amounts else "0"


def _modes(holder: Tree) -> str:
    modes = items(holder, "accessModes")
    return ",".join(short for mode, short in ACCESS_MODES.items() if mode in modes)


def _class(tree: Tree) -> str:
    annotations = part(tree["metadata"], "annotations")
    return str(annotations.get(OLD_CLASS) or part(tree, "spec").get("storageClassName", ""))


def storage_class(tree: Tree, now: datetime) -> list[Any]:
    return [
        name(tree),
        tree.get("provisioner", ""),
        tree.get("reclaimPolicy", "Delete"),
        tree.get("volumeBindingMode", "Immediate"),
        tree.get("allowVolumeExpansion", False),
        columns.age(tree, now),
    ]


def driver(tree: Tree, now: datetime) -> list[Any]:
    spec = part(tree, "spec")
    audiences = ",".join(str(each.get("audience", "")) for each in items(spec, "tokenRequests"))
    return [
        name(tree),
        spec.get("attachRequired", True),
        spec.get("podInfoOnMount", False),
        spec.get("storageCapacity", False),
        audiences if spec.get("tokenRequests") is not None else UNSET,
        spec.get("requiresRepublish", False),
        ",".join(items(spec, "volumeLifecycleModes")) or NONE,
        columns.age(tree, now),
    ]


def attachment(tree: Tree, now: datetime) -> list[Any]:
    spec = part(tree, "spec")
    source = part(spec, "source").get("persistentVolumeName", "")
    attached = bool(part(tree, "status").get("attached"))
    return [name(tree), spec.get("attacher", ""), source, spec.get("nodeName", ""), attached, columns.age(tree, now)]


def csi_node(tree: Tree, now: datetime) -> list[Any]:
    return [name(tree), len(items(part(tree, "spec"), "drivers")), columns.age(tree, now)]


STORAGE_LAYOUTS: Final = {
    ("", "PersistentVolume"): TableLayout(
        named(*VOLUME, "VolumeAttributesClass", "Reason", AGE, *wide("VolumeMode")), volume
    ),
    ("", "PersistentVolumeClaim"): TableLayout(named(*CLAIM, AGE, *wide("VolumeMode")), claim),
    (STORAGE, "StorageClass"): TableLayout(
        named("Provisioner", "ReclaimPolicy", "VolumeBindingMode", "AllowVolumeExpansion", AGE), storage_class
    ),
    (STORAGE, "CSIDriver"): TableLayout(
        named(
            *booleans("AttachRequired", "PodInfoOnMount", "StorageCapacity"),
            "TokenRequests",
            *booleans("RequiresRepublish"),
            "Modes",
            AGE,
        ),
        driver,
    ),
    (STORAGE, "VolumeAttachment"): TableLayout(
        named(TableColumn("Attacher", format="name"), "PV", "Node", *booleans("Attached"), AGE), attachment
    ),
    (STORAGE, "CSINode"): TableLayout(named(*integers("Drivers"), AGE), csi_node),
}
