"""Accessors for the parts of a case as plain JSON: zones, CPUs, pods, masks, plugins.

`validity`, `cuts` and `mending` use them. Families share most field names, so one set of accessors serves all. A part
that a family does not have is empty."""

from __future__ import annotations

from collections.abc import Iterator

from numalign.api.attributes import cpuset
from numalign.kubelet.machine import HugePages
from numalign.oracle.shrinking.generic import Case


def machine(case: Case) -> Case | None:
    """The machine in the case; None if the case only names one."""
    topology = case.get("topology")
    return topology if isinstance(topology, dict) else None


def zone_ids(case: Case) -> list[int] | None:
    """The ids of all zones, or None if the case only names its machine."""
    if (topology := machine(case)) is not None:
        return [zone["id"] for zone in topology["numa"]]
    if "nodes" in case:
        return [node["id"] for node in case["nodes"]]
    return case.get("numa_nodes")


def cores(topology: Case) -> list[Case]:
    return [core for zone in topology["numa"] for core in zone["cores"]]


def cpus(topology: Case) -> int:
    return cpuset.of(cpu for core in cores(topology) for cpu in core["cpus"])


def memory_nodes(case: Case) -> list[Case]:
    listed: list[Case] = case.get("nodes") or case.get("memory_nodes") or []
    return listed


def page_sizes(node: Case) -> list[int]:
    return [pages["page_size_kb"] for pages in node["hugepages"]]


def page_resources(case: Case) -> set[str]:
    """The huge page resources that pods may request: those of the first zone."""
    return {HugePages(size, 0).resource for node in memory_nodes(case)[:1] for size in page_sizes(node)}


def plugins(case: Case) -> dict[str, Case]:
    found: dict[str, Case] = case.get("resources") or case.get("devices") or {}
    return found


def devices(case: Case) -> Iterator[Case]:
    return (device for plugin in plugins(case).values() for device in plugin["devices"])


def pods(case: Case) -> list[Case]:
    """All pods: listed in the case, or inside the ops that admit them."""
    listed = [case["pod"]] if "pod" in case else list(case.get("pods") or ())
    return listed + [op["pod"] for op in ops(case) if isinstance(op.get("pod"), dict)]


def containers(pod: Case) -> list[Case]:
    return [*(pod.get("init") or ()), *pod["containers"]]


def requirements(case: Case) -> list[Case]:
    """Everything with requests and limits."""
    found = [container for pod in pods(case) for container in containers(pod)]
    return found + [pod["pod_resources"] for pod in pods(case) if "pod_resources" in pod]


def ops(case: Case) -> list[Case]:
    listed: list[Case] = case.get("ops") or []
    return listed


def hint_lists(case: Case) -> list[list[Case]]:
    """The providers' hint lists of a merge."""
    provided = [hints for provider in case.get("providers") or () for hints in (provider or {}).values()]
    return [hints for hints in provided if hints is not None]


def hints(case: Case) -> list[Case]:
    """Every hint that is an input: chosen affinities and providers' hints."""
    chosen = [*(case.get("steps") or ()), *ops(case), case]
    return [each["affinity"] for each in chosen if "affinity" in each] + [
        hint for offered in hint_lists(case) for hint in offered
    ]


def assigned(case: Case) -> int:
    """The CPUs assigned before the case begins."""
    held = 0
    for of_pod in (case.get("assignments") or {}).values():
        for text in of_pod.values():
            held |= cpuset.parse(text)
    return held
