"""Repairs a case after a cut: removes what referred to the removed part.

`shrink` calls `mended` on its copy. It adjusts steps of containers, ops of pods, masks and devices of zones, requests
of resources, and a machine's own counts."""

from __future__ import annotations

from math import ceil

from numalign.api.attributes import cpuset
from numalign.oracle.shrinking import anatomy
from numalign.oracle.shrinking.generic import Case
from numalign.oracle.shrinking.validity import STRICT


def mended(case: Case) -> Case:
    """The same object, without dangling references."""
    _zones(case)
    _reserved_memory(case)
    _machine(case)
    _amounts(case)
    _steps(case)
    _ops(case)
    return case


def _zones(case: Case) -> None:
    zones = anatomy.zone_ids(case)
    if zones is None:
        return
    for offered in anatomy.hint_lists(case):
        offered[:] = [hint for hint in offered if hint["mask"] is None or _is_somewhere(hint["mask"], zones)]
    for hint in anatomy.hints(case):
        # An affinity without remaining zones becomes an affinity to any zone.
        hint["mask"] = [zone for zone in hint["mask"] or () if zone in zones] or None
    for plugin in anatomy.plugins(case).values():
        plugin["devices"] = [
            device for device in plugin["devices"] if not device["numa"] or _is_somewhere(device["numa"], zones)
        ]
    for device in anatomy.devices(case):
        if device["numa"]:
            device["numa"] = [zone for zone in device["numa"] if zone in zones]


def _is_somewhere(mask: list[int], zones: list[int]) -> bool:
    return any(zone in zones for zone in mask)


def _reserved_memory(case: Case) -> None:
    """Memory reserved in a removed zone is reserved in the first remaining one: a node must reserve some."""
    nodes = anatomy.memory_nodes(case)
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
    topology = anatomy.machine(case)
    if topology is None:
        return
    every = anatomy.cpus(topology)
    topology["num_cpus"] = every.bit_count()
    topology["num_sockets"] = len({core["socket"] for core in anatomy.cores(topology)})
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
    case["default"] = cpuset.text(every & ~anatomy.assigned(case) & ~(reserved if strict else 0))


def _amounts(case: Case) -> None:
    """Drop requests for devices or pages that the machine does not have."""
    sizes = anatomy.page_resources(case)
    for each in anatomy.requirements(case):
        for key in ("requests", "limits"):
            for name in [name for name in each.get(key) or () if _is_gone(name, case, sizes)]:
                del each[key][name]


def _is_gone(name: str, case: Case, sizes: set[str]) -> bool:
    if "/" in name:
        return name not in anatomy.plugins(case)
    return name.startswith("hugepages-") and bool(anatomy.memory_nodes(case)) and name not in sizes


def _steps(case: Case) -> None:
    if "pod" not in case:
        return
    names = {each["name"] for each in anatomy.containers(case["pod"])}
    for key in ("steps", "removals"):
        if key in case:
            case[key] = [each for each in case[key] if each["container"] in names]


def _ops(case: Case) -> None:
    known = {pod["uid"]: {each["name"] for each in anatomy.containers(pod)} for pod in anatomy.pods(case)}
    if "ops" in case:
        case["ops"] = [op for op in anatomy.ops(case) if _refers(op, known)]


def _refers(op: Case, known: dict[str, set[str]]) -> bool:
    if isinstance(op.get("pod"), dict) or op["op"] == "restart":
        return True
    uid = op.get("pod", op.get("uid"))
    return uid in known and ("container" not in op or op["container"] in known[uid])
