"""Generates rows of the publishers' tables, in the form of the recorded ones.

A row depends only on a seed and a number. Most are nodes as a kubelet reports them. The rest are edge cases: empty
lists, unknown ids, duplicates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Final

from numalign.oracle.generate.draws import chance, weighted
from numalign.oracle.publishers.generate import nodes, odd

Case = dict[str, Any]
Row = dict[str, Any]
Draw = Callable[[Random], Row]


def _scan(rng: Random) -> Row:
    made = nodes.drawn(rng)
    row = {**made.row(), "sys_memory": made.by_kind(), "pods": made.pods()}
    if chance(rng, 0.3):
        row["exclude"] = made.excluded("n1")
    if chance(rng, 0.1):
        row["namespace"] = rng.choice((*nodes.NAMESPACES, ""))
    if chance(rng, 0.5):
        row["fingerprint_method"] = rng.choice(("all", "with-exclusive-resources", ""))
    return row


def _aggregate(rng: Random) -> Row:
    made = nodes.drawn(rng)
    row = {**made.row(), "memory_capacity": made.by_zone(), "pods": [nodes.unified(pod) for pod in made.pods()]}
    if chance(rng, 0.2):
        row["exclude"] = sorted(name for names in made.excluded("n1").values() for name in names)
    return row


def _scanner(rng: Random) -> Row:
    made = nodes.drawn(rng)
    listed = made.pods()[: weighted(rng, {0: 1, 1: 10, 2: 1})]
    row: Row = {
        "namespace": rng.choice(("*", "*", *nodes.NAMESPACES)),
        "fingerprint_enabled": chance(rng, 0.7),
        "list_error": chance(rng, 0.03),
        "listed": listed,
    }
    if listed and chance(rng, 0.95):
        row["api_pod"] = nodes.known(rng, listed[0])
    return row


def _topology(rng: Random) -> Row:
    return {"topology": nodes.drawn(rng).row()["topology"]}


def _normalize(rng: Random) -> Row:
    row = nodes.drawn(rng).row()
    return {"topology": row["topology"], "allocatable": row["allocatable"]}


def _pods(rng: Random) -> Row:
    return {"method": rng.choice(("all", "with-exclusive-resources")), "pods": nodes.drawn(rng).pods()}


def _pod(rng: Random) -> Row:
    pods = nodes.drawn(rng).pods()
    return {"pod": rng.choice(pods) if pods else None}


RTE: Final[Mapping[str, tuple[float, Draw]]] = {
    "exporter.scan": (40, _scan),
    "exporter.cpu_to_numa": (1, _topology),
    "exporter.normalize": (4, _normalize),
    "exporter.fingerprint_method_derived": (6, _pods),
    "exporter.exclusive_filter": (6, _pod),
    "exporter.locality_present": (1, odd.locality),
    "exporter.pod_exclude": (10, odd.patterns),
    "exporter.terminal_filter": (2, odd.finished),
    "exporter.parse_endpoint": (5, odd.endpoint),
    "exporter.reference_container": (4, odd.reference),
    "exporter.shared_pool_derived": (4, odd.pool),
    "sysinfo.memory_tree": (5, odd.tree),
    "sysinfo.meminfo_parse_derived": (5, odd.meminfo),
    "sysinfo.hugepage_resource_name": (2, odd.page_size),
}
NFD: Final[Mapping[str, tuple[float, Draw]]] = {
    "updater.aggregate": (50, _aggregate),
    "updater.scanner": (30, _scanner),
    "updater.exclude_list": (6, odd.excluded),
    "updater.policy_name": (3, odd.policy),
}
TEXTS: Final[Mapping[str, tuple[float, Draw]]] = {
    "fingerprint.sign_derived": (1, odd.signed),
    "fingerprint.check": (2, odd.checked),
    "fingerprint.version_compat": (1, odd.version),
    "nrt.numa_id_to_name": (1, odd.zone_id),
    "nrt.numa_name_to_id": (2, odd.zone_name),
    "nrt.attribute_get": (1, odd.attribute),
    "nrt.attribute_insert": (1, odd.insertion),
    "nrt.attribute_merge": (1, odd.merge),
    "nrt.attribute_delete_all": (1, odd.attribute),
}
"""Suites of the packages that both programs share."""
PROGRAMS: Final = {"rte": {**RTE, **TEXTS}, "nfd": {**NFD, **TEXTS}}


def draw(seed: int, number: int, program: str) -> tuple[str, Case]:
    """The suite and the row with this number."""
    rng = Random(f"{program}/{seed}/{number}")
    tables = PROGRAMS[program]
    suite = weighted(rng, {name: weight for name, (weight, _) in tables.items()})
    return suite, {"id": f"{program}-{seed}-{number}", "suite": suite, "input": odd.spoiled(rng, tables[suite][1](rng))}
