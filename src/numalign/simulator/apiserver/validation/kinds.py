"""Validates every built-in kind: metadata, the table of checks, and the checks of the smaller kinds.

Create and update call `errors` through `admission`, after defaulting. It returns all errors at once, as causes with
field paths; an empty list admits the object. Roles and role bindings are validated and stored; they are not enforced.
"""

import ipaddress
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Final

from numalign.simulator import trees
from numalign.simulator.apiserver.defaults.pods import HIGHEST_OF_USERS, SYSTEM_PRIORITIES
from numalign.simulator.apiserver.schemas import fielderrors, validate
from numalign.simulator.apiserver.storage import resources
from numalign.simulator.apiserver.storage.errors import StatusCause
from numalign.simulator.apiserver.storage.names import (
    config_key_problems,
    dns_label_problems,
    path_segment_problems,
    qualified_name_problems,
    subdomain_problems,
)
from numalign.simulator.apiserver.storage.resources import RBAC, GroupResource, Resource
from numalign.simulator.apiserver.validation import containers, pods, rules, workloads
from numalign.simulator.trees import Tree

LABELLED: Final = frozenset({resources.NAMESPACES.group_resource, resources.SERVICES.group_resource})
IN_PATHS: Final = frozenset(
    each.group_resource
    for each in (resources.ROLES, resources.ROLEBINDINGS, resources.CLUSTERROLES, resources.CLUSTERROLEBINDINGS)
)
STANDARD_FINALIZERS: Final = frozenset({"orphan", "foregroundDeletion", "kubernetes"})
LARGEST_ANNOTATIONS: Final = 256 * 1024
OWNER_FIELDS: Final = ("apiVersion", "kind", "name", "uid")
UNQUALIFIED: Final = "name is neither a standard finalizer name nor is it fully qualified"
SERVICE_TYPES: Final = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
UNHEALTHY: Final = ("AlwaysAllow", "IfHealthyBudget")
POLICIES: Final = ("PreemptLowerPriority", "Never")
ACCESS: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
BAD_ADDRESS: Final = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
BAD_RANGE: Final = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
RESERVED: Final = "priority class names with 'system-' prefix are reserved for system use only. error: "
LOCKED: Final = "field is immutable when `immutable` is set"
CLASS_FIELDS: Final = ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode")
CLAIM_LOCKED: Final = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)
VOLUME_WORDS: Final = ("capacity", "claimRef", "nodeAffinity")
SUBJECTS: Final = ("ServiceAccount", "User", "Group")
KindCheck = Callable[[Tree, Tree | None], Iterable[StatusCause]]


def metadata_errors(resource: Resource, metadata: Tree, old: Tree | None) -> list[StatusCause]:
    found = _labels(metadata)
    if metadata.get("ownerReferences"):
        found += _owners(metadata["ownerReferences"])
    if metadata.get("finalizers"):
        found += _finalizers(metadata["finalizers"])
    return found if old is not None else [*_name(resource, metadata), *found]


def name_rule(resource: Resource) -> rules.NameRule:
    if resource.group_resource in LABELLED:
        return dns_label_problems
    return path_segment_problems if resource.group_resource in IN_PATHS else subdomain_problems


def _name(resource: Resource, metadata: Tree) -> list[StatusCause]:
    rule, found = name_rule(resource), list[StatusCause]()
    base, name = metadata.get("generateName"), metadata.get("name", "")
    if not name:
        return [fielderrors.NO_NAME]
    if base:
        # The generated suffix makes a trailing hyphen valid.
        found += [rules.invalid("metadata.generateName", base, each) for each in rule(f"{base.rstrip('-')}a"[-63:])]
    return found + rules.name_errors("metadata.name", name, rule)


def _labels(metadata: Tree) -> list[StatusCause]:
    found = rules.label_map("metadata.labels", metadata.get("labels"))
    annotations = metadata.get("annotations")
    if annotations:
        for key in annotations:
            found += rules.name_errors("metadata.annotations", key, lambda each: qualified_name_problems(each.lower()))
        size = sum(len(key) + len(value) for key, value in annotations.items())
        if size > LARGEST_ANNOTATIONS:
            found.append(fielderrors.too_long("metadata.annotations", LARGEST_ANNOTATIONS))
    return found


def _owners(owners: list[Tree]) -> list[StatusCause]:
    found = []
    for index, owner in enumerate(owners):
        path = f"metadata.ownerReferences[{index}]"
        absent = [field for field in OWNER_FIELDS if not owner.get(field)]
        found += [rules.required(f"{path}.{field}", "must not be empty") for field in absent]
    controllers = [f"{each.get('kind')}/{each.get('name')}" for each in owners if each.get("controller")]
    if len(controllers) > 1:
        why = f'Only one reference can have Controller set to true. Found "true" in references for {controllers[0]}'
        found.append(rules.invalid("metadata.ownerReferences", owners, f"{why} and {controllers[1]}"))
    return found


