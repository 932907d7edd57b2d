"""Defaults of every built-in kind: the table of completers, and the short ones.

Create and update call `prepare` through `admission`. An object whose kind is not in the table is stored as it was
written. A completer gets the object, its old state and a reader of other objects, and changes the object in place.

A namespaced object needs a namespace that exists and is not being deleted; the namespaces that every server creates
count as existing. Services get the lowest free address of 10.96.0.0/16 and free node ports; nothing listens on them,
and only IPv4 is supported. `default_class` decides which storage class claims without a class get."""

import base64
import ipaddress
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from numalign.simulator import trees
from numalign.simulator.apiserver.defaults import pods, podspecs, workloads
from numalign.simulator.apiserver.schemas import builtin
from numalign.simulator.apiserver.storage import errors, resources
from numalign.simulator.apiserver.storage.errors import StatusCause, StatusError
from numalign.simulator.apiserver.storage.resources import NAMESPACES, SERVICES, STORAGECLASSES, GroupResource, Resource
from numalign.simulator.apiserver.storage.store import ObjectReader
from numalign.simulator.trees import Tree

ALWAYS_THERE: Final = frozenset({"default", "kube-system", "kube-public", "kube-node-lease"})
NAME_LABEL: Final = "kubernetes.io/metadata.name"
FINALIZER: Final = "kubernetes"
ADDRESSES: Final = ipaddress.IPv4Network("10.96.0.0/16")
NODE_PORTS: Final = range(30_000, 32_768)
STICKY_SECONDS: Final = 10_800
WITH_NODE_PORTS: Final = ("NodePort", "LoadBalancer")
FAMILIES: Final = {"ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack"}
DEFAULT_MARKS: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
OLD_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
DRIVER: Final = {"attachRequired": True, "fsGroupPolicy": "ReadWriteOnceWithFSType"}
DRIVER_FLAGS: Final = (
    "podInfoOnMount",
    "storageCapacity",
    "requiresRepublish",
    "seLinuxMount",
    "preventPodSchedulingIfMissing",
)
Completer = Callable[[Tree, Tree | None, ObjectReader], None]
NODE_TEXTS: Final = (
    *("machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion"),
    *("kubeletVersion", "kubeProxyVersion", "operatingSystem", "architecture"),
)
NOT_BASE64: Final = re.compile(r"[^A-Za-z0-9+/=]")
BUDGET_COUNTS: Final = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
DAEMON_COUNTS: Final = ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady")
FIRST_STATUS: Final[dict[GroupResource, Tree]] = {
    resource.group_resource: status
    for resource, status in (
        (resources.NAMESPACES, {"phase": "Active"}),
        (resources.SERVICES, {"loadBalancer": {}}),
        (resources.PERSISTENTVOLUMECLAIMS, {"phase": "Pending"}),
        (resources.VOLUMEATTACHMENTS, {"attached": False}),
        (resources.RESOURCEQUOTAS, {}),
        (resources.PODDISRUPTIONBUDGETS, dict.fromkeys(BUDGET_COUNTS, 0)),
        (resources.DEPLOYMENTS, {}),
        (resources.REPLICASETS, {"replicas": 0}),
        (resources.REPLICATIONCONTROLLERS, {"replicas": 0}),
        (resources.STATEFULSETS, {"replicas": 0, "availableReplicas": 0}),
        (resources.DAEMONSETS, dict.fromkeys(DAEMON_COUNTS, 0)),
        (resources.JOBS, {}),
        (resources.CRONJOBS, {}),
    )
}
"""The status of a new object, where it does not depend on the object."""


def complete_namespace(tree: Tree, old: Tree | None, lookup: ObjectReader) -> None:
    metadata, spec = tree["metadata"], tree.get("spec") or {}
    metadata["labels"] = (metadata.get("labels") or {}) | {NAME_LABEL: metadata.get("name", "")}
    finalizers = list(spec.get("finalizers") or ())
    if old is not None:
        # Only the finalize subresource changes the finalizers of a namespace.
        finalizers = list((old.get("spec") or {}).get("finalizers") or ())
    elif FINALIZER not in finalizers:
        finalizers.append(FINALIZER)
    tree["spec"] = spec | {"finalizers": finalizers} if finalizers else spec


