"""Cuts: ways to remove one part of a case, larger parts first.

`shrink` applies them to copies. `mending` then removes what referred to the part."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain

from numalign.api.attributes import cpuset
from numalign.oracle.shrinking import anatomy
from numalign.oracle.shrinking.generic import Case, Place, at, blocks

Cut = Callable[[Case], None]

OPTIONS = ("options", "cpu_options", "tm_options")


def of(case: Case) -> Iterator[Cut]:
    """Every possible cut."""
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
    zones = anatomy.zone_ids(case) or []
    yield from (partial(_drop_zone, zone) for zone in zones if len(zones) > 1)


def _of_machine_parts(case: Case) -> Iterator[Cut]:
    """Cuts of plugins, page sizes, devices and cores."""
    key = "resources" if "resources" in case else "devices"
    yield from _of_entries(case, [(key,)])
    sizes = {size for node in anatomy.memory_nodes(case) for size in anatomy.page_sizes(node)}
    yield from (partial(_drop_page_size, size) for size in sorted(sizes))
    yield from _of_lists(case, [(key, resource, "devices") for resource in anatomy.plugins(case)])
    topology = anatomy.machine(case) or {"numa": ()}
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
    for number, each in enumerate(anatomy.requirements(case)):
        for resource in each.get("requests") or ():
            yield partial(_drop_amount, number, resource)


def _pod_places(case: Case) -> list[Place]:
    places: list[Place] = [("pod",)] if "pod" in case else [("pods", n) for n in range(len(case.get("pods") or ()))]
    admitting = [("ops", n, "pod") for n, op in enumerate(anatomy.ops(case)) if isinstance(op.get("pod"), dict)]
    return places + admitting


def _drop_items(place: Place, start: int, stop: int, case: Case) -> None:
    del at(case, place)[start:stop]


def _drop_entry(place: Place, name: str, case: Case) -> None:
    del at(case, place)[name]


def _drop_zone(zone: int, case: Case) -> None:
    """Remove the zone; repair removes what lies in it."""
    if "numa_nodes" in case:
        case["numa_nodes"].remove(zone)
    if (topology := anatomy.machine(case)) is not None:
        topology["numa"] = [each for each in topology["numa"] if each["id"] != zone]
    for key in ("nodes", "memory_nodes"):
        if key in case:
            case[key] = [each for each in case[key] if each["id"] != zone]


def _drop_page_size(size: int, case: Case) -> None:
    for node in anatomy.memory_nodes(case):
        node["hugepages"] = [pages for pages in node["hugepages"] if pages["page_size_kb"] != size]


def _prefer_no_zones(case: Case) -> None:
    case["prefer_closest"], case["distances"] = False, None


def _give_back(uid: str, case: Case) -> None:
    """Remove a pod that held CPUs; they return to the shared set."""
    freed = anatomy.assigned({"assignments": {uid: case["assignments"].pop(uid)}})
    case["default"] = cpuset.text(cpuset.parse(case["default"]) | freed)


def _drop_amount(number: int, resource: str, case: Case) -> None:
    each = anatomy.requirements(case)[number]
    for key in ("requests", "limits"):
        (each.get(key) or {}).pop(resource, None)