def _finalizers(finalizers: list[str]) -> list[StatusCause]:
    found = []
    for index, finalizer in enumerate(finalizers):
        found += rules.name_errors("metadata.finalizers", finalizer, qualified_name_problems)
        if "/" not in finalizer and finalizer not in STANDARD_FINALIZERS:
            found.append(rules.invalid(f"metadata.finalizers[{index}]", finalizer, UNQUALIFIED))
    return found


def service(tree: Tree, old: Tree | None) -> Iterator[StatusCause]:
    spec = tree["spec"]
    ports = spec.get("ports") or []
    if not ports and spec.get("type") != "ExternalName" and spec.get("clusterIP") != "None":
        yield rules.required("spec.ports")
    for index, port in enumerate(ports):
        yield from _service_port(port, f"spec.ports[{index}]", is_alone=len(ports) == 1)
    yield from rules.one_of("spec.type", spec.get("type"), SERVICE_TYPES)
    address = spec.get("clusterIP", "")
    if address not in ("", "None") and not _is_address(address):
        yield rules.invalid("spec.clusterIPs[0]", address, BAD_ADDRESS)
    before = ((old or {}).get("spec") or {}).get("clusterIP")
    if before and address != before and spec.get("type") != "ExternalName":
        yield rules.invalid("spec.clusterIPs[0]", [address], "may not change once set")


def _service_port(port: Tree, path: str, *, is_alone: bool) -> Iterator[StatusCause]:
    if not is_alone and not port.get("name"):
        yield rules.required(f"{path}.name")
    elif port.get("name"):
        yield from rules.name_errors(f"{path}.name", port["name"], dns_label_problems)
    yield from rules.port_number(f"{path}.port", port.get("port", 0))
    yield from rules.one_of(f"{path}.protocol", port.get("protocol"), containers.PROTOCOLS)
    if isinstance(port.get("targetPort"), int):
        yield from rules.port_number(f"{path}.targetPort", port["targetPort"])


def _is_address(text: str) -> bool:
    return validate.fits_format("ipv4", text) or validate.fits_format("ipv6", text)


def _is_range(text: str) -> bool:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return "/" in text


def node(tree: Tree, old: Tree | None) -> Iterator[StatusCause]:
    spec, before = tree.get("spec") or {}, (old or {}).get("spec") or {}
    yield from _taints(spec.get("taints") or [])
    for index, cidr in enumerate(spec.get("podCIDRs") or ()):
        if not _is_range(cidr):
            yield rules.invalid(f"spec.podCIDRs[{index}]", cidr, BAD_RANGE)
    if before.get("podCIDRs") and spec.get("podCIDRs") != before["podCIDRs"]:
        yield rules.forbidden("spec.podCIDRs", 'node updates may not change podCIDR except from "" to valid')
    if before.get("providerID") and spec.get("providerID") != before["providerID"]:
        yield rules.invalid("spec.providerID", None, "field cannot be modified once set")


def _taints(taints: list[Tree]) -> Iterator[StatusCause]:
    seen = set[tuple[str, str]]()
    for index, taint in enumerate(taints):
        # The real server names metadata.taints in these messages.
        here, key, effect = f"metadata.taints[{index}]", taint.get("key", ""), taint.get("effect", "")
        yield from rules.name_errors(f"{here}.key", key, qualified_name_problems)
        if effect:
            yield from rules.one_of(f"{here}.effect", effect, pods.EFFECTS)
        else:
            yield rules.required(f"{here}.effect")
        if (key, effect) in seen:
            shown = {"Key": key, "Value": taint.get("value", ""), "Effect": effect, "TimeAdded": None}
            twice = rules.duplicate(here, shown)
            why = f"{twice.message}: taints must be unique by key and effect pair"
            yield StatusCause(here, twice.reason, why)
        seen.add((key, effect))


def config_map(tree: Tree, old: Tree | None) -> Iterator[StatusCause]:
    for field in ("data", "binaryData"):
        for key in tree.get(field) or ():
            yield from rules.name_errors(f"{field}[{key}]", key, config_key_problems)
    yield from _locked(tree, old, "data", "binaryData")


