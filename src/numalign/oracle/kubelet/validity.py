"""The parts of a kubelet case as plain JSON, and whether the case is valid.

`shrink` uses both. Families share most field names, so one set of accessors serves all; a part that a family does not
have is empty. A case is valid if everything that it names exists and its node is possible. Generated cases are valid. A
case that only names its machine is not checked against it."""

from collections.abc import Iterator, Mapping
from math import ceil

from numalign.api.decode import cpuset
from numalign.kubelet.machine.machine import HugePages
from numalign.oracle.harness.divergence import Case


def machine(case: Case) -> Case | None:
    """The machine in the case; None if the case only names one."""
    topology = case.get("topology")
    return topology if isinstance(topology, dict) else None


def zone_ids(case: Case) -> list[int] | None:
    """The ids of all zones, or None if the case only names its machine."""
    if (topology := machine(case)) is not None:
        return [zone["id"] for zone in topology["numa"]]
    if "nodes" in case:
        return [node["id"] for node in case["nodes"]]
    return case.get("numa_nodes")


def cores(topology: Case) -> list[Case]:
    return [core for zone in topology["numa"] for core in zone["cores"]]


def cpus(topology: Case) -> int:
    return cpuset.of(cpu for core in cores(topology) for cpu in core["cpus"])


def memory_nodes(case: Case) -> list[Case]:
    listed: list[Case] = case.get("nodes") or case.get("memory_nodes") or []
    return listed


def page_sizes(node: Case) -> list[int]:
    return [pages["page_size_kb"] for pages in node["hugepages"]]


def page_resources(case: Case) -> set[str]:
    """The huge page resources that pods may request: those of the first zone."""
    return {HugePages(size, 0).resource for node in memory_nodes(case)[:1] for size in page_sizes(node)}


def plugins(case: Case) -> dict[str, Case]:
    found: dict[str, Case] = case.get("resources") or case.get("devices") or {}
    return found


def devices(case: Case) -> Iterator[Case]:
    return (device for plugin in plugins(case).values() for device in plugin["devices"])


def pods(case: Case) -> list[Case]:
    """All pods: listed in the case, or inside the ops that admit them."""
    listed = [case["pod"]] if "pod" in case else list(case.get("pods") or ())
    return listed + [op["pod"] for op in ops(case) if isinstance(op.get("pod"), dict)]


def containers(pod: Case) -> list[Case]:
    return [*(pod.get("init") or ()), *pod["containers"]]


def requirements(case: Case) -> list[Case]:
    """Everything with requests and limits."""
    found = [container for pod in pods(case) for container in containers(pod)]
    return found + [pod["pod_resources"] for pod in pods(case) if "pod_resources" in pod]


def ops(case: Case) -> list[Case]:
    listed: list[Case] = case.get("ops") or []
    return listed


def hint_lists(case: Case) -> list[list[Case]]:
    """The providers' hint lists of a merge."""
    provided = [hints for provider in case.get("providers") or () for hints in (provider or {}).values()]
    return [hints for hints in provided if hints is not None]


def hints(case: Case) -> list[Case]:
    """Every hint that is an input: chosen affinities and providers' hints."""
    chosen = [*(case.get("steps") or ()), *ops(case), case]
    return [each["affinity"] for each in chosen if "affinity" in each] + [
        hint for offered in hint_lists(case) for hint in offered
    ]


def assigned(case: Case) -> int:
    """The CPUs assigned before the case begins."""
    held = 0
    for of_pod in (case.get("assignments") or {}).values():
        for text in of_pod.values():
            held |= cpuset.parse(text)
    return held


STRICT = "strict-cpu-reservation"


def flaws(case: Case) -> frozenset[str]:
    """The flaws of the case, as sentences about a valid one."""
    found: set[str] = set()
    for look in (_machine, _cpus, _reserved, _zones, _memory, _plugins, _pods, _steps, _ops, _merge):
        found.update(look(case))
    return frozenset(found)


def _machine(case: Case) -> Iterator[str]:
    topology = machine(case)
    if topology is None:
        return
    listed = [cpu for core in cores(topology) for cpu in core["cpus"]]
    if not listed or len(listed) != len(set(listed)):
        yield "a machine has CPUs, each of them once"
    if topology["num_cpus"] != len(listed):
        yield "num_cpus counts the CPUs"
    if topology["num_sockets"] != len({core["socket"] for core in cores(topology)}):
        yield "num_sockets counts the sockets"
    highest = max((zone["id"] for zone in topology["numa"]), default=0)
    if any(len(zone["distances"]) <= highest for zone in topology["numa"]):
        yield "distances reach every zone"


