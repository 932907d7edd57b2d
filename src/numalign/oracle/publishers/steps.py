"""Recorded steps inside the publishers: what they read, which pods they count, what they exclude.

Each is compared with the agent's module for it. `reports` compares the complete reports."""

import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import structs

from numalign.agent.inventory import exclusions, inventory, plainform, snapshot
from numalign.agent.inventory.exclusions import Exclusions, PodPattern
from numalign.agent.sources import podresources, sysfs
from numalign.agent.sources.podresources import ContainerResources, DeviceEntry, PodResources
from numalign.agent.sources.sysfs import Survey
from numalign.api import errors
from numalign.api.decode import yamltext
from numalign.api.nrt.placementcodec import ContainerRef
from numalign.api.objects import resourcenames
from numalign.kubelet import configuration, start
from numalign.kubelet.machine import presets
from numalign.kubelet.machine.machine import Device, DevicePlugin
from numalign.kubelet.settings import Settings
from numalign.oracle.harness import suite
from numalign.oracle.harness.divergence import Case, Difference, Raw
from numalign.oracle.harness.suite import DeliberateDifference, Suite
from numalign.oracle.publishers import defects, states
from numalign.oracle.publishers.reports import made

FOLDER: Final = re.compile(r"devices/system/node/node(\d+)/")
MEMORY_TOTAL: Final = re.compile(r"MemTotal:[ \t]*\d+[ \tkB]*$")


def _map(row: Raw) -> object:
    machine = states.machine(row)
    assert [zone.id for zone in machine.zones] == [zone["id"] for zone in row["topology"]["nodes"]]
    return {"map": {str(cpu): zone.id for zone in machine.zones for core in zone.cores for cpu in core.cpus}}


def _normalised(row: Raw) -> dict[str, list[dict[str, Any]]]:
    allocatable = states.allocatable(row)
    cpus = plainform.by_zone(states.machine(row), allocatable.cpus).items()
    found: list[dict[str, Any]] = [
        {"resource": "cpu", "ids": [str(cpu) for cpu in members], "numa": [zone]} for zone, members in cpus
    ]
    found += [
        {"resource": each.resource, "ids": list(each.ids), "numa": _listed(each.zones)} for each in allocatable.devices
    ]
    blocks = [(block, zone) for block in allocatable.memory if block.size for zone in block.zones]
    found += [{"resource": block.type, "ids": [str(block.size)], "numa": [zone]} for block, zone in blocks]
    return {"expected": found}


def _in_any_order(expected: Any, answered: Any) -> Sequence[Difference]:
    return suite.exactly(_sorted(expected["expected"]), _sorted(answered["expected"]))


def _sorted(entries: Iterable[Raw]) -> list[Raw]:
    ordered = ({**each, "ids": sorted(each["ids"])} for each in entries)
    return sorted(ordered, key=lambda each: (each["resource"], each["numa"] or [], each["ids"]))


def _listed(zones: tuple[int, ...] | None) -> list[int] | None:
    return None if zones is None else list(zones)


def _local(row: Raw) -> object:
    zones = states.numa(row)
    held = ContainerResources("main", (DeviceEntry("example.com/nic", ("nic-0",), zones),))
    return {"present": plainform.placement(PodResources("default", "web", (held,))).is_exclusive}


