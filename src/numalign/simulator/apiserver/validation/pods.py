"""Validates pod specs, in pods and in the templates of workloads, and updates of pods.

`kinds` and `workloads` call `spec_errors` with the spec after defaulting and its path. A simple pod costs little,
because most checks depend on fields that it does not have.

`update_errors` allows changes of images, shorter deadlines, more tolerations, fewer scheduling gates and little else.
While a pod is gated, its node selector and node affinity may change too; that they only get narrower is not checked.
The real server appends the difference of its structs to the message; this one does not."""

from collections.abc import Iterator
from typing import Final

from numalign.simulator.apiserver.storage.errors import StatusCause
from numalign.simulator.apiserver.storage.names import dns_label_problems, qualified_name_problems, subdomain_problems
from numalign.simulator.apiserver.validation import rules
from numalign.simulator.apiserver.validation.containers import container_errors, shared_host_ports, whole_pod_errors
from numalign.simulator.trees import Tree

RESTARTS: Final = ("Always", "OnFailure", "Never")
DNS: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
UNSATISFIABLE: Final = ("DoNotSchedule", "ScheduleAnyway")
MAX_DEADLINE: Final = 2**31 - 1
KEYLESS: Final = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
FREE: Final = ("containers", "initContainers", "activeDeadlineSeconds", "tolerations", "schedulingGates")
FREE_WHILE_GATED: Final = ("nodeSelector", "affinity")
ONLY_THESE: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
COUNT: Final = "pod updates may not add or remove containers"
EMPTY: Final[tuple[object, ...]] = ({}, [], "", None)


def spec_errors(spec: Tree, path: str) -> list[StatusCause]:
    volumes = [volume.get("name") for volume in spec.get("volumes") or ()]
    found = [*_volumes(spec["volumes"], f"{path}.volumes")] if volumes else []
    found += _containers(spec, path, frozenset(filter(None, volumes)))
    found += rules.one_of(f"{path}.restartPolicy", spec.get("restartPolicy"), RESTARTS)
    found += rules.one_of(f"{path}.dnsPolicy", spec.get("dnsPolicy"), DNS)
    if spec.get("resources"):
        found += whole_pod_errors(spec)
    if spec.get("nodeSelector"):
        found += rules.label_map(f"{path}.nodeSelector", spec["nodeSelector"])
    if spec.get("tolerations"):
        found += _tolerations(spec["tolerations"], f"{path}.tolerations")
    return [*found, *_rest(spec, path)]


def _rest(spec: Tree, path: str) -> Iterator[StatusCause]:
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= MAX_DEADLINE:
        why = f"must be between 1 and {MAX_DEADLINE}, inclusive"
        yield rules.invalid(f"{path}.activeDeadlineSeconds", deadline, why)
    if spec.get("nodeName"):
        yield from rules.name_errors(f"{path}.nodeName", spec["nodeName"], subdomain_problems)
    if spec.get("serviceAccountName"):
        yield from rules.name_errors(f"{path}.serviceAccountName", spec["serviceAccountName"], subdomain_problems)
    if spec.get("hostname"):
        yield from rules.name_errors(f"{path}.hostname", spec["hostname"], dns_label_problems)
    if spec.get("affinity"):
        yield from rules.affinity(spec["affinity"], f"{path}.affinity")
    if spec.get("schedulingGates"):
        yield from _gates(spec, path)
    for index, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        yield from _spread(constraint, f"{path}.topologySpreadConstraints[{index}]")


def _containers(spec: Tree, path: str, volumes: frozenset[str]) -> list[StatusCause]:
    containers, on_host = spec.get("containers") or [], bool(spec.get("hostNetwork"))
    if not containers:
        return [rules.required(f"{path}.containers")]
    found, names = list[StatusCause](), set[str]()
    for index, container in enumerate(containers):
        here = f"{path}.containers[{index}]"
        found += container_errors(container, here, volumes, on_host=on_host)
        found += _unique(container, here, names)
    found += shared_host_ports(containers, f"{path}.containers")
    for index, container in enumerate(spec.get("initContainers") or ()):
        here = f"{path}.initContainers[{index}]"
        found += container_errors(container, here, volumes, on_host=on_host)
        found += _unique(container, here, names)
    return found


def _unique(container: Tree, path: str, names: set[str]) -> list[StatusCause]:
    name = container.get("name", "")
    if name in names:
        return [rules.duplicate(f"{path}.name", name)]
    names.add(name)
    return []


def _volumes(volumes: list[Tree], path: str) -> Iterator[StatusCause]:
    names = set[str]()
    for index, volume in enumerate(volumes):
        here, name = f"{path}[{index}]", volume.get("name", "")
        for extra in sorted(volume.keys() - {"name"})[1:]:
            yield rules.forbidden(f"{here}.{extra}", "may not specify more than 1 volume type")
        yield from rules.required_name(f"{here}.name", name, dns_label_problems)
        if name in names:
            yield rules.duplicate(f"{here}.name", name)
        names.add(name)