def secret(tree: Tree, old: Tree | None) -> Iterator[StatusCause]:
    for key in tree.get("data") or ():
        yield from rules.name_errors(f"data[{key}]", key, config_key_problems)
    if old is not None:
        yield from rules.unchanged("type", tree.get("type"), old.get("type"))
    yield from _locked(tree, old, "data")


def _locked(tree: Tree, old: Tree | None, *fields: str) -> Iterator[StatusCause]:
    if old is None or not old.get("immutable"):
        return
    if not tree.get("immutable"):
        yield rules.forbidden("immutable", LOCKED)
    for field in fields:
        if (tree.get(field) or {}) != (old.get(field) or {}):
            yield rules.forbidden(field, LOCKED)


def lease(tree: Tree, old: Tree | None) -> Iterator[StatusCause]:
    spec = tree.get("spec") or {}
    duration = spec.get("leaseDurationSeconds")
    if duration is not None and duration <= 0:
        yield rules.invalid("spec.leaseDurationSeconds", duration, "must be greater than 0")
    yield from rules.not_negative(spec, "leaseTransitions")


def budget(tree: Tree, old: Tree | None) -> Iterator[StatusCause]:
    spec = tree.get("spec") or {}
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    if least is not None and most is not None:
        shown = {"MinAvailable": least, "Selector": spec.get("selector"), "MaxUnavailable": most}
        shown["UnhealthyPodEvictionPolicy"] = spec.get("unhealthyPodEvictionPolicy")
        yield rules.invalid("spec", shown, "minAvailable and maxUnavailable cannot be both set")
    yield from rules.int_or_percent("spec.minAvailable", least, at_most_all=True)
    yield from rules.int_or_percent("spec.maxUnavailable", most, at_most_all=True)
    yield from rules.label_selector(spec.get("selector") or {}, "spec.selector")
    yield from rules.one_of("spec.unhealthyPodEvictionPolicy", spec.get("unhealthyPodEvictionPolicy"), UNHEALTHY)


def priority_class(tree: Tree, old: Tree | None) -> Iterator[StatusCause]:
    name, value = tree["metadata"].get("name", ""), tree.get("value", 0)
    if name.startswith("system-") and SYSTEM_PRIORITIES.get(name) != value:
        why = f"{name} is not a known system priority class"
        if name in SYSTEM_PRIORITIES:
            why = f"value of {name} PriorityClass must be {SYSTEM_PRIORITIES[name]}"
        yield rules.forbidden("metadata.name", f"{RESERVED}{why}")
    elif not name.startswith("system-") and value > HIGHEST_OF_USERS:
        why = f"maximum allowed value of a user defined priority is {HIGHEST_OF_USERS}"
        yield rules.forbidden("value", why)
    yield from rules.one_of("preemptionPolicy", tree.get("preemptionPolicy"), POLICIES)
    if old is not None:
        if value != old.get("value", 0):
            yield rules.forbidden("value", "may not be changed in an update.")
        yield from rules.unchanged("preemptionPolicy", tree.get("preemptionPolicy"), old.get("preemptionPolicy"))


def event(tree: Tree, old: Tree | None) -> Iterator[StatusCause]:
    about, home = (tree.get("involvedObject") or {}).get("namespace", ""), tree["metadata"].get("namespace", "")
    # Events about cluster-scoped objects are in the namespace default or in that of their component.
    if about and about != home:
        yield rules.invalid("involvedObject.namespace", about, "does not match event.namespace")


def claim(tree: Tree, old: Tree | None) -> Iterator[StatusCause]:
    spec = tree["spec"]
    modes = spec.get("accessModes") or []
    if not modes:
        yield rules.required("spec.accessModes", "at least 1 access mode is required")
    for mode in modes:
        yield from rules.one_of("spec.accessModes", mode, ACCESS)
    if "storage" not in (spec.get("resources", {}).get("requests") or {}):
        yield rules.required("spec.resources[storage]")
    if old is not None and _but_growth(spec) != _but_growth(old["spec"]):
        yield rules.forbidden("spec", CLAIM_LOCKED)


def _but_growth(spec: Tree) -> Tree:
    """The spec without the fields that may change: a claim is bound once, and may grow."""
    free = ("resources", "volumeAttributesClassName", "volumeName", "storageClassName", "dataSourceRef")
    return {key: value for key, value in spec.items() if key not in free}


def volume(tree: Tree, old: Tree | None) -> Iterator[StatusCause]:
    spec = tree["spec"]
    if not spec.get("accessModes"):
        yield rules.required("spec.accessModes")
    if not spec.get("capacity"):
        yield rules.required("spec.capacity")
    if list(spec.get("capacity") or ()) != ["storage"]:
        yield rules.unsupported("spec.capacity", spec.get("capacity"), ("storage",))
    if not any(isinstance(value, dict) for key, value in spec.items() if key not in VOLUME_WORDS):
        yield rules.required("spec", "must specify a volume type")


