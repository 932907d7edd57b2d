"""Recorded scans of pods by the updater: which pods it counts, with which resources, and which it looks up.

The agent counts every listed pod and looks up none. Where a recording has less, it must be exactly what the updater
leaves out for a documented reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from numalign.agent.publish import plainform
from numalign.agent.sources.podresources import ContainerResources, PodResources
from numalign.api.decode import quantity
from numalign.api.nrt import fingerprint
from numalign.oracle.plugin.suites.suite import Case, Deliberate, Suite
from numalign.oracle.publishers import publisherstates
from numalign.oracle.publishers.publishers import made

Row = Mapping[str, Any]
FAILED: Final = {"watched": None, "fingerprint": None, "error": True}


def _listed(row: Row) -> tuple[PodResources, ...]:
    return publisherstates.pods({"pods": row.get("listed")})


def _watched(row: Row) -> object:
    if row.get("list_error"):
        return FAILED
    return _told(row, map(_plain, _listed(row)))


def _told(row: Row, pods: Any) -> dict[str, Any]:
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


def _others(row: Row) -> list[PodResources]:
    """Pods of namespaces that the updater does not watch."""
    wanted = row["namespace"]
    return [pod for pod in _listed(row) if wanted != "*" and pod.namespace != wanted]


def _unknown(row: Row) -> list[PodResources]:
    """Pods that the API server does not know."""
    pod, others = row.get("api_pod") or {}, _others(row)
    asked = (each for each in _listed(row) if each not in others)
    return [each for each in asked if (each.namespace, each.name) != (pod.get("namespace"), pod.get("name"))]


def _is_guaranteed(row: Row) -> bool:
    return bool((row.get("api_pod") or {}).get("qos") == "Guaranteed")


def _shares_cpus(row: Row) -> bool:
    """The API server's pod has no exclusive CPUs: not Guaranteed, or no container with whole CPUs."""
    pod = row.get("api_pod") or {}
    containers = (*(pod.get("containers") or ()), *(pod.get("init") or ()))
    wanted = [each["requests"]["cpu"] for each in containers if "cpu" in (each.get("requests") or {})]
    return not (_is_guaranteed(row) and any(quantity.parse(text).is_whole for text in wanted))


def _believed(row: Row) -> object:
    """The updater's result."""
    if _unknown(row):
        return FAILED
    others, shares = _others(row), _shares_cpus(row)
    counted = (pod for pod in _listed(row) if pod not in others)
    kept = (pod for pod in counted if _is_guaranteed(row) or any(each.devices for each in pod.containers))
    return _told(row, (_plain(pod, shares_cpus=shares) for pod in kept))


def _as_believed(case: Case) -> bool:
    believed: Any = _believed(case["input"])
    return all(believed[column] == value for column, value in case["expect"].items())


def _judged(row: Row) -> object:
    """Whatever the API server knows of the pod: the kubelet lists it with an exclusive CPU."""
    pod = PodResources("default", "web", (ContainerResources("main", (), (2,)),))
    return {"watchable": bool(pod.containers), "exclusive": plainform.placement(pod).is_exclusive}


NOT_KNOWN: Final = ("pods-nobody-knows", "a pod that the API server cannot tell of holds what it holds (D-19)")
SCANNED: Final = (
    Deliberate(
        "every-namespace", "what pods of other namespaces hold is held", lambda row: bool(_others(row)), _as_believed
    ),
    Deliberate(*NOT_KNOWN, lambda row: bool(_unknown(row)), _as_believed),
    Deliberate("shared-cpus", "what the kubelet lists for a pod is the pod's", _shares_cpus, _as_believed),
)
UNKNOWN_PODS: Final = Deliberate(
    *NOT_KNOWN,
    lambda row: not row.get("live"),
    lambda case: case["expect"].get("error") in ("not-found", "lister"),
)

SUITES: tuple[Suite, ...] = (
    made("updater.scanner", _watched, *SCANNED),
    made("updater.watchable", _judged, UNKNOWN_PODS),
)
