"""Recorded reports of RTE and NFD, and what makes them look: our model in their form beside them.

Zones are `kubelet.plainreport`'s, of a kubelet in the recorded state; files, stale objects and configurations are read
by the agent's own modules."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from numalign.agent import gc, sysfs, triggers
from numalign.api import fingerprint, yamltext, zonename
from numalign.api.meta import ObjectMeta
from numalign.api.nodetopology import Zone
from numalign.kubelet import configuration, plainreport, presets, report
from numalign.kubelet.plainreport import Publisher
from numalign.oracle.suites import nodetexts, publisherstates
from numalign.oracle.suites.suite import Case, Deliberate, Suite

Row = Mapping[str, Any]
LONG_AGO: Final = ObjectMeta(creation_timestamp="2020-01-01T00:00:00Z")

UNREACHABLE = Deliberate(
    "states-of-no-kubelet",
    "a state that no kubelet gets into, or a setting of the publisher that we do not have",
    publisherstates.unreachable,
)
UNKNOWN_CPU = Deliberate(
    "states-of-no-kubelet",
    "a container with a CPU that the machine does not have",
    publisherstates.holds_unknown_cpus,
    lambda case: case["expect"] == {"payload": None},
)
MORE_THAN_NONE = Deliberate(
    "less-than-nothing",
    "the updater reports less than nothing of a device in several zones (D-24); nothing is the least",
    publisherstates.has_spanning_devices,
    lambda case: any(each["available"] < 0 for zone in case["expect"]["zones"] for each in zone["resources"]),
)


def _scanned(publisher: Publisher) -> Callable[[Row], object]:
    def answered(row: Row) -> object:
        case = publisherstates.unified(row)
        kubelet = publisherstates.kubelet(case)
        found = plainreport.of("recorded", kubelet, publisherstates.state(case, kubelet), publisher)
        signed = report.signature(publisherstates.placements(case), fingerprint.Method(_method(row)))
        return {"zones": list(map(_zone, found.zones)), "fingerprint": signed.text}

    return answered


def _method(row: Row) -> str:
    return str(row.get("fingerprint_method") or row.get("method") or fingerprint.Method.ALL)


def _zone(zone: Zone) -> object:
    resources = []
    for name, each in sorted(zone.resources.items()):
        unit = report.MILLI if name == "cpu" else 1
        amounts = {"capacity": each.capacity, "allocatable": each.allocatable, "available": each.available}
        resources.append({"name": name, **{kind: amount // unit for kind, amount in amounts.items()}})
    costs = [{"name": zonename.name_of(other), "value": cost} for other, cost in sorted(zone.costs.items())]
    return {"name": zonename.name_of(zone.id), "type": "Node", "costs": costs, "resources": resources}


def _placed(row: Row) -> object:
    case = publisherstates.unified(row)
    found = report.payload(publisherstates.kubelet(case), publisherstates.placements(case))
    return {"payload": nodetexts.written(found) if found else None, "metadata": found.metadata if found else None}


def _signed(row: Row) -> object:
    pods = publisherstates.placements(publisherstates.unified(row))
    judged = (((pod.namespace, pod.name), pod.is_exclusive) for pod in pods)
    included = fingerprint.included(judged, fingerprint.Method(row["method"]))
    return {"included": [list(pod) for pod in included], "fingerprint": fingerprint.of(included)}


def _exclusive(row: Row) -> object:
    if row["pod"] is None:
        return {"allow": False}
    (pod,) = publisherstates.placements({"pods": [row["pod"]]})
    return {"allow": pod.is_exclusive}


def _map(row: Row) -> object:
    zones = row["topology"]["nodes"]
    machine = publisherstates.machine(row)
    assert [zone.id for zone in machine.zones] == [zone["id"] for zone in zones]
    return {"map": {str(cpu): zone.id for zone in machine.zones for core in zone.cores for cpu in core.cpus}}


def _memory(row: Row) -> object:
    with tempfile.TemporaryDirectory() as folder:
        # The recorded trees have memory alone; a machine without a CPU is none.
        cpus = {"devices/system/cpu/cpu0/topology/core_id": "0", "devices/system/node/node0/cpulist": "0"}
        for path, text in {**row["files"], **cpus}.items():
            file = Path(folder, "sys", path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        machine = sysfs.machine(Path(folder))
    found: dict[str, dict[str, int]] = {"memory": {str(zone.id): zone.memory for zone in machine.zones}}
    for zone in machine.zones:
        for page in zone.hugepages:
            found.setdefault(page.resource, {})[str(zone.id)] = page.total_bytes
    return {"bytes_per_numa": found}


def _swept(row: Row) -> object:
    nodes, reports = list(row["nodes"]), list(row["nrts"])
    for event in row["events"]:
        what, _, name = event.partition(":")
        if what == "delete-node":
            nodes.remove(name)
        elif what == "create-nrt":
            reports.append(name)
    objects = [ObjectMeta(name=each, creation_timestamp=LONG_AGO.creation_timestamp) for each in reports]
    stale = {each.name for each in gc.stale(nodes, objects, datetime.now(UTC))}
    return {"left": [each for each in reports if each not in stale]}


def _triggers(row: Row) -> object:
    return {"triggers": Path(row["path"]) in triggers.of_kubelet(Path("kubelet"))}


def _configured(row: Row) -> object:
    (document,) = yamltext.documents(row["text"], "recorded")
    settings = configuration.read(document.value, "recorded", presets.machine("2x16"))
    return {"updater": [settings.topology_policy, settings.topology_scope]}


def _made(name: str, answer: Callable[[Row], object], *deliberate: Deliberate) -> Suite:
    def answered(case: Case) -> object:
        return answer(case["input"])

    return Suite(name, answered, nodetexts.as_far_as_recorded, deliberate)


SUITES: tuple[Suite, ...] = (
    _made("exporter.scan", _scanned("rte"), UNREACHABLE),
    _made("exporter.scan_derived", _scanned("rte"), UNREACHABLE),
    _made("exporter.placement_derived", _placed, UNKNOWN_CPU),
    _made("exporter.fingerprint_method_derived", _signed),
    _made("exporter.exclusive_filter", _exclusive),
    _made("exporter.exclusive_filter_derived", _exclusive),
    _made("exporter.cpu_to_numa", _map),
    _made("updater.aggregate", _scanned("nfd"), UNREACHABLE),
    _made("updater.aggregate_derived", _scanned("nfd"), UNREACHABLE, MORE_THAN_NONE),
    _made("updater.gc", _swept),
    _made("updater.state_events_derived", _triggers),
    _made("sysinfo.memory_tree", _memory),
    _made("kubelet.config_derived", _configured),
)

SETTING = "a setting of that program, which we do not have"
INSIDE = "a step inside that program; what comes of it is compared in its scans"
NOT_APPLICABLE: dict[str, str] = {
    "numaplacement.validate_shared": "a part of the decoder's checks; the whole of them is compared",
    "numaplacement.decoder_count": INSIDE,
    "numaplacement.affinity_lookup": INSIDE,
    "sysinfo.meminfo_parse_derived": "words of an error; here the file is named and the rest of the machine is told",
    "exporter.normalize": INSIDE,
    "exporter.locality_present": INSIDE,
    "exporter.pod_exclude": SETTING,
    "exporter.terminal_filter": "kubelets from 1.34 on do not list finished pods",
    "exporter.parse_endpoint": SETTING,
    "exporter.reference_container": SETTING,
    "exporter.shared_pool_derived": SETTING,
    "exporter.config_root_allowed": SETTING,
    "exporter.config_validate": SETTING,
    "exporter.config_defaults": SETTING,
    "exporter.config_tree": SETTING,
    "exporter.extra_config": SETTING,
    "exporter.csv_split": SETTING,
    "exporter.metrics_tls": SETTING,
    "exporter.metrics_node_name": SETTING,
    "exporter.set_interval": SETTING,
    "exporter.notify_file": "that program makes the file itself; ours waits for whatever is put there",
    "exporter.notify_events_derived": "that program watches the file; ours the folder, so that a new file counts too",
    "exporter.condition_equal": "conditions on the publisher's own pod, which we do not write",
    "exporter.condition_inject": "conditions on the publisher's own pod, which we do not write",
    "exporter.publish_verbs": "that program patches and updates; ours applies",
    "exporter.publish_verbs_derived": "that program patches and updates; ours applies",
    "updater.exclude_list": SETTING,
    "updater.scanner": "that program asks the API server about every pod (D-19); ours goes by what pods hold",
    "updater.watchable": "that program asks the API server about every pod (D-19); ours goes by what pods hold",
    "kubelet.device_entries_derived": "the kubelet's side of its socket",
}
"""Suites without a counterpart, and why."""
