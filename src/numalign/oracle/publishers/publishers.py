"""Compares recorded scans of RTE and NFD with the agent's report in their form.

`agent.plainform` builds the zones and has none of their defects. Where a recording shows a defect, a rule on the input
names it, and everything that the defect does not affect must be equal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from numalign.agent.publish import plainform
from numalign.agent.publish.plainform import Form
from numalign.api.nrt import fingerprint, zonename
from numalign.api.nrt.nodetopology import Zone
from numalign.kubelet import report, start
from numalign.kubelet.settings import Settings
from numalign.kubelet.versions import Minor
from numalign.oracle.plugin.suites.suite import Case, Deliberate, Suite
from numalign.oracle.publishers import nodetexts, payloads, publisherstates
from numalign.oracle.publishers import publisherdefects as defects

Row = Mapping[str, Any]


def _scanned(form: Form) -> Callable[[Row], object]:
    def answered(row: Row) -> object:
        pods, times = publisherstates.pods(row, publisherstates.scale(row)), publisherstates.scale(row)
        machine, allocatable = publisherstates.machine(row), publisherstates.allocatable(row)
        zones = plainform.zones(machine, allocatable, pods, form, publisherstates.excluded(row))
        listed = map(plainform.placement, pods)
        signed = report.signature(listed, _method(row, form))
        told = sorted((_zone(each, times) for each in zones), key=_name)
        return {"zones": told, "fingerprint": signed.text}

    return answered


def _method(row: Row, form: Form) -> fingerprint.Method:
    everybody = form == "nfd" or row.get("fingerprint_method") == fingerprint.Method.ALL
    return fingerprint.Method.ALL if everybody else fingerprint.Method.EXCLUSIVE


def _zone(zone: Zone, times: int) -> dict[str, Any]:
    resources = []
    for name, each in sorted(zone.resources.items()):
        unit = report.MILLI if name == "cpu" else times if name.startswith(("memory", "hugepages-")) else 1
        amounts = {"capacity": each.capacity, "allocatable": each.allocatable, "available": each.available}
        resources.append({"name": name, **{kind: amount // unit for kind, amount in amounts.items()}})
    costs = [{"name": zonename.name_of(other), "value": cost} for other, cost in zone.costs.items()]
    return {
        "name": zonename.name_of(zone.id),
        "type": "Node",
        "costs": sorted(costs, key=_name),
        "resources": resources,
    }


def _name(named: Row) -> str:
    """Tables are sorted by name: node-10 precedes node-2."""
    return str(named["name"])


def _has_gaps(row: Row) -> bool:
    return not publisherstates.in_a_row(row)


def _defect(anchor: str, reason: str, applies: Callable[[Row], object], form: Form) -> Deliberate:
    def shows(case: Case) -> bool:
        row, expected = case["input"], case["expect"]
        ours: Any = _scanned(form)(row)
        same_sign = expected.get("fingerprint") in (None, ours["fingerprint"])
        real, own = (defects.untouched(zones, row, form) for zones in (expected["zones"], ours["zones"]))
        return same_sign and real == own

    return Deliberate(anchor, reason, lambda row: bool(applies(row)), shows)


RTE: Final = (
    _defect("blocks-in-several-zones", "subtracted in full from each zone (D-07)", defects.several_zones, "rte"),
    _defect("sick-devices", "subtracted although they are not offered (D-28)", defects.not_as_offered, "rte"),
    _defect("every-namespace", "what other namespaces hold is called free", defects.other_namespaces, "rte"),
    _defect("counted-once", "what is listed twice counts twice", defects.told_twice, "rte"),
    _defect("pages-of-every-size", "pages of some sizes have no capacity (D-06)", defects.pages_of_other_sizes, "rte"),
    _defect("no-cpu-to-allocate", "a zone with other resources has no cpu (D-37)", defects.without_cpus, "rte"),
)
NFD: Final = (
    _defect(
        "less-than-nothing", "a device in several zones is taken twice from its last (D-24)", defects.spanning, "nfd"
    ),
    _defect("blocks-in-several-zones", "filled without a look at what must be where", defects.out_of_turn, "nfd"),
    _defect("every-namespace", "what other namespaces hold is called free", defects.other_namespaces, "nfd"),
    _defect("counted-once", "what is listed twice counts twice", defects.counted_often, "nfd"),
    _defect("never-less-than-allocatable", "less capacity than can be allocated", defects.more_than_there_is, "nfd"),
    _defect(
        "left-out-everywhere", "a zone without anything has the cpu that is left out", defects.cpus_left_out, "nfd"
    ),
    _defect("gaps-between-zones", "zones by their place in a list (D-02)", _has_gaps, "nfd"),
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
    if row.get("pod") is None:
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
"""Suites that do not apply, and why."""
