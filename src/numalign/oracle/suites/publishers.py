"""Recorded scans of RTE and NFD: the agent's report in their form beside them.

Zones are `agent.plainform`'s, which has none of their defects. Where a recording shows one, a rule on the input names
it, and everything that the defect does not touch has to be equal all the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from numalign.agent import exclusions, plainform
from numalign.agent.plainform import Form
from numalign.api import fingerprint, zonename
from numalign.api.nodetopology import Zone
from numalign.kubelet import report, start
from numalign.kubelet.settings import Settings
from numalign.kubelet.versions import Minor
from numalign.oracle.suites import nodetexts, payloads, publisherstates
from numalign.oracle.suites.suite import Case, Deliberate, Suite

Row = Mapping[str, Any]
Place = tuple[str, str]
"""Zone and resource."""
Touched = Callable[[Row], frozenset[Place]]


def _scanned(form: Form) -> Callable[[Row], object]:
    def answered(row: Row) -> object:
        pods, times = publisherstates.pods(row, publisherstates.scale(row)), publisherstates.scale(row)
        machine, allocatable = publisherstates.machine(row), publisherstates.allocatable(row)
        zones = plainform.zones(machine, allocatable, pods, form, _excluded(row))
        listed = map(plainform.placement, pods)
        signed = report.signature(listed, fingerprint.Method(row.get("fingerprint_method") or _usual(form)))
        return {"zones": [_zone(each, times) for each in zones], "fingerprint": signed.text}

    return answered


def _usual(form: Form) -> fingerprint.Method:
    return fingerprint.Method.EXCLUSIVE if form == "rte" else fingerprint.Method.ALL


def _excluded(row: Row) -> frozenset[str]:
    told = row.get("exclude", {})
    return exclusions.on_node(told, row.get("node", "")) if isinstance(told, Mapping) else frozenset(told)


def _zone(zone: Zone, times: int) -> dict[str, Any]:
    resources = []
    for name, each in sorted(zone.resources.items()):
        unit = report.MILLI if name == "cpu" else times if name.startswith(("memory", "hugepages-")) else 1
        amounts = {"capacity": each.capacity, "allocatable": each.allocatable, "available": each.available}
        resources.append({"name": name, **{kind: amount // unit for kind, amount in amounts.items()}})
    costs = [{"name": zonename.name_of(other), "value": cost} for other, cost in sorted(zone.costs.items())]
    return {"name": zonename.name_of(zone.id), "type": "Node", "costs": costs, "resources": resources}


def _in_several_zones(row: Row) -> frozenset[Place]:
    blocks = [block for pod in publisherstates.pods(row) for each in pod.containers for block in each.memory]
    return frozenset(
        (zonename.name_of(zone), block.type) for block in blocks if len(block.zones) > 1 for zone in block.zones
    )


def _sick(row: Row) -> frozenset[Place]:
    """Zones of devices that somebody has and nobody offers."""
    known = publisherstates.zones_of(row)
    entries = [entry for pod in publisherstates.pods(row) for each in pod.containers for entry in each.devices]
    return frozenset(
        (zonename.name_of(zone), entry.resource)
        for entry in entries
        for each in entry.ids
        for zone in (entry.zones or ())
        if (entry.resource, each) not in known and zone >= 0
    )


def _spanning(row: Row) -> frozenset[Place]:
    devices = publisherstates.zones_of(row).items()
    return frozenset(
        (zonename.name_of(zone), resource) for (resource, _), zones in devices if len(zones) > 1 for zone in zones
    )


def _elsewhere(row: Row) -> frozenset[Place]:
    """Everything that pods of other namespaces hold, wherever it is."""
    if row.get("namespace", "*") in ("", "*"):
        return frozenset()
    names = {"cpu", *(resource for resource, _ in publisherstates.zones_of(row)), "memory", *publisherstates.PAGES}
    others = [pod for pod in publisherstates.pods(row) if pod.namespace != row["namespace"]]
    zones = [zonename.name_of(zone.id) for zone in publisherstates.machine(row).zones]
    return frozenset((zone, name) for zone in zones for name in names) if others else frozenset()


def _without_cpus(row: Row) -> frozenset[Place]:
    """Zones that have something to allocate, and no CPU."""
    zones = plainform.zones(publisherstates.machine(row), publisherstates.allocatable(row), (), "rte")
    bare = (zone for zone in zones if not zone.resources["cpu"].allocatable and len(zone.resources) > 1)
    return frozenset((zonename.name_of(zone.id), "cpu") for zone in bare)


def _anything(row: Row) -> frozenset[Place]:
    return frozenset[Place]().union(*(touched(row) for touched in TOUCHED))


TOUCHED: Final[tuple[Touched, ...]] = (_in_several_zones, _sick, _spanning, _elsewhere)


def _untouched(zones: list[Any], row: Row) -> object:
    """Without what is free where a defect shows, and without RTE's two ways to say that there is no CPU."""
    bare, touched = _without_cpus(row), _anything(row)

    def left(zone: Row) -> list[Row]:
        return [_kept(zone["name"], each, touched) for each in zone["resources"] if not _none(zone, each, bare)]

    return [{**zone, "resources": left(zone)} for zone in zones]


