"""Compares recorded scans of RTE and NFD with the agent's report in their form, and the pods that they count.

`agent.publish.plainform` builds the zones and has none of their defects. Where a recording shows a defect, a rule on
the input names it, and everything that the defect does not affect must be equal. The agent counts every listed pod;
where the updater counts less, it must be exactly what it leaves out for a documented reason."""

from collections.abc import Callable
from typing import Any, Final

from numalign.agent.inventory import plainform
from numalign.agent.inventory.plainform import Form
from numalign.agent.sources.podresources import ContainerResources, PodResources
from numalign.api.attributes import grammar
from numalign.api.decode import quantity
from numalign.api.nrt import fingerprint
from numalign.api.nrt.nodetopology import Zone
from numalign.kubelet import start
from numalign.kubelet.report import report
from numalign.kubelet.settings import Settings
from numalign.kubelet.versions import Minor
from numalign.oracle.harness.divergence import Case, Raw
from numalign.oracle.harness.suite import DeliberateDifference, Suite
from numalign.oracle.plugin.suites import formats
from numalign.oracle.publishers import defects, states, texts


def _scanned(form: Form) -> Callable[[Raw], object]:
    def answered(row: Raw) -> object:
        pods, times = states.pods(row, states.scale(row)), states.scale(row)
        machine, allocatable = states.machine(row), states.allocatable(row)
        zones = plainform.zones(machine, allocatable, pods, form, states.excluded(row))
        listed = map(plainform.placement, pods)
        signed = report.signature(listed, _method(row, form))
        written = sorted((_zone(each, times) for each in zones), key=_name)
        return {"zones": written, "fingerprint": signed.text}

    return answered


def _method(row: Raw, form: Form) -> fingerprint.Method:
    counts_all = form == "nfd" or row.get("fingerprint_method") == fingerprint.Method.ALL
    return fingerprint.Method.ALL if counts_all else fingerprint.Method.EXCLUSIVE


