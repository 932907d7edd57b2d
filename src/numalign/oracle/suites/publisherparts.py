"""Recorded steps inside the publishers: what they read, whom they count and what they leave out.

Each is put to the agent's own module for it. `publishers` has what comes of all of them together."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import structs

from numalign.agent import exclusions, listing, offering, plainform, podresources, sysfs
from numalign.agent.exclusions import Exclusions, PodPattern
from numalign.agent.podresources import ContainerResources, DeviceEntry, PodResources
from numalign.agent.sysfs import Survey
from numalign.api import errors, fingerprint, quantity, yamltext
from numalign.api.placementcodec import ContainerRef
from numalign.kubelet import configuration, presets, start
from numalign.kubelet.machine import Device, DevicePlugin
from numalign.kubelet.settings import Settings
from numalign.oracle.suites import publisherstates
from numalign.oracle.suites.publishers import made
from numalign.oracle.suites.suite import Deliberate, Suite

Row = Mapping[str, Any]


def _map(row: Row) -> object:
    machine = publisherstates.machine(row)
    assert [zone.id for zone in machine.zones] == [zone["id"] for zone in row["topology"]["nodes"]]
    return {"map": {str(cpu): zone.id for zone in machine.zones for core in zone.cores for cpu in core.cpus}}


def _normalised(row: Row) -> object:
    told = publisherstates.allocatable(row)
    cpus = plainform.by_zone(publisherstates.machine(row), told.cpus).items()
    found: list[dict[str, Any]] = [
        {"resource": "cpu", "ids": [str(cpu) for cpu in members], "numa": [zone]} for zone, members in cpus
    ]
    found += [{"resource": each.resource, "ids": list(each.ids), "numa": _listed(each.zones)} for each in told.devices]
    blocks = [(block, zone) for block in told.memory if block.size for zone in block.zones]
    found += [{"resource": block.type, "ids": [str(block.size)], "numa": [zone]} for block, zone in blocks]
    return {"expected": sorted(found, key=lambda each: (each["resource"], each["numa"] or [], each["ids"]))}


def _listed(zones: tuple[int, ...] | None) -> list[int] | None:
    return None if zones is None else list(zones)


def _local(row: Row) -> object:
    zones = None if row["numa"] is None else tuple(row["numa"])
    held = ContainerResources("main", (DeviceEntry("example.com/nic", ("nic-0",), zones),))
    return {"present": plainform.placement(PodResources("default", "web", (held,))).is_exclusive}


def _surveyed(files: Mapping[str, str]) -> Survey:
    # The recorded trees have memory alone; a machine without a CPU is none.
    cpus = {"devices/system/cpu/cpu0/topology/core_id": "0", "devices/system/node/node0/cpulist": "0"}
    with tempfile.TemporaryDirectory() as folder:
        for path, text in {**files, **cpus}.items():
            file = Path(folder, "sys", path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        return sysfs.survey(Path(folder))


def _memory(row: Row) -> object:
    zones = _surveyed(row["files"]).machine.zones
    found: dict[str, dict[str, int]] = {"memory": {str(zone.id): zone.memory for zone in zones}}
    for zone in zones:
        for page in zone.hugepages:
            found.setdefault(page.resource, {})[str(zone.id)] = page.total_bytes
    return {"bytes_per_numa": found}


def _total(row: Row) -> object:
    file = "devices/system/node/node0/meminfo"
    found = _surveyed({file: row["text"]})
    if any(file in problem for problem in found.problems):
        return {"problem": f"{file} tells no memory"}
    return {"bytes": found.machine.zones[0].memory}


def _excluded(row: Row) -> object:
    patterns = tuple(PodPattern(each["namespacePattern"], each["namePattern"]) for each in row["patterns"])
    return {"excluded": Exclusions(pods=patterns).has(row["namespace"], row["name"])}


def _left_out(row: Row) -> object:
    found = exclusions.on_node(row["config"], row["node"])
    mentioned = dict.fromkeys(name for names in row["config"].values() for name in names) or {"cpu": None}
    return {
        "excluded": [name for name in mentioned if name in found],
        "kept": [name for name in mentioned if name not in found],
    }


def _unfinished(row: Row) -> object:
    pods = [PodResources(*each) for each in row["listed"]]
    kept = listing.unfinished(pods, {(namespace, name) for namespace, name in row["terminal"]})
    return {"kept": [[pod.namespace, pod.name] for pod in kept]}


def _endpoint(row: Row) -> object:
    try:
        path = podresources.endpoint(row["endpoint"])
    except errors.BadObject:
        return {"path": None, "error": "unsupported-protocol"}
    return {"path": "" if path == Path() else str(path), "error": None}


def _reference(row: Row) -> object:
    try:
        found = listing.reference(row["text"])
    except errors.BadObject:
        return {"error": True}
    return {"result": None if found is None else list(found)}


def _own_cpus(row: Row) -> object:
    named = [ContainerRef(*each["id"]) for each in row["containers"]]
    pods = [
        PodResources(ref.namespace, ref.pod, (ContainerResources(ref.container, (), tuple(each["cpus"])),))
        for ref, each in zip(named, row["containers"], strict=True)
    ]
    found = listing.without_pool(pods, listing.pool_of(pods, ContainerRef(*row["reference"])))
    return {"expected": {"/".join(ref): list(pod.containers[0].cpus) for ref, pod in zip(named, found, strict=True)}}


def _entries(row: Row) -> object:
    plugins = {
        resource: DevicePlugin(tuple(Device(each, None if numa is None else tuple(numa)) for each, numa in ids.items()))
        for resource, ids in row["instances"].items()
    }
    kubelet = start.start(structs.replace(presets.machine("2x16"), devices=plugins), Settings())
    entries = offering.of(kubelet).devices
    return {"entries": [{"resource": e.resource, "ids": list(e.ids), "numa": _listed(e.zones)} for e in entries]}


def _watched(row: Row) -> object:
    """Every pod counts with what it is listed with."""
    if row.get("list_error"):
        return {"watched": None, "fingerprint": None, "error": True}
    pods = publisherstates.pods({"pods": row["listed"]})
    signed = fingerprint.of((pod.namespace, pod.name) for pod in pods) if pods else None
    told = [_pod(pod) for pod in pods if any(each.cpus or each.devices or each.memory for each in pod.containers)]
    return {"watched": told, "fingerprint": signed if row.get("fingerprint_enabled") else None, "error": False}


def _pod(pod: PodResources) -> dict[str, Any]:
    containers = [{"name": each.name, "resources": _resources(each)} for each in pod.containers]
    return {"name": pod.name, "namespace": pod.namespace, "containers": [c for c in containers if c["resources"]]}


def _resources(held: ContainerResources) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (
        [{"name": "cpu", "data": [str(cpu) for cpu in held.cpus], "numa": None}] if held.cpus else []
    )
    found += [{"name": each.resource, "data": list(each.ids), "numa": _listed(each.zones)} for each in held.devices]
    return [*found, *({"name": m.type, "data": [str(m.size)], "numa": list(m.zones)} for m in held.memory if m.size)]


def _in_other_namespaces(row: Row) -> bool:
    return row["namespace"] not in ("", "*") and any(pod["namespace"] != row["namespace"] for pod in row["listed"])


def _shares_cpus(row: Row) -> bool:
    """CPUs listed for a pod that has none of its own: not Guaranteed, or without a whole number of them."""
    pod = row.get("api_pod") or {}
    wanted = [each["requests"].get("cpu", "0.5") for each in pod.get("containers", ())]
    whole = pod.get("qos") == "Guaranteed" and any(quantity.parse(text).is_whole for text in wanted)
    return not whole and any(each["cpus"] for listed in row["listed"] for each in listed["containers"])


def _judged(row: Row) -> object:
    """Whatever the API server knows of the pod: it is listed with a CPU of its own."""
    pod = PodResources("default", "web", (ContainerResources("main", (), (2,)),))
    return {"watchable": bool(pod.containers), "exclusive": plainform.placement(pod).is_exclusive}


def _configured(row: Row) -> object:
    (document,) = yamltext.documents(row["text"], "recorded")
    settings = configuration.read(document.value, "recorded", presets.machine("2x16"))
    return {"updater": [settings.topology_policy, settings.topology_scope]}


NOT_TOLD = Deliberate(
    "memory-not-told",
    "a file that tells no memory costs its zone the memory, and is named; it stops nothing",
    lambda row: "text" in row,
    lambda case: case["expect"].get("error") in ("missing", "not-a-number", "bad-format"),
)
NO_FAKES = Deliberate(
    "sockets-alone",
    "a folder with recorded answers is no endpoint of ours",
    lambda row: row["endpoint"].startswith("fake://"),
    lambda case: case["expect"].get("error") is None,
)
EVERY_NAMESPACE = Deliberate(
    "every-namespace",
    "what pods of other namespaces hold is held",
    _in_other_namespaces,
    lambda case: case["expect"]["watched"] == [],
)
SHARED_CPUS = Deliberate(
    "shared-cpus",
    "kubelets from 1.23 on list no CPUs but those that a container has for itself",
    _shares_cpus,
    lambda case: "cpu" not in str(case["expect"]["watched"]),
)
UNKNOWN_PODS = Deliberate(
    "pods-nobody-knows",
    "a pod that the API server cannot tell of holds what it holds (D-19)",
    lambda row: not row.get("live"),
    lambda case: case["expect"].get("error") in ("not-found", "lister"),
)

SUITES: tuple[Suite, ...] = (
    made("exporter.cpu_to_numa", _map),
    made("exporter.normalize", _normalised),
    made("exporter.locality_present", _local),
    made("exporter.pod_exclude", _excluded),
    made("exporter.terminal_filter", _unfinished),
    made("exporter.parse_endpoint", _endpoint, NO_FAKES),
    made("exporter.reference_container", _reference),
    made("exporter.shared_pool_derived", _own_cpus),
    made("sysinfo.memory_tree", _memory),
    made("sysinfo.meminfo_parse_derived", _total, NOT_TOLD),
    made("updater.exclude_list", _left_out),
    made("updater.scanner", _watched, EVERY_NAMESPACE, SHARED_CPUS),
    made("updater.watchable", _judged, UNKNOWN_PODS),
    made("kubelet.device_entries_derived", _entries),
    made("kubelet.config_derived", _configured),
)
