"""What the smaller kinds must keep to: services, nodes, configuration, leases, budgets, classes, events, storage."""

import ipaddress
from collections.abc import Iterator
from typing import Final

from numalign.simulator.apiserver.defaults import priorities
from numalign.simulator.apiserver.schemas import formats
from numalign.simulator.apiserver.storage import labelsyntax
from numalign.simulator.apiserver.storage.errors import Cause
from numalign.simulator.apiserver.validation import containerchecks, podchecks, rules, selectorchecks
from numalign.simulator.trees import Tree

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


def service(tree: Tree, old: Tree | None) -> Iterator[Cause]:
    spec = tree["spec"]
    ports = spec.get("ports") or []
    if not ports and spec.get("type") != "ExternalName" and spec.get("clusterIP") != "None":
        yield rules.required("spec.ports")
    for index, port in enumerate(ports):
        yield from _service_port(port, f"spec.ports[{index}]", is_alone=len(ports) == 1)
    yield from rules.choice("spec.type", spec.get("type"), SERVICE_TYPES)
    address = spec.get("clusterIP", "")
    if address not in ("", "None") and not _is_address(address):
        yield rules.invalid("spec.clusterIPs[0]", address, BAD_ADDRESS)
    before = ((old or {}).get("spec") or {}).get("clusterIP")
    if before and address != before and spec.get("type") != "ExternalName":
        yield rules.invalid("spec.clusterIPs[0]", [address], "may not change once set")


def _service_port(port: Tree, path: str, *, is_alone: bool) -> Iterator[Cause]:
    if not is_alone and not port.get("name"):
        yield rules.required(f"{path}.name")
    elif port.get("name"):
        yield from rules.named(f"{path}.name", port["name"], rules.label_problems)
    yield from rules.port_number(f"{path}.port", port.get("port", 0))
    yield from rules.choice(f"{path}.protocol", port.get("protocol"), containerchecks.PROTOCOLS)
    if isinstance(port.get("targetPort"), int):
        yield from rules.port_number(f"{path}.targetPort", port["targetPort"])


def _is_address(text: str) -> bool:
    return formats.fits("ipv4", text) or formats.fits("ipv6", text)


def _is_range(text: str) -> bool:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return "/" in text


def node(tree: Tree, old: Tree | None) -> Iterator[Cause]:
    spec, before = tree.get("spec") or {}, (old or {}).get("spec") or {}
    yield from _taints(spec.get("taints") or [])
    for index, cidr in enumerate(spec.get("podCIDRs") or ()):
        if not _is_range(cidr):
            yield rules.invalid(f"spec.podCIDRs[{index}]", cidr, BAD_RANGE)
    if before.get("podCIDRs") and spec.get("podCIDRs") != before["podCIDRs"]:
        yield rules.forbidden("spec.podCIDRs", 'node updates may not change podCIDR except from "" to valid')
    if before.get("providerID") and spec.get("providerID") != before["providerID"]:
        yield rules.invalid("spec.providerID", None, "field cannot be modified once set")


def _taints(taints: list[Tree]) -> Iterator[Cause]:
    seen = set[tuple[str, str]]()
    for index, taint in enumerate(taints):
        # The real server looks for them in the metadata, by its own account.
        here, key, effect = f"metadata.taints[{index}]", taint.get("key", ""), taint.get("effect", "")
        yield from rules.named(f"{here}.key", key, labelsyntax.key_problems)
        if effect:
            yield from rules.choice(f"{here}.effect", effect, podchecks.EFFECTS)
        else:
            yield rules.required(f"{here}.effect")
        if (key, effect) in seen:
            shown = {"Key": key, "Value": taint.get("value", ""), "Effect": effect, "TimeAdded": None}
            twice = rules.duplicate(here, shown)
            why = f"{twice.message}: taints must be unique by key and effect pair"
            yield Cause(here, twice.reason, why)
        seen.add((key, effect))


def config_map(tree: Tree, old: Tree | None) -> Iterator[Cause]:
    for field in ("data", "binaryData"):
        for key in tree.get(field) or ():
            yield from rules.named(f"{field}[{key}]", key, rules.config_key_problems)
    yield from _locked(tree, old, "data", "binaryData")


def secret(tree: Tree, old: Tree | None) -> Iterator[Cause]:
    for key in tree.get("data") or ():
        yield from rules.named(f"data[{key}]", key, rules.config_key_problems)
    if old is not None:
        yield from rules.unchanged("type", tree.get("type"), old.get("type"))
    yield from _locked(tree, old, "data")


def _locked(tree: Tree, old: Tree | None, *fields: str) -> Iterator[Cause]:
    if old is None or not old.get("immutable"):
        return
    if not tree.get("immutable"):
        yield rules.forbidden("immutable", LOCKED)
    for field in fields:
        if (tree.get(field) or {}) != (old.get(field) or {}):
            yield rules.forbidden(field, LOCKED)


