"""Defaults of pods: tolerations, service account, priority, QoS class and first status.

`kinds` calls `complete_pod` for every create and update of a pod, and `complete_priority_class` for priority classes.
The service account's token is not mounted: nothing in an embedded cluster would read it. The two system priority
classes exist whether they are stored or not."""

from functools import lru_cache
from typing import Final

from numalign.api.decode import decode
from numalign.api.objects import qos, requests
from numalign.api.objects.pod import Pod
from numalign.simulator import trees
from numalign.simulator.apiserver.defaults import podspecs
from numalign.simulator.apiserver.storage import errors
from numalign.simulator.apiserver.storage.resources import PODS, PRIORITYCLASSES, RUNTIMECLASSES, SERVICEACCOUNTS
from numalign.simulator.apiserver.storage.store import ObjectReader
from numalign.simulator.trees import Tree

SYSTEM_PRIORITIES: Final = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
HIGHEST_OF_USERS: Final = 1_000_000_000
PREEMPTING: Final = "PreemptLowerPriority"

ResolvedPriority = tuple[str, int, str]
"""The name of the class, the priority and the preemption policy."""
DEFAULT_ACCOUNT: Final = "default"
TOLERATION_SECONDS: Final = 300
NODE_TAINTS: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
GATED: Final = "Scheduling is blocked due to non-empty scheduling gates"
NO_OVERHEAD: Final = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
OTHER_OVERHEAD: Final = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"


def resolve_priority(pod: Tree, lookup: ObjectReader) -> None:
    spec = pod["spec"]
    name, priority, policy = _resolved(pod, spec.get("priorityClassName") or "", lookup)
    given = spec.get("priority")
    if given is not None and given != priority:
        raise _priority_conflict(pod, f"the integer value of priority ({given})", str(priority))
    chosen = spec.get("preemptionPolicy")
    if chosen is not None and chosen != policy:
        raise _priority_conflict(pod, f"the string value of PreemptionPolicy ({chosen})", policy)
    if name:
        spec["priorityClassName"] = name
    spec["priority"], spec["preemptionPolicy"] = priority, policy


def _resolved(pod: Tree, name: str, lookup: ObjectReader) -> ResolvedPriority:
    if not name:
        default = _default(lookup)
        return _of(default) if default is not None else ("", 0, PREEMPTING)
    if name in SYSTEM_PRIORITIES:
        return name, SYSTEM_PRIORITIES[name], PREEMPTING
    found = lookup(PRIORITYCLASSES, name)
    if found is None:
        why = f"no PriorityClass with name {name} was found"
        raise errors.forbidden(PODS, pod["metadata"].get("name", ""), why)
    return _of(found)


def _of(found: Tree) -> ResolvedPriority:
    return found["metadata"]["name"], found.get("value", 0), found.get("preemptionPolicy") or PREEMPTING


def _default(lookup: ObjectReader) -> Tree | None:
    """The class with the lowest value, if several are marked as default."""
    marked = [each for each in lookup.all(PRIORITYCLASSES) if each.get("globalDefault")]
    return min(marked, key=lambda each: int(each.get("value", 0)), default=None)


def _priority_conflict(pod: Tree, what: str, computed: str) -> errors.StatusError:
    why = (
        f"{what} must not be provided in pod spec; priority admission controller computed {computed} "
        "from the given PriorityClass name"
    )
    return errors.forbidden(PODS, pod["metadata"].get("name", ""), why)


def complete_priority_class(tree: Tree, old: Tree | None, lookup: ObjectReader) -> None:
    """Rejects a second default class."""
    tree.setdefault("preemptionPolicy", PREEMPTING)
    name = tree["metadata"].get("name", "")
    if not tree.get("globalDefault"):
        tree.pop("globalDefault", None)
        return
    other = _default(lookup)
    if other is not None and other["metadata"]["name"] != name:
        why = f"PriorityClass {other['metadata']['name']} is already marked as default. Only one default can exist"
        raise errors.forbidden(PRIORITYCLASSES, name, why)


def complete_pod(pod: Tree, old: Tree | None, lookup: ObjectReader) -> None:
    data, qos_class = _completed(trees.encoded(pod.get("spec") or {}))
    pod["spec"] = trees.decoded(data)
    if old is None:
        _admit_new(pod, qos_class, lookup)
    else:
        _keep_admitted(pod["spec"], old["spec"])


# Many pods share one spec, and decoding bytes is faster than completing the spec again.
@lru_cache(maxsize=1024)
def _completed(data: bytes) -> tuple[bytes, str]:
    """A spec with all defaults that depend on the spec alone, and its QoS class."""
    spec = trees.decoded(data)
    if b"null" in data:
        spec = podspecs.drop_nulls(spec)
    podspecs.complete_spec(spec, is_template=False)
    podspecs.canonicalise(spec, "overhead")
    if spec.get("resources"):
        _complete_pod_level(spec)
    _add_tolerations(spec)
    return trees.encoded(spec), str(_class(spec))


