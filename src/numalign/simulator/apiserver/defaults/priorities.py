"""Priority by class: what number a pod's class stands for, and what classes may say.

`pods` calls `resolve` when a pod is created, `classes` completes a class itself. The two classes of the system exist
whether anybody stored them or not."""

from typing import Final

from numalign.simulator.apiserver.storage import errors
from numalign.simulator.apiserver.storage.resources import PODS, PRIORITYCLASSES
from numalign.simulator.apiserver.storage.state import Lookup
from numalign.simulator.trees import Tree

SYSTEM: Final = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
HIGHEST_OF_USERS: Final = 1_000_000_000
PREEMPTING: Final = "PreemptLowerPriority"

Meaning = tuple[str, int, str]
"""Name of the class, priority, preemption policy."""


def resolve(pod: Tree, lookup: Lookup) -> None:
    spec = pod["spec"]
    name, priority, policy = _meaning(pod, spec.get("priorityClassName") or "", lookup)
    given = spec.get("priority")
    if given is not None and given != priority:
        raise _contradiction(pod, f"the integer value of priority ({given})", str(priority))
    chosen = spec.get("preemptionPolicy")
    if chosen is not None and chosen != policy:
        raise _contradiction(pod, f"the string value of PreemptionPolicy ({chosen})", policy)
    if name:
        spec["priorityClassName"] = name
    spec["priority"], spec["preemptionPolicy"] = priority, policy


def _meaning(pod: Tree, name: str, lookup: Lookup) -> Meaning:
    if not name:
        default = _default(lookup)
        return _of(default) if default is not None else ("", 0, PREEMPTING)
    if name in SYSTEM:
        return name, SYSTEM[name], PREEMPTING
    found = lookup(PRIORITYCLASSES, name)
    if found is None:
        why = f"no PriorityClass with name {name} was found"
        raise errors.forbidden(PODS, pod["metadata"].get("name", ""), why)
    return _of(found)


def _of(found: Tree) -> Meaning:
    return found["metadata"]["name"], found.get("value", 0), found.get("preemptionPolicy") or PREEMPTING


def _default(lookup: Lookup) -> Tree | None:
    """Of several that call themselves the default the lowest counts."""
    marked = [each for each in lookup.all(PRIORITYCLASSES) if each.get("globalDefault")]
    return min(marked, key=lambda each: int(each.get("value", 0)), default=None)


def _contradiction(pod: Tree, what: str, computed: str) -> errors.StatusError:
    why = (
        f"{what} must not be provided in pod spec; priority admission controller computed {computed} "
        "from the given PriorityClass name"
    )
    return errors.forbidden(PODS, pod["metadata"].get("name", ""), why)


def complete(tree: Tree, old: Tree | None, lookup: Lookup) -> None:
    """A class: one default is enough."""
    tree.setdefault("preemptionPolicy", PREEMPTING)
    name = tree["metadata"].get("name", "")
    if not tree.get("globalDefault"):
        tree.pop("globalDefault", None)
        return
    other = _default(lookup)
    if other is not None and other["metadata"]["name"] != name:
        why = f"PriorityClass {other['metadata']['name']} is already marked as default. Only one default can exist"
        raise errors.forbidden(PRIORITYCLASSES, name, why)