def lease(tree: Tree, old: Tree | None) -> Iterator[Cause]:
    spec = tree.get("spec") or {}
    duration = spec.get("leaseDurationSeconds")
    if duration is not None and duration <= 0:
        yield rules.invalid("spec.leaseDurationSeconds", duration, "must be greater than 0")
    yield from rules.not_negative(spec, "leaseTransitions")


def budget(tree: Tree, old: Tree | None) -> Iterator[Cause]:
    spec = tree.get("spec") or {}
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    if least is not None and most is not None:
        shown = {"MinAvailable": least, "Selector": spec.get("selector"), "MaxUnavailable": most}
        shown["UnhealthyPodEvictionPolicy"] = spec.get("unhealthyPodEvictionPolicy")
        yield rules.invalid("spec", shown, "minAvailable and maxUnavailable cannot be both set")
    yield from rules.share("spec.minAvailable", least, at_most_all=True)
    yield from rules.share("spec.maxUnavailable", most, at_most_all=True)
    yield from selectorchecks.label_selector(spec.get("selector") or {}, "spec.selector")
    yield from rules.choice("spec.unhealthyPodEvictionPolicy", spec.get("unhealthyPodEvictionPolicy"), UNHEALTHY)


def priority_class(tree: Tree, old: Tree | None) -> Iterator[Cause]:
    name, value = tree["metadata"].get("name", ""), tree.get("value", 0)
    if name.startswith("system-") and priorities.SYSTEM.get(name) != value:
        why = f"{name} is not a known system priority class"
        if name in priorities.SYSTEM:
            why = f"value of {name} PriorityClass must be {priorities.SYSTEM[name]}"
        yield rules.forbidden("metadata.name", f"{RESERVED}{why}")
    elif not name.startswith("system-") and value > priorities.HIGHEST_OF_USERS:
        why = f"maximum allowed value of a user defined priority is {priorities.HIGHEST_OF_USERS}"
        yield rules.forbidden("value", why)
    yield from rules.choice("preemptionPolicy", tree.get("preemptionPolicy"), POLICIES)
    if old is not None:
        if value != old.get("value", 0):
            yield rules.forbidden("value", "may not be changed in an update.")
        yield from rules.unchanged("preemptionPolicy", tree.get("preemptionPolicy"), old.get("preemptionPolicy"))


def event(tree: Tree, old: Tree | None) -> Iterator[Cause]:
    about, home = (tree.get("involvedObject") or {}).get("namespace", ""), tree["metadata"].get("namespace", "")
    # What has no namespace itself is told of in default or wherever its component lives.
    if about and about != home:
        yield rules.invalid("involvedObject.namespace", about, "does not match event.namespace")


def claim(tree: Tree, old: Tree | None) -> Iterator[Cause]:
    spec = tree["spec"]
    modes = spec.get("accessModes") or []
    if not modes:
        yield rules.required("spec.accessModes", "at least 1 access mode is required")
    for mode in modes:
        yield from rules.choice("spec.accessModes", mode, ACCESS)
    if "storage" not in (spec.get("resources", {}).get("requests") or {}):
        yield rules.required("spec.resources[storage]")
    if old is not None and _but_growth(spec) != _but_growth(old["spec"]):
        yield rules.forbidden("spec", CLAIM_LOCKED)


def _but_growth(spec: Tree) -> Tree:
    """A claim is bound once, and may grow; what its class says about attributes may change."""
    free = ("resources", "volumeAttributesClassName", "volumeName", "storageClassName", "dataSourceRef")
    return {key: value for key, value in spec.items() if key not in free}


def volume(tree: Tree, old: Tree | None) -> Iterator[Cause]:
    spec = tree["spec"]
    if not spec.get("accessModes"):
        yield rules.required("spec.accessModes")
    if not spec.get("capacity"):
        yield rules.required("spec.capacity")
    if list(spec.get("capacity") or ()) != ["storage"]:
        yield rules.unsupported("spec.capacity", spec.get("capacity"), ("storage",))
    if not any(isinstance(value, dict) for key, value in spec.items() if key not in VOLUME_WORDS):
        yield rules.required("spec", "must specify a volume type")


VOLUME_WORDS: Final = ("capacity", "claimRef", "nodeAffinity")


def storage_class(tree: Tree, old: Tree | None) -> Iterator[Cause]:
    if not tree.get("provisioner"):
        yield rules.required("provisioner")
    for field in CLASS_FIELDS if old is not None else ():
        yield from rules.unchanged(field, tree.get(field) or None, (old or {}).get(field) or None, shown=None)