def _cpus(case: Case) -> Iterator[str]:
    """The CPU assignments before a CPU manager case begins."""
    topology = machine(case)
    if topology is None or "default" not in case:
        return
    every, held = cpus(topology), assigned(case)
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
    topology, where = machine(case), case.get("config") or case
    if topology is None or "reserved_cpus" not in where:
        return
    count = where["num_reserved"] if "num_reserved" in where else ceil(where["reserved_cpu_milli"] / 1000)
    reserved = cpuset.parse(where["reserved_cpus"])
    if reserved & ~cpus(topology):
        yield "only CPUs of the machine are reserved"
    if (reserved and reserved.bit_count() != count) or not 0 < count <= topology["num_cpus"]:
        yield "as many CPUs are reserved as there are to reserve"


def _zones(case: Case) -> Iterator[str]:
    zones = zone_ids(case)
    if zones is None:
        return
    if not zones or zones != sorted(set(zones)):
        yield "zones are listed once, in the order of their ids"
    masks = [hint["mask"] for hint in hints(case) if hint["mask"] is not None]
    if any(not mask or not set(mask) <= set(zones) for mask in masks):
        yield "a mask names zones of the machine"
    if any(not set(device["numa"] or ()) <= set(zones) for device in devices(case)):
        yield "a device is in zones of the machine"
    reserved = {int(zone) for zone in case.get("reserved") or ()}
    reserved |= {each["numa"] for each in (case.get("config") or {}).get("reserved_memory") or ()}
    if not reserved <= set(zones):
        yield "memory is reserved in zones of the machine"
    if memory_nodes(case) and [node["id"] for node in memory_nodes(case)] != zones:
        yield "every zone says what memory it has"


def _memory(case: Case) -> Iterator[str]:
    nodes = memory_nodes(case)
    if not nodes:
        return
    if len({tuple(page_sizes(node)) for node in nodes}) > 1:
        yield "every zone knows the same page sizes"
    limits = [*(case.get("reserved") or {}).values()]
    limits += [each["limits"] for each in (case.get("config") or {}).get("reserved_memory") or ()]
    if sum(each.get("memory", 0) for each in limits) <= 0:
        yield "some memory is reserved"
    known = page_resources(case)
    asked = {name for each in requirements(case) for name in each.get("requests") or ()}
    if any(name.startswith("hugepages-") and name not in known for name in asked):
        yield "pods ask for page sizes of the machine"


def _plugins(case: Case) -> Iterator[str]:
    for plugin in plugins(case).values():
        ids = [device["id"] for device in plugin["devices"]]
        if not ids or len(ids) != len(set(ids)):
            yield "a plugin has devices, each of them once"
    asked = {name for each in requirements(case) for name in each.get("requests") or ()}
    if any("/" in name and name not in plugins(case) for name in asked):
        yield "pods ask for devices of a plugin"


def _pods(case: Case) -> Iterator[str]:
    uids = [pod["uid"] for pod in pods(case)]
    if len(uids) != len(set(uids)):
        yield "every pod has a uid of its own"
    for pod in pods(case):
        names = [each["name"] for each in containers(pod)]
        if not pod["containers"] or len(names) != len(set(names)):
            yield "a pod has containers, each with a name of its own"
        if any(_lacks_limits(each) for each in containers(pod)):
            yield "devices and pages have limits"
    # The API server defaults requests from limits.
    if any(not set(each.get("limits") or ()) <= set(each.get("requests") or ()) for each in requirements(case)):
        yield "what has a limit is requested"


def _lacks_limits(container: Case) -> bool:
    return not set(container.get("requests") or ()) - {"cpu", "memory"} <= set(container.get("limits") or ())


def _steps(case: Case) -> Iterator[str]:
    if "pod" not in case or "steps" not in case:
        return
    names = [each["name"] for each in containers(case["pod"])]
    if [step["container"] for step in case["steps"]] != names:
        yield "there is a step for every container"
    if "removals" in case and sorted(each["container"] for each in case["removals"]) != sorted(names):
        yield "every container is removed"


def _ops(case: Case) -> Iterator[str]:
    known = {pod["uid"]: {each["name"] for each in containers(pod)} for pod in case.get("pods") or ()}
    seen: set[str] = set()
    for op in ops(case):
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