def _surveyed(files: Mapping[str, str]) -> Survey:
    # The recorded trees have memory only; a machine needs a CPU.
    cpus = {"devices/system/cpu/cpu0/topology/core_id": "0", "devices/system/node/node0/cpulist": "0"}
    with tempfile.TemporaryDirectory() as folder:
        for path, text in {**files, **cpus}.items():
            file = Path(folder, "sys", path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        return sysfs.survey(Path(folder))


def _memory(row: Raw) -> object:
    named = {int(found[1]) for found in map(FOLDER.match, row["files"]) if found}
    zones = [zone for zone in _surveyed(row["files"]).machine.zones if zone.id in named]
    found: dict[str, dict[str, int]] = {"memory": {str(zone.id): zone.memory for zone in zones}}
    for zone in zones:
        for page in zone.hugepages:
            found.setdefault(page.resource, {})[str(zone.id)] = page.total_bytes
    return {"bytes_per_numa": found}


def _total(row: Raw) -> object:
    file = "devices/system/node/node0/meminfo"
    found = _surveyed({file: row["text"]})
    if any(file in problem for problem in found.problems):
        return {"problem": f"{file} states no memory"}
    return {"bytes": found.machine.zones[0].memory}


def _excluded(row: Raw) -> object:
    listed = row.get("patterns") or ()
    patterns = tuple(PodPattern(each.get("namespacePattern", ""), each.get("namePattern", "")) for each in listed)
    return {"excluded": Exclusions(pods=patterns).has(row["namespace"], row["name"])}


def _left_out(row: Raw) -> object:
    config = {node: names or () for node, names in (row.get("config") or {}).items()}
    found = exclusions.on_node(config, row["node"])
    mentioned = row.get("asked") or dict.fromkeys(name for names in config.values() for name in names) or ("cpu",)
    return {
        "excluded": [name for name in mentioned if name in found],
        "kept": [name for name in mentioned if name not in found],
    }


def _unfinished(row: Raw) -> object:
    pods = [PodResources(*each) for each in row["listed"] or ()]
    kept = snapshot.unfinished(pods, {(namespace, name) for namespace, name in row["terminal"] or ()})
    return {"kept": [[pod.namespace, pod.name] for pod in kept]}


def _endpoint(row: Raw) -> object:
    try:
        path = podresources.endpoint(row["endpoint"])
    except errors.BadObject:
        return {"path": None, "error": "unsupported-protocol"}
    return {"path": str(path), "error": None}


def _same_place(expected: Any, answered: Any) -> Sequence[Difference]:
    place = expected["path"]
    return suite.exactly({**expected, "path": None if place is None else str(Path(place))}, answered)


def _reference(row: Raw) -> object:
    try:
        found = snapshot.reference(row["text"])
    except errors.BadObject:
        return {"error": True}
    return {"result": None if found is None else list(found)}


def _own_cpus(row: Raw) -> object:
    containers = row["containers"] or ()
    named = [ContainerRef(*each["id"]) for each in containers]
    pods = [
        PodResources(ref.namespace, ref.pod, (ContainerResources(ref.container, (), tuple(each["cpus"] or ())),))
        for ref, each in zip(named, containers, strict=True)
    ]
    reference = ContainerRef(*row["reference"]) if row.get("reference") else None
    found = snapshot.without_pool(pods, snapshot.pool_of(pods, reference))
    return {"expected": {"/".join(ref): list(pod.containers[0].cpus) for ref, pod in zip(named, found, strict=True)}}


def _entries(row: Raw) -> object:
    plugins = {
        resource: DevicePlugin(tuple(Device(each, None if numa is None else tuple(numa)) for each, numa in ids.items()))
        for resource, ids in row["instances"].items()
    }
    kubelet = start.start(structs.replace(presets.machine("2x16"), devices=plugins), Settings())
    entries = inventory.modelled_allocatable(kubelet).devices
    return {"entries": [{"resource": e.resource, "ids": list(e.ids), "numa": _listed(e.zones)} for e in entries]}


def _configuration(row: Raw) -> Any:
    (document,) = yamltext.documents(row["text"], "recorded")
    return document.value


def _configured(row: Raw) -> dict[str, list[str]]:
    settings = configuration.read(_configuration(row), "recorded", presets.machine("2x16"))
    read: list[str] = [settings.topology_policy, settings.topology_scope]
    return {"updater": read, "exporter": read}


def _written(row: Raw) -> list[str]:
    """Policy and scope as written in the file, without defaults."""
    configuration = _configuration(row)
    return [configuration.get(key, "") for key in ("topologyManagerPolicy", "topologyManagerScope")]


def _states_memory(text: str) -> bool:
    """The first line that matches has the kernel's format."""
    return MEMORY_TOTAL.search(next((line for line in text.splitlines() if "MemTotal" in line), "")) is not None


def _damaged(row: Raw) -> set[str]:
    """Zones with a file that the kernel would not write, or without a required one."""
    files, found = row["files"], set[str]()
    for path, text in files.items():
        zone = FOLDER.match(path)
        if zone is None:
            continue
        whole = f"{zone[0]}meminfo" in files and any(each.startswith(f"{zone[0]}hugepages/") for each in files)
        if not whole or not (_states_memory(text) if path.endswith("meminfo") else text.strip().isdecimal()):
            found.add(zone[1])
    return found


def _where_whole(case: Case) -> bool:
    """The other side stops, or the undamaged zones are equal."""
    damaged, sizes = _damaged(case["input"]), case["expect"].get("bytes_per_numa")
    if sizes is None:
        return True
    ours: Any = _memory(case["input"])
    return _without(sizes, damaged) == _without(ours["bytes_per_numa"], damaged)


def _without(sizes: Mapping[str, Mapping[str, int]], zones: set[str]) -> object:
    kept = {kind: {zone: size for zone, size in sizes.items() if zone not in zones} for kind, sizes in sizes.items()}
    return {kind: sizes for kind, sizes in kept.items() if sizes}


def _once(entries: Iterable[Raw]) -> list[Raw]:
    return _sorted({**each, "ids": dict.fromkeys(each["ids"])} for each in entries)


NOT_STATED = DeliberateDifference(
    "memory-not-stated",
    "a file that states no memory costs its zone the memory, and is named; it stops nothing",
    lambda row: not _states_memory(row["text"]),
)
DAMAGED = DeliberateDifference(
    "memory-not-stated",
    "a file that is missing or damaged costs one value, and is named; it stops nothing",
    lambda row: not row["files"] or bool(_damaged(row)),
    _where_whole,
)
OWN_DEFAULTS = DeliberateDifference(
    "the-kubelets-defaults",
    "a setting that the kubelet's file leaves out is the kubelet's default, and not empty (D-08)",
    lambda row: "" in _written(row),
    lambda case: {**_configured(case["input"]), "exporter": _written(case["input"])} == case["expect"],
)
COUNTED_ONCE = DeliberateDifference(
    "counted-once",
    "a CPU that is listed twice is one",
    lambda row: any(name == resourcenames.CPU for _, name, _ in defects.listed_twice(row)),
    lambda case: _once(case["expect"]["expected"]) == _once(_normalised(case["input"])["expected"]),
)
NO_FAKES = DeliberateDifference(
    "sockets-alone",
    "a folder with recorded answers is no endpoint of ours",
    lambda row: row["endpoint"].startswith("fake:"),
    lambda case: case["expect"].get("error") is None,
)
SUITES: tuple[Suite, ...] = (
    made("exporter.cpu_to_numa", _map),
    Suite("exporter.normalize", lambda case: _normalised(case["input"]), _in_any_order, (COUNTED_ONCE,)),
    made("exporter.locality_present", _local),
    made("exporter.pod_exclude", _excluded),
    made("exporter.terminal_filter", _unfinished),
    Suite("exporter.parse_endpoint", lambda case: _endpoint(case["input"]), _same_place, (NO_FAKES,)),
    made("exporter.reference_container", _reference),
    made("exporter.shared_pool_derived", _own_cpus),
    made("sysinfo.memory_tree", _memory, DAMAGED),
    made("sysinfo.meminfo_parse_derived", _total, NOT_STATED),
    made("updater.exclude_list", _left_out),
    made("kubelet.device_entries_derived", _entries),
    made("kubelet.config_derived", _configured, OWN_DEFAULTS),
)
