"""Defaults for every kind that has some: the table of completers, and the ones that are a few lines long.

`prepare` is what creates and updates call. An object whose kind is not in the table is kept as it was written."""

import base64
import re
from collections.abc import Callable
from typing import Final

from numalign.simulator.apiserver.defaults import (
    amounts,
    namespaces,
    nulls,
    pods,
    podspecs,
    priorities,
    services,
    storage,
    workloads,
)
from numalign.simulator.apiserver.storage import errors, resources
from numalign.simulator.apiserver.storage.resources import Resource
from numalign.simulator.apiserver.storage.state import Lookup
from numalign.simulator.apiserver.validation import typechecks
from numalign.simulator.trees import Tree

Completer = Callable[[Tree, Tree | None, Lookup], None]

NODE_TEXTS: Final = (
    "machineID",
    "systemUUID",
    "bootID",
    "kernelVersion",
    "osImage",
    "containerRuntimeVersion",
    "kubeletVersion",
    "kubeProxyVersion",
    "operatingSystem",
    "architecture",
)
NOT_BASE64: Final = re.compile(r"[^A-Za-z0-9+/=]")
BUDGET_COUNTS: Final = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")


def prepare(resource: Resource, tree: Tree, old: Tree | None, lookup: Lookup) -> Tree:
    """The object with its defaults; raises StatusError where it cannot be read or is not let in. May change `tree`."""
    typechecks.check(resource, tree)
    if old is None and resource.namespaced:
        namespaces.admit_into(resource, tree, lookup)
    complete = COMPLETERS.get(resource.home)
    if complete is None:
        return tree
    tree = nulls.dropped(tree) if resource is not resources.PODS else tree
    try:
        complete(tree, old, lookup)
    except amounts.BadAmount as problem:
        raise amounts.refusal(resource, problem) from None
    return tree


def _node(tree: Tree, old: Tree | None, lookup: Lookup) -> None:
    spec = tree["spec"] = tree.get("spec") or {}
    if spec.get("podCIDR") and not spec.get("podCIDRs"):
        spec["podCIDRs"] = [spec["podCIDR"]]
    if old is not None:
        return
    status = tree["status"] = tree.get("status") or {}
    amounts.settle(status, "capacity", "allocatable")
    if status.get("capacity") and not status.get("allocatable"):
        status["allocatable"] = dict(status["capacity"])
    # Clients of several languages insist on every one of these texts.
    status["nodeInfo"] = dict.fromkeys(NODE_TEXTS, "") | (status.get("nodeInfo") or {})
    status.setdefault("daemonEndpoints", {"kubeletEndpoint": {"Port": 0}})


def _secret(tree: Tree, old: Tree | None, lookup: Lookup) -> None:
    podspecs.fill(tree, {"type": "Opaque"})
    texts = tree.pop("stringData", None) or {}
    if texts:
        encoded = {key: base64.b64encode(str(text).encode()).decode() for key, text in texts.items()}
        tree["data"] = (tree.get("data") or {}) | encoded
    _check_base64("Secret", tree.get("data"))


def _config_map(tree: Tree, old: Tree | None, lookup: Lookup) -> None:
    _check_base64("ConfigMap", tree.get("binaryData"))


def _check_base64(kind: str, data: Tree | None) -> None:
    for value in (data or {}).values():
        try:
            base64.b64decode(value, validate=True)
        except ValueError:
            why = f"illegal base64 data at input byte {_end_of_base64(value)}"
            raise errors.bad_request(f'{kind} in version "v1" cannot be handled as a {kind}: {why}') from None


def _end_of_base64(text: str) -> int:
    """Where the first sign stands that does not belong there, or the last four signs begin if they are too few."""
    strange = NOT_BASE64.search(text)
    return strange.start() if strange else len(text) // 4 * 4


def _event(tree: Tree, old: Tree | None, lookup: Lookup) -> None:
    for field in ("source", "involvedObject"):
        tree[field] = tree.get(field) or {}
    for field in ("reportingComponent", "reportingInstance"):
        tree.setdefault(field, "")
    for field in ("firstTimestamp", "lastTimestamp", "eventTime"):
        tree.setdefault(field, None)


def _endpoints(tree: Tree, old: Tree | None, lookup: Lookup) -> None:
    """Of both kinds: slices carry their ports themselves, the old ones in subsets."""
    for holder in (tree, *(tree.get("subsets") or ())):
        for port in holder.get("ports") or ():
            podspecs.fill(port, {"protocol": "TCP"})


def _budget(tree: Tree, old: Tree | None, lookup: Lookup) -> None:
    if old is None:
        tree["status"] = dict.fromkeys(BUDGET_COUNTS, 0)


def _plain(tree: Tree, old: Tree | None, lookup: Lookup) -> None:
    """Of kinds that have rules, but no defaults."""


def _lease(tree: Tree, old: Tree | None, lookup: Lookup) -> None:
    tree.setdefault("spec", {})


def _role_binding(tree: Tree, old: Tree | None, lookup: Lookup) -> None:
    podspecs.fill(tree.setdefault("roleRef", {}), {"apiGroup": resources.RBAC})
    for subject in tree.get("subjects") or ():
        if subject.get("kind") in ("User", "Group"):
            podspecs.fill(subject, {"apiGroup": resources.RBAC})


def _limit_range(tree: Tree, old: Tree | None, lookup: Lookup) -> None:
    for limit in (tree.get("spec") or {}).get("limits") or ():
        amounts.settle(limit, "max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
        if limit.get("type") == "Container":
            limit["default"] = (limit.get("max") or {}) | (limit.get("default") or {})
            limit["defaultRequest"] = limit["default"] | (limit.get("min") or {}) | (limit.get("defaultRequest") or {})


def _quota(tree: Tree, old: Tree | None, lookup: Lookup) -> None:
    amounts.settle(tree.setdefault("spec", {}), "hard")
    if old is None:
        tree["status"] = {}


COMPLETERS: Final[dict[tuple[str, str], Completer]] = {
    resource.home: completer
    for resource, completer in (
        (resources.PODS, pods.complete),
        (resources.NAMESPACES, namespaces.complete),
        (resources.NODES, _node),
        (resources.SERVICES, services.complete),
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
        (resources.PODDISRUPTIONBUDGETS, _budget),
        (resources.PRIORITYCLASSES, priorities.complete),
        (resources.PERSISTENTVOLUMES, storage.volume),
        (resources.PERSISTENTVOLUMECLAIMS, storage.claim),
        (resources.STORAGECLASSES, storage.storage_class),
        (resources.CSIDRIVERS, storage.driver),
        (resources.VOLUMEATTACHMENTS, storage.attachment),
        (resources.ENDPOINTS, _endpoints),
        (resources.ENDPOINTSLICES, _endpoints),
        (resources.CSISTORAGECAPACITIES, storage.capacity),
        (resources.ROLEBINDINGS, _role_binding),
        (resources.CLUSTERROLEBINDINGS, _role_binding),
        (resources.LIMITRANGES, _limit_range),
        (resources.RESOURCEQUOTAS, _quota),
    )
}