def check_namespace(resource: Resource, tree: Tree, lookup: ObjectReader) -> None:
    """Raises StatusError unless the object's namespace accepts new objects."""
    namespace = tree["metadata"].get("namespace", "")
    home = lookup(NAMESPACES, namespace)
    if home is None and namespace not in ALWAYS_THERE:
        raise errors.not_found(NAMESPACES, namespace)
    if home is not None and "deletionTimestamp" in home["metadata"]:
        raise _terminating(resource, tree["metadata"], namespace)


def _terminating(resource: Resource, metadata: Tree, namespace: str) -> StatusError:
    name = metadata.get("generateName") or metadata.get("name", "")
    why = f"unable to create new content in namespace {namespace} because it is being terminated"
    cause = StatusCause("metadata.namespace", "NamespaceTerminating", f"namespace {namespace} is being terminated")
    refusal = errors.forbidden(resource, name, why)
    return StatusError(403, "Forbidden", refusal.message, errors.details(resource, name, [cause]))


def complete_service(tree: Tree, old: Tree | None, lookup: ObjectReader) -> None:
    spec = tree.setdefault("spec", {})
    podspecs.fill(spec, {"type": "ClusterIP", "sessionAffinity": "None"})
    if spec["sessionAffinity"] == "ClientIP":
        spec.setdefault("sessionAffinityConfig", {"clientIP": {"timeoutSeconds": STICKY_SECONDS}})
    for port in spec.get("ports") or ():
        podspecs.fill(port, {"protocol": "TCP"})
        port["targetPort"] = port.get("targetPort") or port.get("port", 0)
    if spec["type"] != "ExternalName":
        _complete_cluster_ip(tree, old, lookup)


def _complete_cluster_ip(tree: Tree, old: Tree | None, lookup: ObjectReader) -> None:
    spec = tree["spec"]
    others = [each for each in lookup.all(SERVICES) if each["metadata"]["uid"] != tree["metadata"].get("uid")]
    _allocate_address(spec, (old or {}).get("spec") or {}, others)
    podspecs.fill(spec, FAMILIES | {"internalTrafficPolicy": "Cluster"})
    if spec["type"] in WITH_NODE_PORTS:
        spec.setdefault("externalTrafficPolicy", "Cluster")
        _allocate_node_ports(spec, others)
    if spec["type"] == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)


def _allocate_address(spec: Tree, before: Tree, others: list[Tree]) -> None:
    """An update without an address keeps it."""
    if not spec.get("clusterIP"):
        used = {(each.get("spec") or {}).get("clusterIP") for each in others}
        spec["clusterIP"] = before.get("clusterIP") or next(each for each in _addresses() if each not in used)
    if (spec.get("clusterIPs") or [""])[0] != spec["clusterIP"]:
        spec["clusterIPs"] = [spec["clusterIP"]]


def _addresses() -> Iterator[str]:
    return map(str, ADDRESSES.hosts())


def _allocate_node_ports(spec: Tree, others: list[Tree]) -> None:
    services = [spec, *((each.get("spec") or {}) for each in others)]
    used = {port.get("nodePort") for each in services for port in each.get("ports") or ()}
    free = (number for number in NODE_PORTS if number not in used)
    for port in spec.get("ports") or ():
        if not port.get("nodePort"):
            port["nodePort"] = next(free)


def claim(tree: Tree, old: Tree | None, lookup: ObjectReader) -> None:
    metadata, spec = tree["metadata"], tree.setdefault("spec", {})
    podspecs.complete_claim(spec)
    if old is None:
        _protect(metadata, "kubernetes.io/pvc-protection")
        if "storageClassName" not in spec and OLD_CLASS not in (metadata.get("annotations") or {}):
            default = default_class(lookup.all(STORAGECLASSES))
            spec |= {"storageClassName": default} if default else {}
    if "dataSource" in spec and "dataSourceRef" not in spec:
        spec["dataSourceRef"] = dict(spec["dataSource"])


def volume(tree: Tree, old: Tree | None, lookup: ObjectReader) -> None:
    spec = tree.setdefault("spec", {})
    podspecs.fill(spec, {"persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem"})
    podspecs.canonicalise(spec, "capacity")
    if "hostPath" in spec:
        spec["hostPath"].setdefault("type", "")
    if old is None:
        since = tree["metadata"].get("creationTimestamp")
        tree["status"] = {"phase": "Pending", "lastPhaseTransitionTime": since}
        _protect(tree["metadata"], "kubernetes.io/pv-protection")


