"""Smaller variants of a kubelet case: cuts, larger parts first, and the repair after each cut.

`sources` passes `smaller` to campaigns. A repair removes what referred to the removed part: steps of containers, ops of
pods, masks and devices of zones, requests of resources. A candidate with a flaw that its origin does not have is not
tried; otherwise the real managers and the model would disagree about CPUs that no machine has."""

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from functools import partial
from itertools import chain
from math import ceil

from numalign.api.decode import cpuset
from numalign.oracle.harness.divergence import Case
from numalign.oracle.harness.shrink import Place, at, blocks
from numalign.oracle.kubelet import validity
from numalign.oracle.kubelet.validity import STRICT

Cut = Callable[[Case], None]

OPTIONS = ("options", "cpu_options", "tm_options")


def of(case: Case) -> Iterator[Cut]:
    """All possible cuts of the case."""
    return chain(
        _of_lists(case, [("ops",), ("pods",), ("providers",)]),
        _of_zones(case),
        _of_machine_parts(case),
        _of_lists(case, _container_lists(case)),
        _of_entries(case, _hint_maps(case)),
        _of_lists(case, _hint_lists(case)),
        _of_entries(case, _option_maps(case)),
        _of_settings(case),
        _of_amounts(case),
    )


def _of_lists(case: Case, places: Sequence[Place]) -> Iterator[Cut]:
    for place in places:
        for start, stop in blocks(len(at(case, place) or ())):
            yield partial(_drop_items, place, start, stop)


def _of_entries(case: Case, places: Sequence[Place]) -> Iterator[Cut]:
    for place in places:
        yield from (partial(_drop_entry, place, name) for name in at(case, place) or ())


def _of_zones(case: Case) -> Iterator[Cut]:
    zones = validity.zone_ids(case) or []
    yield from (partial(_drop_zone, zone) for zone in zones if len(zones) > 1)


def _of_machine_parts(case: Case) -> Iterator[Cut]:
    """Cuts of plugins, page sizes, devices and cores."""
    key = "resources" if "resources" in case else "devices"
    yield from _of_entries(case, [(key,)])
    sizes = {size for node in validity.memory_nodes(case) for size in validity.page_sizes(node)}
    yield from (partial(_drop_page_size, size) for size in sorted(sizes))
    yield from _of_lists(case, [(key, resource, "devices") for resource in validity.plugins(case)])
    topology = validity.machine(case) or {"numa": ()}
    yield from _of_lists(case, [("topology", "numa", place, "cores") for place in range(len(topology["numa"]))])


def _container_lists(case: Case) -> list[Place]:
    return [(*place, key) for place in _pod_places(case) for key in ("init", "containers") if key in at(case, place)]


def _hint_maps(case: Case) -> list[Place]:
    return [("providers", place) for place, provider in enumerate(case.get("providers") or ()) if provider]


def _hint_lists(case: Case) -> list[Place]:
    return [(*place, resource) for place in _hint_maps(case) for resource in at(case, place)]


def _option_maps(case: Case) -> list[Place]:
    return [(key,) for key in OPTIONS if key in case] + [("config", key) for key in OPTIONS if "config" in case]


def _of_settings(case: Case) -> Iterator[Cut]:
    if case.get("prefer_closest"):
        yield _prefer_no_zones
    yield from (partial(_give_back, uid) for uid in case.get("assignments") or ())


def _of_amounts(case: Case) -> Iterator[Cut]:
    """Cuts of what pods request: pod-level resources as a whole, then resource by resource."""
    for place in _pod_places(case):
        if "pod_resources" in at(case, place):
            yield partial(_drop_entry, place, "pod_resources")
    for number, each in enumerate(validity.requirements(case)):
        for resource in each.get("requests") or ():
            yield partial(_drop_amount, number, resource)


def _pod_places(case: Case) -> list[Place]:
    places: list[Place] = [("pod",)] if "pod" in case else [("pods", n) for n in range(len(case.get("pods") or ()))]
    admitting = [("ops", n, "pod") for n, op in enumerate(validity.ops(case)) if isinstance(op.get("pod"), dict)]
    return places + admitting


def _drop_items(place: Place, start: int, stop: int, case: Case) -> None:
    del at(case, place)[start:stop]


def _drop_entry(place: Place, name: str, case: Case) -> None:
    del at(case, place)[name]


def _drop_zone(zone: int, case: Case) -> None:
    """Remove the zone; repair removes what lies in it."""
    if "numa_nodes" in case:
        case["numa_nodes"].remove(zone)
    if (topology := validity.machine(case)) is not None:
        topology["numa"] = [each for each in topology["numa"] if each["id"] != zone]
    for key in ("nodes", "memory_nodes"):
        if key in case:
            case[key] = [each for each in case[key] if each["id"] != zone]


def _drop_page_size(size: int, case: Case) -> None:
    for node in validity.memory_nodes(case):
        node["hugepages"] = [pages for pages in node["hugepages"] if pages["page_size_kb"] != size]


def _prefer_no_zones(case: Case) -> None:
    case["prefer_closest"], case["distances"] = False, None


def _give_back(uid: str, case: Case) -> None:
    """Remove a pod that held CPUs; they return to the shared set."""
    freed = validity.assigned({"assignments": {uid: case["assignments"].pop(uid)}})
    case["default"] = cpuset.text(cpuset.parse(case["default"]) | freed)