def _admit_new(pod: Tree, qos_class: str, lookup: ObjectReader) -> None:
    """What happens to a new pod only."""
    _set_service_account(pod, lookup)
    resolve_priority(pod, lookup)
    _apply_runtime_class(pod, lookup)
    pod["status"] = _first_status(pod, qos_class)


def _apply_runtime_class(pod: Tree, lookup: ObjectReader) -> None:
    """Sets the overhead of the pod's runtime class, and where its pods may run."""
    spec, name = pod["spec"], pod["metadata"].get("name", "")
    wanted = spec.get("runtimeClassName")
    found = lookup(RUNTIMECLASSES, wanted) if wanted else None
    if wanted and found is None:
        raise errors.forbidden(PODS, name, f'pod rejected: RuntimeClass "{wanted}" not found')
    overhead, given = ((found or {}).get("overhead") or {}).get("podFixed"), spec.get("overhead")
    if overhead is None:
        if given:
            raise errors.forbidden(PODS, name, NO_OVERHEAD)
    else:
        spec["overhead"] = dict(overhead)
        podspecs.canonicalise(spec, "overhead")
        if given and given != spec["overhead"]:
            raise errors.forbidden(PODS, name, OTHER_OVERHEAD)
    _narrow(spec, name, (found or {}).get("scheduling") or {})


def _narrow(spec: Tree, name: str, scheduling: Tree) -> None:
    for key, value in (scheduling.get("nodeSelector") or {}).items():
        own = spec.setdefault("nodeSelector", {}).setdefault(key, value)
        if own != value:
            why = f"runtimeClass.scheduling.nodeSelector[{key}] = {value}; pod.spec.nodeSelector[{key}] = {own}"
            raise errors.forbidden(PODS, name, f"conflict: {why}")
    known = spec.get("tolerations") or []
    more = [each for each in scheduling.get("tolerations") or () if each not in known]
    if more:
        spec["tolerations"] = [*known, *more]


def _keep_admitted(spec: Tree, before: Tree) -> None:
    """Keeps fields that admission set and that an update may omit."""
    for field in ("priority", "preemptionPolicy", "serviceAccountName", "serviceAccount"):
        if field not in spec and field in before:
            spec[field] = before[field]


def _set_service_account(pod: Tree, lookup: ObjectReader) -> None:
    spec, metadata = pod["spec"], pod["metadata"]
    name, namespace = spec.get("serviceAccountName") or DEFAULT_ACCOUNT, metadata.get("namespace", "")
    spec["serviceAccountName"] = spec["serviceAccount"] = name
    # The default account may be created shortly after its namespace; only its name is needed here.
    if name != DEFAULT_ACCOUNT and lookup(SERVICEACCOUNTS, name, namespace) is None:
        why = f'error looking up service account {namespace}/{name}: serviceaccount "{name}" not found'
        raise errors.forbidden(PODS, metadata.get("name", ""), why)


def _add_tolerations(spec: Tree) -> None:
    tolerations = spec.get("tolerations") or []
    for taint in NODE_TAINTS:
        if not any(_tolerates(each, taint) for each in tolerations):
            more = {"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": TOLERATION_SECONDS}
            tolerations = [*tolerations, more]
    spec["tolerations"] = tolerations


def _tolerates(toleration: Tree, taint: str) -> bool:
    return toleration.get("key", "") in ("", taint) and toleration.get("effect", "") in ("", "NoExecute")


def _first_status(pod: Tree, qos_class: str) -> Tree:
    status: Tree = {"phase": "Pending"}
    if pod["spec"].get("schedulingGates"):
        condition = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "message": GATED}
        since = {"lastTransitionTime": pod["metadata"].get("creationTimestamp")}
        status["conditions"] = [condition | since]
    status["qosClass"] = qos_class
    return status


def _class(spec: Tree) -> qos.QoS:
    whole = spec.get("resources")
    if whole and (whole.get("requests") or whole.get("limits")):
        return podspecs.qos_class(whole)
    containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    return qos.agreed({podspecs.qos_class(each.get("resources")) for each in containers})


def _complete_pod_level(spec: Tree) -> None:
    """Derives pod-level requests and limits from the containers, by the rules of `api`."""
    podspecs.complete_resources(spec["resources"], is_template=True)
    whole = requests.defaulted(decode.decode(Pod, {"spec": spec})).spec.resources
    found = {"limits": whole.limits, "requests": whole.requests}
    for field, named in found.items():
        if named:
            spec["resources"][field] = {name: str(amount) for name, amount in sorted(named.items())}