def storage_class(tree: Tree, old: Tree | None, lookup: ObjectReader) -> None:
    podspecs.fill(tree, {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"})


def driver(tree: Tree, old: Tree | None, lookup: ObjectReader) -> None:
    spec = tree.setdefault("spec", {})
    podspecs.fill(spec, DRIVER | {"volumeLifecycleModes": ["Persistent"]})
    for flag in DRIVER_FLAGS:
        spec.setdefault(flag, False)


def capacity(tree: Tree, old: Tree | None, lookup: ObjectReader) -> None:
    for field in ("capacity", "maximumVolumeSize"):
        if tree.get(field) is not None:
            tree[field] = podspecs.canonical_quantity(tree[field])


def default_class(classes: Sequence[Tree]) -> str:
    """The storage class of claims without a class: the youngest of the marked classes, then the first by name."""
    marked = [each for each in classes if _is_marked_default(each)]
    youngest = max(map(_created, marked), default="")
    return min((str(each["metadata"].get("name", "")) for each in marked if _created(each) == youngest), default="")


def _is_marked_default(tree: Tree) -> bool:
    annotations = tree["metadata"].get("annotations") or {}
    return any(annotations.get(key) == "true" for key in DEFAULT_MARKS)


def _created(tree: Tree) -> str:
    return str(tree["metadata"].get("creationTimestamp", ""))


def _protect(metadata: Tree, finalizer: str) -> None:
    finalizers = metadata.get("finalizers") or []
    metadata["finalizers"] = finalizers if finalizer in finalizers else [*finalizers, finalizer]


def prepare(resource: Resource, tree: Tree, old: Tree | None, lookup: ObjectReader) -> Tree:
    """The object with its defaults. Raises StatusError if it is invalid or not admitted; may change `tree`."""
    builtin.check_types(resource, tree)
    if old is None and resource.namespaced:
        check_namespace(resource, tree, lookup)
    complete = COMPLETERS.get(resource.group_resource)
    if complete is None:
        return tree
    tree = podspecs.without_nulls(tree) if resource is not resources.PODS else tree
    try:
        complete(tree, old, lookup)
    except podspecs.InvalidQuantity as problem:
        raise errors.TypeMismatch(resource, str(problem)) from None
    if old is None and resource.group_resource in FIRST_STATUS:
        tree["status"] = trees.copied(FIRST_STATUS[resource.group_resource])
    return tree


def _node(tree: Tree, old: Tree | None, lookup: ObjectReader) -> None:
    spec = tree["spec"] = tree.get("spec") or {}
    if spec.get("podCIDR") and not spec.get("podCIDRs"):
        spec["podCIDRs"] = [spec["podCIDR"]]
    if old is not None:
        return
    status = tree["status"] = tree.get("status") or {}
    podspecs.canonicalise(status, "capacity", "allocatable")
    if status.get("capacity") and not status.get("allocatable"):
        status["allocatable"] = dict(status["capacity"])
    # Clients in several languages require every one of these fields.
    status["nodeInfo"] = dict.fromkeys(NODE_TEXTS, "") | (status.get("nodeInfo") or {})
    status.setdefault("daemonEndpoints", {"kubeletEndpoint": {"Port": 0}})


def _secret(tree: Tree, old: Tree | None, lookup: ObjectReader) -> None:
    podspecs.fill(tree, {"type": "Opaque"})
    texts = tree.pop("stringData", None) or {}
    if texts:
        encoded = {key: base64.b64encode(str(text).encode()).decode() for key, text in texts.items()}
        tree["data"] = (tree.get("data") or {}) | encoded
    _check_base64("Secret", tree.get("data"))


def _config_map(tree: Tree, old: Tree | None, lookup: ObjectReader) -> None:
    _check_base64("ConfigMap", tree.get("binaryData"))


def _check_base64(kind: str, data: Tree | None) -> None:
    for value in (data or {}).values():
        try:
            base64.b64decode(value, validate=True)
        except ValueError:
            why = f"illegal base64 data at input byte {_end_of_base64(value)}"
            raise errors.bad_request(f'{kind} in version "v1" cannot be handled as a {kind}: {why}') from None


def _end_of_base64(text: str) -> int:
    """The position of the first invalid character, or of the last incomplete group of four."""
    strange = NOT_BASE64.search(text)
    return strange.start() if strange else len(text) // 4 * 4


def _event(tree: Tree, old: Tree | None, lookup: ObjectReader) -> None:
    for field in ("source", "involvedObject"):
        tree[field] = tree.get(field) or {}
    for field in ("reportingComponent", "reportingInstance"):
        tree.setdefault(field, "")
    for field in ("firstTimestamp", "lastTimestamp", "eventTime"):
        tree.setdefault(field, None)


def _endpoints(tree: Tree, old: Tree | None, lookup: ObjectReader) -> None:
    """Completes the ports of both kinds: an EndpointSlice has them at the top level, Endpoints in subsets."""
    for holder in (tree, *(tree.get("subsets") or ())):
        for port in holder.get("ports") or ():
            podspecs.fill(port, {"protocol": "TCP"})


def _plain(tree: Tree, old: Tree | None, lookup: ObjectReader) -> None:
    """The completer of kinds that are validated and have no defaults."""


def _lease(tree: Tree, old: Tree | None, lookup: ObjectReader) -> None:
    tree.setdefault("spec", {})


def _role_binding(tree: Tree, old: Tree | None, lookup: ObjectReader) -> None:
    podspecs.fill(tree.setdefault("roleRef", {}), {"apiGroup": resources.RBAC})
    for subject in tree.get("subjects") or ():
        if subject.get("kind") in ("User", "Group"):
            podspecs.fill(subject, {"apiGroup": resources.RBAC})


def _limit_range(tree: Tree, old: Tree | None, lookup: ObjectReader) -> None:
    for limit in (tree.get("spec") or {}).get("limits") or ():
        podspecs.canonicalise(limit, "max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
        if limit.get("type") == "Container":
            limit["default"] = (limit.get("max") or {}) | (limit.get("default") or {})
            limit["defaultRequest"] = limit["default"] | (limit.get("min") or {}) | (limit.get("defaultRequest") or {})


def _quota(tree: Tree, old: Tree | None, lookup: ObjectReader) -> None:
    podspecs.canonicalise(tree.setdefault("spec", {}), "hard")


COMPLETERS: Final[dict[GroupResource, Completer]] = {
    resource.group_resource: completer
    for resource, completer in (
        (resources.PODS, pods.complete_pod),
        (resources.NAMESPACES, complete_namespace),
        (resources.NODES, _node),
        (resources.SERVICES, complete_service),
        (resources.SECRETS, _secret),
        (resources.EVENTS, _event),
        (resources.LEASES, _lease),
        (resources.CONFIGMAPS, _config_map),
        (resources.ROLES, _plain),
        (resources.CLUSTERROLES, _plain),
        (resources.DEPLOYMENTS, workloads.deployment),
        (resources.REPLICASETS, workloads.replica_set),
        (resources.REPLICATIONCONTROLLERS, workloads.replication_controller),
        (resources.STATEFULSETS, workloads.stateful_set),
        (resources.DAEMONSETS, workloads.daemon_set),
        (resources.JOBS, workloads.job),
        (resources.CRONJOBS, workloads.cron_job),
        (resources.PODDISRUPTIONBUDGETS, _plain),
        (resources.PRIORITYCLASSES, pods.complete_priority_class),
        (resources.PERSISTENTVOLUMES, volume),
        (resources.PERSISTENTVOLUMECLAIMS, claim),
        (resources.STORAGECLASSES, storage_class),
        (resources.CSIDRIVERS, driver),
        (resources.VOLUMEATTACHMENTS, _plain),
        (resources.ENDPOINTS, _endpoints),
        (resources.ENDPOINTSLICES, _endpoints),
        (resources.CSISTORAGECAPACITIES, capacity),
        (resources.ROLEBINDINGS, _role_binding),
        (resources.CLUSTERROLEBINDINGS, _role_binding),
        (resources.LIMITRANGES, _limit_range),
        (resources.RESOURCEQUOTAS, _quota),
    )
}