def _none(zone: Row, resource: Row, bare: frozenset[Place]) -> bool:
    return (zone["name"], resource["name"]) in bare and not resource["allocatable"]


def _kept(zone: str, resource: Row, touched: frozenset[Place]) -> Row:
    hidden = {"available": None} if (zone, resource["name"]) in touched else {}
    return {**resource, **hidden}


def _defect(anchor: str, reason: str, touched: Touched, form: Form) -> Deliberate:
    def shows(case: Case) -> bool:
        ours: Any = _scanned(form)(case["input"])
        expected = case["expect"]
        same_sign = expected.get("fingerprint") in (None, ours["fingerprint"])
        row = case["input"]
        return same_sign and bool(_untouched(expected["zones"], row) == _untouched(ours["zones"], row))

    return Deliberate(anchor, reason, lambda row: bool(touched(row)), shows)


RTE: Final = (
    _defect("blocks-in-several-zones", "subtracted in full from each zone (D-07)", _in_several_zones, "rte"),
    _defect("sick-devices", "subtracted although they are not offered (D-28)", _sick, "rte"),
    _defect("every-namespace", "what other namespaces hold is called free", _elsewhere, "rte"),
    _defect("no-cpu-to-allocate", "a zone with other resources has no cpu (D-37)", _without_cpus, "rte"),
)
NFD: Final = (
    _defect("less-than-nothing", "a device in several zones is taken twice from its last (D-24)", _spanning, "nfd"),
    _defect("every-namespace", "what other namespaces hold is called free", _elsewhere, "nfd"),
)


def _placed(row: Row) -> object:
    settings = Settings(topology_policy=row.get("policy", "none"), minor=Minor(1, 34))
    kubelet = start.start(publisherstates.machine(row), settings)
    found = report.payload(kubelet, map(plainform.placement, publisherstates.pods(row)))
    return {"payload": payloads.written(found) if found else None, "metadata": found.metadata if found else None}


def _signed(row: Row) -> object:
    pods = map(plainform.placement, publisherstates.pods(row))
    judged = (((pod.namespace, pod.name), pod.is_exclusive) for pod in pods)
    included = fingerprint.included(judged, fingerprint.Method(row["method"]))
    return {"included": [list(pod) for pod in included], "fingerprint": fingerprint.of(included)}


def _exclusive(row: Row) -> object:
    if row["pod"] is None:
        return {"allow": False}
    (pod,) = publisherstates.pods({"pods": [row["pod"]]})
    return {"allow": plainform.placement(pod).is_exclusive}


def made(name: str, answer: Callable[[Row], object], *deliberate: Deliberate) -> Suite:
    def answered(case: Case) -> object:
        return answer(case["input"])

    return Suite(name, answered, nodetexts.as_far_as_recorded, deliberate)


SUITES: tuple[Suite, ...] = (
    made("exporter.scan", _scanned("rte"), *RTE),
    made("exporter.scan_derived", _scanned("rte"), *RTE),
    made("exporter.placement_derived", _placed),
    made("exporter.fingerprint_method_derived", _signed),
    made("exporter.exclusive_filter", _exclusive),
    made("exporter.exclusive_filter_derived", _exclusive),
    made("updater.aggregate", _scanned("nfd"), *NFD),
    made("updater.aggregate_derived", _scanned("nfd"), *NFD),
)

SETTING = "a setting of that program, which we do not have"
CONDITION = "conditions on the publisher's own pod, which we do not write"
NOT_APPLICABLE: dict[str, str] = {
    "exporter.config_root_allowed": SETTING,
    "exporter.config_validate": SETTING,
    "exporter.config_defaults": SETTING,
    "exporter.config_tree": SETTING,
    "exporter.extra_config": SETTING,
    "exporter.csv_split": SETTING,
    "exporter.metrics_tls": SETTING,
    "exporter.metrics_node_name": SETTING,
    "exporter.set_interval": SETTING,
    "exporter.condition_equal": CONDITION,
    "exporter.condition_inject": CONDITION,
}
"""Suites without a counterpart, and why."""