def _drop_amount(number: int, resource: str, case: Case) -> None:
    each = validity.requirements(case)[number]
    for key in ("requests", "limits"):
        (each.get(key) or {}).pop(resource, None)


def repaired(case: Case) -> Case:
    """The same object, without dangling references."""
    _zones(case)
    _reserved_memory(case)
    _machine(case)
    _amounts(case)
    _steps(case)
    _ops(case)
    return case


def _zones(case: Case) -> None:
    zones = validity.zone_ids(case)
    if zones is None:
        return
    for offered in validity.hint_lists(case):
        offered[:] = [hint for hint in offered if hint["mask"] is None or _is_somewhere(hint["mask"], zones)]
    for hint in validity.hints(case):
        # An affinity without remaining zones becomes an affinity to any zone.
        hint["mask"] = [zone for zone in hint["mask"] or () if zone in zones] or None
    for plugin in validity.plugins(case).values():
        plugin["devices"] = [
            device for device in plugin["devices"] if not device["numa"] or _is_somewhere(device["numa"], zones)
        ]
    for device in validity.devices(case):
        if device["numa"]:
            device["numa"] = [zone for zone in device["numa"] if zone in zones]


def _is_somewhere(mask: list[int], zones: list[int]) -> bool:
    return any(zone in zones for zone in mask)


def _reserved_memory(case: Case) -> None:
    """Memory reserved in a removed zone is reserved in the first remaining one: a node must reserve some."""
    nodes = validity.memory_nodes(case)
    if not nodes:
        return
    zones = {node["id"] for node in nodes}
    if "reserved" in case:
        gone = [case["reserved"].pop(zone) for zone in list(case["reserved"]) if int(zone) not in zones]
        kept = case["reserved"].setdefault(str(nodes[0]["id"]), {"memory": 0})
    else:
        listed = case["config"]["reserved_memory"]
        gone = [each["limits"] for each in listed if each["numa"] not in zones]
        listed[:] = [each for each in listed if each["numa"] in zones]
        if gone and not listed:
            listed.append({"numa": nodes[0]["id"], "limits": {"memory": 0}})
        kept = listed[0]["limits"] if listed else {}
    if gone:
        kept["memory"] = kept.get("memory", 0) + sum(each.get("memory", 0) for each in gone)


def _machine(case: Case) -> None:
    topology = validity.machine(case)
    if topology is None:
        return
    every = validity.cpus(topology)
    topology["num_cpus"] = every.bit_count()
    topology["num_sockets"] = len({core["socket"] for core in validity.cores(topology)})
    where = case.get("config") or case
    reserved = cpuset.parse(where["reserved_cpus"])
    kept = reserved & every
    where["reserved_cpus"] = cpuset.text(kept)
    if kept != reserved and kept:
        _count(where, kept.bit_count())
    if "default" in case:
        _shared(case, every, kept)


def _count(where: Case, reserved: int) -> None:
    if "num_reserved" in where:
        where["num_reserved"] = reserved
    elif ceil(where["reserved_cpu_milli"] / 1000) != reserved:
        where["reserved_cpu_milli"] = 1000 * reserved


def _shared(case: Case, every: int, reserved: int) -> None:
    """Holders keep their remaining CPUs. All others are shared, except a strict reservation."""
    for of_pod in case["assignments"].values():
        for name, text in list(of_pod.items()):
            of_pod[name] = cpuset.text(cpuset.parse(text) & every)
    case["assignments"] = {uid: held for uid, held in case["assignments"].items() if any(held.values())}
    strict = case["options"].get(STRICT) == "true"
    case["default"] = cpuset.text(every & ~validity.assigned(case) & ~(reserved if strict else 0))


def _amounts(case: Case) -> None:
    """Drop requests for devices or pages that the machine does not have."""
    sizes = validity.page_resources(case)
    for each in validity.requirements(case):
        for key in ("requests", "limits"):
            for name in [name for name in each.get(key) or () if _is_gone(name, case, sizes)]:
                del each[key][name]


def _is_gone(name: str, case: Case, sizes: set[str]) -> bool:
    if "/" in name:
        return name not in validity.plugins(case)
    return name.startswith("hugepages-") and bool(validity.memory_nodes(case)) and name not in sizes


def _steps(case: Case) -> None:
    if "pod" not in case:
        return
    names = {each["name"] for each in validity.containers(case["pod"])}
    for key in ("steps", "removals"):
        if key in case:
            case[key] = [each for each in case[key] if each["container"] in names]


def _ops(case: Case) -> None:
    known = {pod["uid"]: {each["name"] for each in validity.containers(pod)} for pod in validity.pods(case)}
    if "ops" in case:
        case["ops"] = [op for op in validity.ops(case) if _refers(op, known)]


def _refers(op: Case, known: dict[str, set[str]]) -> bool:
    if isinstance(op.get("pod"), dict) or op["op"] == "restart":
        return True
    uid = op.get("pod", op.get("uid"))
    return uid in known and ("container" not in op or op["container"] in known[uid])


def smaller(case: Case) -> Iterator[Case]:
    """Smaller variants of a case of the kubelet's families without new flaws, larger cuts first."""
    known = validity.flaws(case)
    for cut in of(case):
        candidate = deepcopy(case)
        cut(candidate)
        if validity.flaws(repaired(candidate)) <= known:
            yield candidate
