"""The columns of cluster objects: nodes, namespaces, events, leases, RBAC, services, storage, custom resources."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from numalign.api.decode import quantity
from numalign.simulator.apiserver.defaults.kinds import OLD_CLASS
from numalign.simulator.apiserver.storage.resources import RBAC, STORAGE
from numalign.simulator.apiserver.tables import columns
from numalign.simulator.apiserver.tables.columns import (
    AGE,
    NAME,
    NONE,
    UNSET,
    TableColumn,
    boolean,
    field,
    integer,
    items,
    part,
    text,
    wide,
)
from numalign.simulator.trees import Tree

ROLE_PREFIX: Final = "node-role.kubernetes.io/"
ROLE_LABEL: Final = "kubernetes.io/role"
SHOWN_ENDPOINTS: Final = 3
ACCESS_MODES: Final = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def _node_state(tree: Tree) -> str:
    ready = [each for each in items(part(tree, "status"), "conditions") if each.get("type") == "Ready"]
    state = "Unknown" if not ready else "Ready" if ready[-1].get("status") == "True" else "NotReady"
    return f"{state},SchedulingDisabled" if part(tree, "spec").get("unschedulable") else state


def _roles(tree: Tree) -> str:
    labels = part(tree["metadata"], "labels")
    roles = {key.removeprefix(ROLE_PREFIX) for key in labels if key.startswith(ROLE_PREFIX)}
    return ",".join(sorted(filter(None, roles | {labels.get(ROLE_LABEL, "")}))) or NONE


def _address(kind: str) -> columns.Read:
    def read(tree: Tree) -> str:
        addresses = items(part(tree, "status"), "addresses")
        return next((str(each.get("address", "")) for each in addresses if each.get("type") == kind), NONE)

    return read


def _info(tree: Tree, name: str) -> str:
    return part(part(tree, "status"), "nodeInfo").get(name) or columns.UNKNOWN


def _kernel(tree: Tree) -> str:
    machine = field("status", "nodeInfo", "architecture")(tree)
    return f"{_info(tree, 'kernelVersion')} ({machine})" if machine else _info(tree, "kernelVersion")


NODE: Final = (
    NAME,
    text("Status", _node_state),
    text("Roles", _roles),
    AGE,
    text("Version", field("status", "nodeInfo", "kubeletVersion")),
    wide("Internal-IP", _address("InternalIP")),
    wide("External-IP", _address("ExternalIP")),
    wide("OS-Image", lambda tree: _info(tree, "osImage")),
    wide("Kernel-Version", _kernel),
    wide("Container-Runtime", lambda tree: _info(tree, "containerRuntimeVersion")),
)


def _first_seen(event: Tree) -> str | None:
    return event.get("firstTimestamp") or event.get("deprecatedFirstTimestamp") or event.get("eventTime")


def _last_seen(event: Tree) -> Any:
    if event.get("series"):
        return event["series"].get("lastObservedTime")
    return event.get("lastTimestamp") or event.get("deprecatedLastTimestamp") or _first_seen(event)


def _about(event: Tree) -> Tree:
    return part(event, "involvedObject") or part(event, "regarding")


def _object(event: Tree) -> str:
    about = _about(event)
    kind = str(about.get("kind", "")).lower()
    return f"{kind}/{about['name']}" if about.get("name") else kind


def _event_count(event: Tree) -> Any:
    if event.get("series"):
        return event["series"].get("count", 0)
    return event.get("count") or event.get("deprecatedCount") or 1


def _source(tree: Tree) -> str:
    source = part(tree, "source") or part(tree, "deprecatedSource")
    component = source.get("component") or tree.get("reportingComponent") or tree.get("reportingController", "")
    host = source.get("host") or tree.get("reportingInstance", "")
    return f"{component}, {host}" if host else str(component)


EVENT: Final = (
    TableColumn("Last Seen", lambda event, now: columns.age_since(_last_seen(event), now)),
    text("Type", field("type")),
    text("Reason", field("reason")),
    text("Object", _object),
    wide("Subobject", lambda event: _about(event).get("fieldPath", "")),
    wide("Source", _source),
    text("Message", lambda event: str(event.get("message") or event.get("note", "")).strip()),
    TableColumn("First Seen", lambda event, now: columns.age_since(_first_seen(event), now), priority=1),
    wide("Count", _event_count),
    replace(NAME, priority=1),
)
"""Of both groups: events.k8s.io has other names for the same fields."""


def _subjects(kind: str) -> columns.Read:
    def read(tree: Tree) -> str:
        subjects = [each for each in items(tree, "subjects") if each.get("kind") == kind]
        if kind == "ServiceAccount":
            return ", ".join(f"{each.get('namespace', '')}/{each.get('name', '')}" for each in subjects)
        return ", ".join(each.get("name", "") for each in subjects)

    return read


BINDING: Final = (
    NAME,
    text("Role", lambda tree: f"{field('roleRef', 'kind')(tree)}/{field('roleRef', 'name')(tree)}"),
    AGE,
    wide("Users", _subjects("User")),
    wide("Groups", _subjects("Group")),
    wide("ServiceAccounts", _subjects("ServiceAccount")),
)


def _used(tree: Tree, *, limits: bool) -> str:
    used, hard = (part(part(tree, "status"), each) for each in ("used", "hard"))
    named = [name for name in sorted(hard) if name.startswith("limits.") is limits]
    return ", ".join(f"{name}: {_amount(used.get(name))}/{_amount(hard[name])}" for name in named)


def _amount(written: Any) -> str:
    return str(quantity.parse(written)) if written is not None else "0"


def _versions(definition: Tree) -> str:
    served = [each for each in items(part(definition, "spec"), "versions") if each.get("served")]
    return ",".join(sorted(f"{each['name']}(storage)" if each.get("storage") else each["name"] for each in served))


DEFINITION: Final = (
    NAME,
    text("Scope", field("spec", "scope")),
    text("Versions", _versions),
    text("Created At", field("metadata", "creationTimestamp"), "date"),
    wide("Group", field("spec", "group")),
    wide("Kind", field("spec", "names", "kind")),
    wide("ShortNames", lambda tree: ",".join(items(part(part(tree, "spec"), "names"), "shortNames"))),
    text("Established", lambda tree: columns.is_true(tree, "Established"), "boolean", priority=1),
)


def _cluster_ip(service: Tree) -> str:
    addresses = items(part(service, "spec"), "clusterIPs")
    return addresses[0] if addresses else NONE


def _external(service: Tree) -> str:
    spec, status = part(service, "spec"), part(service, "status")
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


SERVICE: Final = (
    NAME,
    text("Type", field("spec", "type")),
    text("Cluster-IP", _cluster_ip),
    text("External-IP", _external),
    text("Port(s)", lambda tree: ",".join(map(_port, items(part(tree, "spec"), "ports"))) or NONE),
    AGE,
    wide("Selector", lambda tree: columns.labels(part(tree, "spec").get("selector"))),
)


def _slice_ports(tree: Tree) -> str:
    return _first_of([str(each.get("port") or each.get("name") or "*") for each in items(tree, "ports")])


def _slice_addresses(tree: Tree) -> str:
    return _first_of([address for each in items(tree, "endpoints") for address in items(each, "addresses")])


def _endpoints(tree: Tree) -> str:
    found = [address for subset in items(tree, "subsets") for address in _addresses(subset)]
    return _first_of(found) if items(tree, "subsets") else NONE


def _addresses(subset: Tree) -> list[str]:
    addresses = [str(each.get("ip", "")) for each in items(subset, "addresses")]
    ports = [each.get("port") for each in items(subset, "ports")]
    return [f"{address}:{port}" for port in ports for address in addresses] if ports else addresses


def _first_of(texts: list[str]) -> str:
    shown = ",".join(texts[:SHOWN_ENDPOINTS])
    rest = len(texts) - SHOWN_ENDPOINTS
    return f"{shown} + {rest} more..." if rest > 0 else shown or UNSET


def _phase(tree: Tree) -> str:
    return "Terminating" if "deletionTimestamp" in tree["metadata"] else str(part(tree, "status").get("phase", ""))


def _storage(tree: Tree, holder: str) -> str:
    return _amount(part(part(tree, holder), "capacity").get("storage"))


def _modes(tree: Tree, holder: str) -> str:
    modes = items(part(tree, holder), "accessModes")
    return ",".join(short for mode, short in ACCESS_MODES.items() if mode in modes)


def _claim(volume: Tree) -> str:
    claim = part(part(volume, "spec"), "claimRef")
    return f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else ""


def _once_bound(read: Callable[[Tree, str], str]) -> columns.Read:
    return lambda claim: read(claim, "status") if part(claim, "spec").get("volumeName") else ""


def _class(tree: Tree) -> str:
    annotations = part(tree["metadata"], "annotations")
    return str(annotations.get(OLD_CLASS) or part(tree, "spec").get("storageClassName", ""))


def _audiences(driver: Tree) -> str:
    requests = part(driver, "spec").get("tokenRequests")
    return UNSET if requests is None else ",".join(str(each.get("audience", "")) for each in requests)


ATTRIBUTES_CLASS: Final = text("VolumeAttributesClass", field("spec", "volumeAttributesClassName", default=UNSET))
VOLUME_MODE: Final = wide("VolumeMode", field("spec", "volumeMode", default=UNSET))
VOLUME: Final = (
    NAME,
    text("Capacity", lambda tree: _storage(tree, "spec")),
    text("Access Modes", lambda tree: _modes(tree, "spec")),
    text("Reclaim Policy", field("spec", "persistentVolumeReclaimPolicy")),
    text("Status", _phase),
    text("Claim", _claim),
    text("StorageClass", _class),
    ATTRIBUTES_CLASS,
    text("Reason", field("status", "reason")),
    AGE,
    VOLUME_MODE,
)
CLAIM: Final = (
    NAME,
    text("Status", _phase),
    text("Volume", field("spec", "volumeName")),
    text("Capacity", _once_bound(_storage)),
    text("Access Modes", _once_bound(_modes)),
    text("StorageClass", _class),
    ATTRIBUTES_CLASS,
    AGE,
    VOLUME_MODE,
)
STORAGE_CLASS: Final = (
    NAME,
    text("Provisioner", field("provisioner")),
    text("ReclaimPolicy", field("reclaimPolicy", default="Delete")),
    text("VolumeBindingMode", field("volumeBindingMode", default="Immediate")),
    text("AllowVolumeExpansion", field("allowVolumeExpansion", default=False)),
    AGE,
)
DRIVER: Final = (
    NAME,
    boolean("AttachRequired", field("spec", "attachRequired", default=True)),
    boolean("PodInfoOnMount", field("spec", "podInfoOnMount", default=False)),
    boolean("StorageCapacity", field("spec", "storageCapacity", default=False)),
    text("TokenRequests", _audiences),
    boolean("RequiresRepublish", field("spec", "requiresRepublish", default=False)),
    text("Modes", lambda tree: ",".join(items(part(tree, "spec"), "volumeLifecycleModes")) or NONE),
    AGE,
)
ATTACHMENT: Final = (
    NAME,
    replace(text("Attacher", field("spec", "attacher")), format="name"),
    text("PV", field("spec", "source", "persistentVolumeName")),
    text("Node", field("spec", "nodeName")),
    boolean("Attached", lambda tree: bool(part(tree, "status").get("attached"))),
    AGE,
)
PRIORITY_CLASS: Final = (
    NAME,
    integer("Value", field("value", default=0)),
    boolean("Global-Default", lambda tree: bool(tree.get("globalDefault"))),
    AGE,
    text("PreemptionPolicy", field("preemptionPolicy")),
)
QUOTA: Final = (
    NAME,
    text("Request", lambda tree: _used(tree, limits=False)),
    text("Limit", lambda tree: _used(tree, limits=True)),
    AGE,
)
SLICE: Final = (
    NAME,
    text("AddressType", field("addressType")),
    text("Ports", _slice_ports),
    text("Endpoints", _slice_addresses),
    AGE,
)


def _size(*holders: str) -> columns.Read:
    return lambda tree: sum(len(part(tree, each)) for each in holders)


LAYOUTS: Final = {
    ("", "Node"): NODE,
    ("", "Event"): EVENT,
    ("events.k8s.io", "Event"): EVENT,
    (RBAC, "RoleBinding"): BINDING,
    (RBAC, "ClusterRoleBinding"): BINDING,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): DEFINITION,
    ("node.k8s.io", "RuntimeClass"): (NAME, text("Handler", field("handler")), AGE),
    ("", "ResourceQuota"): QUOTA,
    ("scheduling.k8s.io", "PriorityClass"): PRIORITY_CLASS,
    ("", "Namespace"): (NAME, text("Status", field("status", "phase")), AGE),
    ("", "ConfigMap"): (NAME, text("Data", _size("data", "binaryData")), AGE),
    ("", "Secret"): (NAME, text("Type", field("type")), text("Data", _size("data")), AGE),
    ("", "ServiceAccount"): (NAME, AGE),
    ("coordination.k8s.io", "Lease"): (NAME, text("Holder", field("spec", "holderIdentity")), AGE),
    ("", "Service"): SERVICE,
    ("", "Endpoints"): (NAME, text("Endpoints", _endpoints), AGE),
    ("discovery.k8s.io", "EndpointSlice"): SLICE,
    ("", "PersistentVolume"): VOLUME,
    ("", "PersistentVolumeClaim"): CLAIM,
    (STORAGE, "StorageClass"): STORAGE_CLASS,
    (STORAGE, "CSIDriver"): DRIVER,
    (STORAGE, "VolumeAttachment"): ATTACHMENT,
    (STORAGE, "CSINode"): (NAME, integer("Drivers", lambda tree: len(items(part(tree, "spec"), "drivers"))), AGE),
}
