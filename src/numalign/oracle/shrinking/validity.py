"""Checks whether a case is valid: everything that it names exists, and its node is possible.

`shrink` rejects a candidate with a flaw that its origin does not have; otherwise the real component and the model would
disagree about CPUs that no machine has. Generated cases have no flaw. A case that only names its machine is not checked
against it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import ceil

from numalign.api.attributes import cpuset
from numalign.oracle.shrinking import anatomy
from numalign.oracle.shrinking.generic import Case

STRICT = "strict-cpu-reservation"


def flaws(case: Case) -> frozenset[str]:
    """The flaws of the case, as sentences about a valid one."""
    found: set[str] = set()
    for look in (_machine, _cpus, _reserved, _zones, _memory, _plugins, _pods, _steps, _ops, _merge):
        found.update(look(case))
    return frozenset(found)


def _machine(case: Case) -> Iterator[str]:
    topology = anatomy.machine(case)
    if topology is None:
        return
    listed = [cpu for core in anatomy.cores(topology) for cpu in core["cpus"]]
    if not listed or len(listed) != len(set(listed)):
        yield "a machine has CPUs, each of them once"
    if topology["num_cpus"] != len(listed):
        yield "num_cpus counts the CPUs"
    if topology["num_sockets"] != len({core["socket"] for core in anatomy.cores(topology)}):
        yield "num_sockets counts the sockets"
    highest = max((zone["id"] for zone in topology["numa"]), default=0)
    if any(len(zone["distances"]) <= highest for zone in topology["numa"]):
        yield "distances reach every zone"


def _cpus(case: Case) -> Iterator[str]:
    """The CPU assignments before a CPU manager case begins."""
    topology = anatomy.machine(case)
    if topology is None or "default" not in case:
        return
    every, held = anatomy.cpus(topology), anatomy.assigned(case)
    default, reserved = cpuset.parse(case["default"]), cpuset.parse(case["reserved_cpus"])
    if (default | held | reserved) & ~every:
        yield "only CPUs of the machine are held, shared or reserved"
    if default & held or every & ~(default | held | reserved):
        yield "every CPU is either shared or held"
    # The CPUs that a policy reserves by itself are unknown here, so no holder may overlap them.
    if held & reserved or (held and not reserved):
        yield "no container holds reserved CPUs"
    if case["options"].get(STRICT) != "true" and reserved & ~default:
        yield "reserved CPUs are shared unless the reservation is strict"


def _reserved(case: Case) -> Iterator[str]:
    topology, where = anatomy.machine(case), case.get("config") or case
    if topology is None or "reserved_cpus" not in where:
        return
    count = where["num_reserved"] if "num_reserved" in where else ceil(where["reserved_cpu_milli"] / 1000)
    reserved = cpuset.parse(where["reserved_cpus"])
    if reserved & ~anatomy.cpus(topology):
        yield "only CPUs of the machine are reserved"
    if (reserved and reserved.bit_count() != count) or not 0 < count <= topology["num_cpus"]:
        yield "as many CPUs are reserved as there are to reserve"


def _zones(case: Case) -> Iterator[str]:
    zones = anatomy.zone_ids(case)
    if zones is None:
        return
    if not zones or zones != sorted(set(zones)):
        yield "zones are listed once, in the order of their ids"
    masks = [hint["mask"] for hint in anatomy.hints(case) if hint["mask"] is not None]
    if any(not mask or not set(mask) <= set(zones) for mask in masks):
        yield "a mask names zones of the machine"
    if any(not set(device["numa"] or ()) <= set(zones) for device in anatomy.devices(case)):
        yield "a device is in zones of the machine"
    reserved = {int(zone) for zone in case.get("reserved") or ()}
    reserved |= {each["numa"] for each in (case.get("config") or {}).get("reserved_memory") or ()}
    if not reserved <= set(zones):
        yield "memory is reserved in zones of the machine"
    if anatomy.memory_nodes(case) and [node["id"] for node in anatomy.memory_nodes(case)] != zones:
        yield "every zone says what memory it has"


def _memory(case: Case) -> Iterator[str]:
    nodes = anatomy.memory_nodes(case)
    if not nodes:
        return
    if len({tuple(anatomy.page_sizes(node)) for node in nodes}) > 1:
        yield "every zone knows the same page sizes"
    limits = [*(case.get("reserved") or {}).values()]
    limits += [each["limits"] for each in (case.get("config") or {}).get("reserved_memory") or ()]
    if sum(each.get("memory", 0) for each in limits) <= 0:
        yield "some memory is reserved"
    known = anatomy.page_resources(case)
    asked = {name for each in anatomy.requirements(case) for name in each.get("requests") or ()}
    if any(name.startswith("hugepages-") and name not in known for name in asked):
        yield "pods ask for page sizes of the machine"


def _plugins(case: Case) -> Iterator[str]:
    for plugin in anatomy.plugins(case).values():
        ids = [device["id"] for device in plugin["devices"]]
        if not ids or len(ids) != len(set(ids)):
            yield "a plugin has devices, each of them once"
    asked = {name for each in anatomy.requirements(case) for name in each.get("requests") or ()}
    if any("/" in name and name not in anatomy.plugins(case) for name in asked):
        yield "pods ask for devices of a plugin"


def _pods(case: Case) -> Iterator[str]:
    uids = [pod["uid"] for pod in anatomy.pods(case)]
    if len(uids) != len(set(uids)):
        yield "every pod has a uid of its own"
    for pod in anatomy.pods(case):
        names = [each["name"] for each in anatomy.containers(pod)]
        if not pod["containers"] or len(names) != len(set(names)):
            yield "a pod has containers, each with a name of its own"
        if any(_lacks_limits(each) for each in anatomy.containers(pod)):
            yield "devices and pages have limits"
    # The API server defaults requests from limits.
    if any(not set(each.get("limits") or ()) <= set(each.get("requests") or ()) for each in anatomy.requirements(case)):
        yield "what has a limit is requested"


def _lacks_limits(container: Case) -> bool:
    return not set(container.get("requests") or ()) - {"cpu", "memory"} <= set(container.get("limits") or ())


def _steps(case: Case) -> Iterator[str]:
    if "pod" not in case or "steps" not in case:
        return
    names = [each["name"] for each in anatomy.containers(case["pod"])]
    if [step["container"] for step in case["steps"]] != names:
        yield "there is a step for every container"
    if "removals" in case and sorted(each["container"] for each in case["removals"]) != sorted(names):
        yield "every container is removed"


def _ops(case: Case) -> Iterator[str]:
    known = {pod["uid"]: {each["name"] for each in anatomy.containers(pod)} for pod in case.get("pods") or ()}
    seen: set[str] = set()
    for op in anatomy.ops(case):
        if isinstance(op.get("pod"), dict):
            seen.add(op["pod"]["uid"])
        elif "uid" in op and op["uid"] not in seen:
            yield "only pods that came are started and removed"
        elif "pod" in op and not _is_known(op, known):
            yield "ops name pods and containers of the case"


def _is_known(op: Case, known: Mapping[str, set[str]]) -> bool:
    return op["pod"] in known and ("container" not in op or op["container"] in known[op["pod"]])


def _merge(case: Case) -> Iterator[str]:
    if "providers" not in case:
        return
    highest, distances = max(case["numa_nodes"], default=0), case["distances"]
    if case["prefer_closest"] != (distances is not None):
        yield "distances are given where closest zones are preferred"
    if distances is not None and (len(distances) <= highest or any(len(row) <= highest for row in distances)):
        yield "distances reach every zone"