def _tolerations(tolerations: list[Tree], path: str) -> list[StatusCause]:
    found = list[StatusCause]()
    for index, each in enumerate(tolerations):
        # The tolerations that defaulting appends are valid.
        if "tolerationSeconds" not in each or each.get("operator") != "Exists" or each.get("effect") != "NoExecute":
            found += _toleration(each, f"{path}[{index}]")
    return found


def _toleration(toleration: Tree, path: str) -> Iterator[StatusCause]:
    key, operator = toleration.get("key", ""), toleration.get("operator", "")
    value, effect = toleration.get("value", ""), toleration.get("effect", "")
    if key:
        yield from rules.name_errors(f"{path}.key", key, qualified_name_problems)
    elif operator != "Exists":
        yield rules.invalid(f"{path}.operator", operator, KEYLESS)
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        why = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        yield rules.invalid(f"{path}.effect", effect, why)
    if operator == "Exists" and value:
        yield rules.invalid(f"{path}.operator", value, "value must be empty when `operator` is 'Exists'")
    elif operator not in ("", "Exists"):
        yield from rules.one_of(f"{path}.operator", operator, ("Equal", "Exists"))
    yield from rules.one_of(f"{path}.effect", effect, EFFECTS)


def _gates(spec: Tree, path: str) -> Iterator[StatusCause]:
    names = set[str]()
    for index, gate in enumerate(spec["schedulingGates"]):
        name = gate.get("name", "")
        yield from rules.name_errors(f"{path}.schedulingGates[{index}]", name, qualified_name_problems)
        if name in names:
            yield rules.duplicate(f"{path}.schedulingGates[{index}]", name)
        names.add(name)
    if spec.get("nodeName"):
        yield rules.forbidden(f"{path}.nodeName", "cannot be set until all schedulingGates have been cleared")


def _spread(constraint: Tree, path: str) -> Iterator[StatusCause]:
    skew = constraint.get("maxSkew", 0)
    if skew <= 0:
        yield rules.invalid(f"{path}.maxSkew", skew, "must be greater than zero")
    if not constraint.get("topologyKey"):
        yield rules.required(f"{path}.topologyKey", "can not be empty")
    otherwise = constraint.get("whenUnsatisfiable", "")
    if otherwise not in UNSATISFIABLE:
        yield rules.unsupported(f"{path}.whenUnsatisfiable", otherwise, UNSATISFIABLE)


def update_errors(spec: Tree, old: Tree) -> list[StatusCause]:
    if spec == old:
        return []
    for field in ("containers", "initContainers"):
        if len(spec.get(field) or ()) != len(old.get(field) or ()):
            return [rules.forbidden(f"spec.{field}", COUNT)]
    found = [*_deadline(spec, old), *_gate_changes(spec, old)]
    if not _tolerations_grow(spec, old) or _fixed(spec, old) != _fixed(old, old):
        found.append(rules.forbidden("spec", ONLY_THESE))
    return found


def _deadline(spec: Tree, old: Tree) -> Iterator[StatusCause]:
    now, before = spec.get("activeDeadlineSeconds"), old.get("activeDeadlineSeconds")
    if before is None:
        return
    if now is None:
        yield rules.invalid("spec.activeDeadlineSeconds", None, "must not update from a positive integer to nil value")
    elif now > before:
        yield rules.invalid("spec.activeDeadlineSeconds", now, "must be less than or equal to previous value")


def _gate_changes(spec: Tree, old: Tree) -> Iterator[StatusCause]:
    known = [gate.get("name") for gate in old.get("schedulingGates") or ()]
    for index, gate in enumerate(spec.get("schedulingGates") or ()):
        if gate.get("name") not in known:
            why = f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'"
            yield rules.forbidden(f"spec.schedulingGates[{index}].name", why)


def _tolerations_grow(spec: Tree, old: Tree) -> bool:
    now = [_patience_aside(each) for each in spec.get("tolerations") or ()]
    return all(_patience_aside(each) in now for each in old.get("tolerations") or ())


def _patience_aside(toleration: Tree) -> Tree:
    """The toleration without tolerationSeconds, which may change."""
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}


def _fixed(spec: Tree, old: Tree) -> Tree:
    """The fields that must not change; empty values count as absent."""
    free = (*FREE, *FREE_WHILE_GATED) if old.get("schedulingGates") else FREE
    rest = {field: value for field, value in spec.items() if field not in free and value not in EMPTY}
    for field in ("containers", "initContainers"):
        rest[field] = [
            {key: value for key, value in container.items() if key != "image" and value not in EMPTY}
            for container in spec.get(field) or ()
        ]
    return rest