def _zone(zone: Zone, times: int) -> dict[str, Any]:
    resources = []
    for name, each in sorted(zone.resources.items()):
        unit = report.MILLI if name == "cpu" else times if name.startswith(("memory", "hugepages-")) else 1
        amounts = {"capacity": each.capacity, "allocatable": each.allocatable, "available": each.available}
        resources.append({"name": name, **{kind: amount // unit for kind, amount in amounts.items()}})
    costs = [{"name": grammar.zone_name(other), "value": cost} for other, cost in zone.costs.items()]
    return {
        "name": grammar.zone_name(zone.id),
        "type": "Node",
        "costs": sorted(costs, key=_name),
        "resources": resources,
    }


def _name(named: Raw) -> str:
    """Tables are sorted by name: node-10 precedes node-2."""
    return str(named["name"])


def _has_gaps(row: Raw) -> bool:
    return not states.in_a_row(row)


def _defect(anchor: str, reason: str, applies: Callable[[Raw], object], form: Form) -> DeliberateDifference:
    def shows(case: Case) -> bool:
        row, expected = case["input"], case["expect"]
        ours: Any = _scanned(form)(row)
        same_sign = expected.get("fingerprint") in (None, ours["fingerprint"])
        real, own = (defects.untouched(zones, row, form) for zones in (expected["zones"], ours["zones"]))
        return same_sign and real == own

    return DeliberateDifference(anchor, reason, lambda row: bool(applies(row)), shows)


RTE: Final = (
    _defect("blocks-in-several-zones", "subtracted in full from each zone (D-07)", defects.several_zones, "rte"),
    _defect("sick-devices", "subtracted although they are not offered (D-28)", defects.not_as_offered, "rte"),
    _defect("every-namespace", "what other namespaces hold is called free", defects.other_namespaces, "rte"),
    _defect("counted-once", "what is listed twice counts twice", defects.listed_twice, "rte"),
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


def _placed(row: Raw) -> object:
    settings = Settings(topology_policy=row.get("policy", "none"), minor=Minor(1, 34))
    kubelet = start.start(states.machine(row), settings)
    found = report.payload(kubelet, map(plainform.placement, states.pods(row)))
    return {"payload": formats.written(found) if found else None, "metadata": found.metadata if found else None}


def _signed(row: Raw) -> object:
    pods = map(plainform.placement, states.pods(row))
    judged = (((pod.namespace, pod.name), pod.is_exclusive) for pod in pods)
    included = fingerprint.included(judged, fingerprint.Method(row["method"]))
    return {"included": [list(pod) for pod in included], "fingerprint": fingerprint.of(included)}


def _exclusive(row: Raw) -> object:
    if row.get("pod") is None:
        return {"allow": False}
    (pod,) = states.pods({"pods": [row["pod"]]})
    return {"allow": plainform.placement(pod).is_exclusive}


def made(name: str, answer: Callable[[Raw], object], *deliberate: DeliberateDifference) -> Suite:
    def answered(case: Case) -> object:
        return answer(case["input"])

    return Suite(name, answered, texts.as_far_as_recorded, deliberate)


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


FAILED: Final = {"watched": None, "fingerprint": None, "error": True}


def _listed(row: Raw) -> tuple[PodResources, ...]:
    return states.pods({"pods": row.get("listed")})


def _watched(row: Raw) -> object:
    if row.get("list_error"):
        return FAILED
    return _scan_result(row, map(_plain, _listed(row)))


def _scan_result(row: Raw, pods: Any) -> dict[str, Any]:
    listed = _listed(row)
    signed = fingerprint.of((pod.namespace, pod.name) for pod in listed) if listed else None
    watched = [pod for pod in pods if pod["containers"]]
    return {"watched": watched, "fingerprint": signed if row.get("fingerprint_enabled") else None, "error": False}


def _plain(pod: PodResources, *, shares_cpus: bool = False) -> dict[str, Any]:
    containers = [{"name": each.name, "resources": _resources(each, shares_cpus)} for each in pod.containers]
    return {"name": pod.name, "namespace": pod.namespace, "containers": [c for c in containers if c["resources"]]}


def _resources(held: ContainerResources, shares_cpus: bool) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if held.cpus and not shares_cpus:
        found.append({"name": "cpu", "data": [str(cpu) for cpu in held.cpus], "numa": None})
    found += [{"name": each.resource, "data": list(each.ids), "numa": _zones(each.zones)} for each in held.devices]
    return [*found, *({"name": m.type, "data": [str(m.size)], "numa": _zones(m.zones)} for m in held.memory if m.size)]


def _zones(zones: tuple[int, ...] | None) -> list[int] | None:
    return list(zones) if zones else None


def _others(row: Raw) -> list[PodResources]:
    """Pods of namespaces that the updater does not watch."""
    wanted = row["namespace"]
    return [pod for pod in _listed(row) if wanted != "*" and pod.namespace != wanted]


def _unknown(row: Raw) -> list[PodResources]:
    """Pods that the API server does not know."""
    pod, others = row.get("api_pod") or {}, _others(row)
    asked = (each for each in _listed(row) if each not in others)
    return [each for each in asked if (each.namespace, each.name) != (pod.get("namespace"), pod.get("name"))]


def _is_guaranteed(row: Raw) -> bool:
    return bool((row.get("api_pod") or {}).get("qos") == "Guaranteed")


def _shares_cpus(row: Raw) -> bool:
    """The API server's pod has no exclusive CPUs: not Guaranteed, or no container with whole CPUs."""
    pod = row.get("api_pod") or {}
    containers = (*(pod.get("containers") or ()), *(pod.get("init") or ()))
    wanted = [each["requests"]["cpu"] for each in containers if "cpu" in (each.get("requests") or {})]
    return not (_is_guaranteed(row) and any(quantity.parse(text).is_whole for text in wanted))


def _believed(row: Raw) -> object:
    """The updater's result."""
    if _unknown(row):
        return FAILED
    others, shares = _others(row), _shares_cpus(row)
    counted = (pod for pod in _listed(row) if pod not in others)
    kept = (pod for pod in counted if _is_guaranteed(row) or any(each.devices for each in pod.containers))
    return _scan_result(row, (_plain(pod, shares_cpus=shares) for pod in kept))


def _as_believed(case: Case) -> bool:
    believed: Any = _believed(case["input"])
    return all(believed[column] == value for column, value in case["expect"].items())


def _judged(row: Raw) -> object:
    """The kubelet lists the pod with an exclusive CPU, whether the API server knows the pod or not."""
    pod = PodResources("default", "web", (ContainerResources("main", (), (2,)),))
    return {"watchable": bool(pod.containers), "exclusive": plainform.placement(pod).is_exclusive}


NOT_KNOWN: Final = (
    "pods-unknown-to-the-api-server",
    "a pod that the API server does not know holds what the kubelet lists (D-19)",
)
SCANNED: Final = (
    DeliberateDifference(
        "every-namespace", "what pods of other namespaces hold is held", lambda row: bool(_others(row)), _as_believed
    ),
    DeliberateDifference(*NOT_KNOWN, lambda row: bool(_unknown(row)), _as_believed),
    DeliberateDifference("shared-cpus", "what the kubelet lists for a pod is the pod's", _shares_cpus, _as_believed),
)
UNKNOWN_PODS: Final = DeliberateDifference(
    *NOT_KNOWN, lambda row: not row.get("live"), lambda case: case["expect"].get("error") in ("not-found", "lister")
)

SUITES: tuple[Suite, ...] = (
    made("exporter.scan", _scanned("rte"), *RTE),
    made("exporter.scan_derived", _scanned("rte"), *RTE),
    made("exporter.placement_derived", _placed),
    made("exporter.fingerprint_method_derived", _signed),
    made("exporter.exclusive_filter", _exclusive),
    made("exporter.exclusive_filter_derived", _exclusive),
    made("updater.aggregate", _scanned("nfd"), *NFD),
    made("updater.aggregate_derived", _scanned("nfd"), *NFD),
    made("updater.scanner", _watched, *SCANNED),
    made("updater.watchable", _judged, UNKNOWN_PODS),
)