def storage_class(tree: Tree, old: Tree | None) -> Iterator[StatusCause]:
    if not tree.get("provisioner"):
        yield rules.required("provisioner")
    for field in CLASS_FIELDS if old is not None else ():
        yield from rules.unchanged(field, tree.get(field) or None, (old or {}).get(field) or None, shown=None)


def role(tree: Tree, old: Tree | None) -> Iterator[StatusCause]:
    for index, rule in enumerate(tree.get("rules") or ()):
        here = f"rules[{index}]"
        if not rule.get("nonResourceURLs"):
            if not rule.get("apiGroups"):
                yield rules.required(f"{here}.apiGroups", "resource rules must supply at least one api group")
            if not rule.get("resources"):
                yield rules.required(f"{here}.resources", "resource rules must supply at least one resource")
        if not rule.get("verbs"):
            yield rules.required(f"{here}.verbs")


def role_binding(tree: Tree, old: Tree | None) -> Iterator[StatusCause]:
    yield from _binding(tree, old, ("Role", "ClusterRole"))


def cluster_role_binding(tree: Tree, old: Tree | None) -> Iterator[StatusCause]:
    yield from _binding(tree, old, ("ClusterRole",))


def _binding(tree: Tree, old: Tree | None, kinds: tuple[str, ...]) -> Iterator[StatusCause]:
    role = tree.get("roleRef") or {}
    if role.get("apiGroup") != RBAC:
        yield rules.unsupported("roleRef.apiGroup", role.get("apiGroup", ""), (RBAC,))
    if role.get("kind") not in kinds:
        yield rules.unsupported("roleRef.kind", role.get("kind", ""), kinds)
    if not role.get("name"):
        yield rules.required("roleRef.name")
    for index, subject in enumerate(tree.get("subjects") or ()):
        yield from _subject(subject, f"subjects[{index}]")
    if old is not None:
        shown = {"APIGroup": role.get("apiGroup"), "Kind": role.get("kind"), "Name": role.get("name")}
        yield from rules.unchanged("roleRef", role, old.get("roleRef"), shown=shown)


def _subject(subject: Tree, path: str) -> Iterator[StatusCause]:
    kind = subject.get("kind", "")
    if kind not in SUBJECTS:
        yield rules.unsupported(f"{path}.kind", kind, SUBJECTS)
    if not subject.get("name"):
        yield rules.required(f"{path}.name")
    if kind == "ServiceAccount" and not subject.get("namespace"):
        yield rules.required(f"{path}.namespace")


def errors(resource: Resource, tree: Tree, old: Tree | None) -> list[StatusCause]:
    found = metadata_errors(resource, tree["metadata"], old)
    check = CHECKS.get(resource.group_resource)
    return found + list(check(tree, old)) if check is not None else found


def _pod(tree: Tree, old: Tree | None) -> list[StatusCause]:
    found = list(_spec_errors(trees.encoded(tree["spec"])))
    return found if old is None else found + pods.update_errors(tree["spec"], old["spec"])


# Many pods share one spec.
@lru_cache(maxsize=1024)
def _spec_errors(data: bytes) -> tuple[StatusCause, ...]:
    return tuple(pods.spec_errors(trees.decoded(data), "spec"))


CHECKS: Final[dict[GroupResource, KindCheck]] = {
    resource.group_resource: check
    for resource, check in (
        (resources.PODS, _pod),
        (resources.DEPLOYMENTS, workloads.deployment),
        (resources.REPLICASETS, workloads.replica_set),
        (resources.STATEFULSETS, workloads.stateful_set),
        (resources.DAEMONSETS, workloads.daemon_set),
        (resources.JOBS, workloads.job),
        (resources.SERVICES, service),
        (resources.NODES, node),
        (resources.CONFIGMAPS, config_map),
        (resources.SECRETS, secret),
        (resources.LEASES, lease),
        (resources.PODDISRUPTIONBUDGETS, budget),
        (resources.PRIORITYCLASSES, priority_class),
        (resources.EVENTS, event),
        (resources.PERSISTENTVOLUMECLAIMS, claim),
        (resources.PERSISTENTVOLUMES, volume),
        (resources.STORAGECLASSES, storage_class),
        (resources.ROLES, role),
        (resources.CLUSTERROLES, role),
        (resources.ROLEBINDINGS, role_binding),
        (resources.CLUSTERROLEBINDINGS, cluster_role_binding),
    )
}
