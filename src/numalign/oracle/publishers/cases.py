"""Generates, shrinks and judges rows of the publishers' tables.

`sources` passes `draw`, `smaller` and `judge` to campaigns. A row depends only on a seed and a number. Most are nodes
as a kubelet reports them; the rest are edge cases: empty lists, unknown ids, duplicates. A row is judged as a recorded
one: equal, or different on purpose by a rule on its input. Where the real program panics, a rule must predict it, and
ours must answer."""

from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Any, Final

from numalign.api.objects import resourcenames
from numalign.oracle.harness import ask, divergence, shrink
from numalign.oracle.harness import suite as suites
from numalign.oracle.harness.ask import Finding, JudgedCase
from numalign.oracle.harness.divergence import Case, Difference, Raw
from numalign.oracle.harness.draws import chance, weighted
from numalign.oracle.harness.suite import Outcome
from numalign.oracle.publishers import actions, reports, states, steps, texts
from numalign.oracle.publishers.generate import nodes, smalltables


def _beyond(row: Raw) -> bool:
    """A device in a zone that the machine does not have (D-01)."""
    zones = range(len(states.machine(row).zones))
    offered = states.allocatable(row).devices
    return any(zone not in zones for entry in offered for zone in entry.zones or ())


def _by_place(row: Raw) -> bool:
    """Zone ids that differ from their places in the list (D-02)."""
    return not states.in_a_row(row)


def _left_out_and_held(row: Raw) -> bool:
    """A CPU or device that a pod holds, of an excluded kind (D-25)."""
    left_out = states.excluded(row) - {resourcenames.MEMORY}
    held = [container for pod in states.pods(row) for container in pod.containers]
    cpus = {cpu for container in held for cpu in container.cpus} & {*states.allocatable(row).cpus}
    devices = {entry.resource for container in held for entry in container.devices if entry.ids}
    return bool(left_out & (devices | ({resourcenames.CPU} if cpus else set())))


CRASHES: Final[Mapping[str, tuple[Callable[[Raw], bool], ...]]] = {
    "exporter.scan": (_beyond, _by_place),
    "updater.aggregate": (_left_out_and_held,),
}


def expected(suite: str, row: Raw) -> bool:
    return any(crashes(row) for crashes in CRASHES.get(suite, ()))


MODULES = (texts, reports, steps, actions)
SUITES = {suite.name: suite for module in MODULES for suite in module.SUITES}

FINDINGS: dict[Outcome, Finding] = {Outcome.EQUAL: "agreed", Outcome.DELIBERATE: "deliberate"}


def judge(case: Case, answer: Case) -> JudgedCase:
    suite = case["suite"]
    if (without := ask.without(suite, case, answer)) is not None:
        return without
    if "panic" in answer:
        differences = _instead_of_a_crash(case, answer["panic"])
        return JudgedCase(suite, case, answer, "differs" if differences else "deliberate", differences)
    found = suites.judged(SUITES[suite], {**answer, "fixtures": {}})
    return JudgedCase(suite, case, answer, FINDINGS.get(found.outcome, "differs"), found.differences)


def _instead_of_a_crash(case: Case, said: str) -> tuple[Difference, ...]:
    if not expected(case["suite"], case["input"]):
        return (Difference("", expected=said, answered="no rule says that it crashes"),)
    try:
        SUITES[case["suite"]].answer(case)
    except Exception as problem:
        return (divergence.no_answer(problem, said),)
    return ()


Draw = Callable[[Random], Case]


def _scan(rng: Random) -> Case:
    made = nodes.drawn(rng)
    row = {**made.row(), "sys_memory": made.by_kind(), "pods": made.pods()}
    if chance(rng, 0.3):
        row["exclude"] = made.excluded("n1")
    if chance(rng, 0.1):
        row["namespace"] = rng.choice((*nodes.NAMESPACES, ""))
    if chance(rng, 0.5):
        row["fingerprint_method"] = rng.choice(("all", "with-exclusive-resources", ""))
    return row


def _aggregate(rng: Random) -> Case:
    made = nodes.drawn(rng)
    row = {**made.row(), "memory_capacity": made.by_zone(), "pods": [nodes.unified(pod) for pod in made.pods()]}
    if chance(rng, 0.2):
        row["exclude"] = sorted(name for names in made.excluded("n1").values() for name in names)
    return row


def _scanner(rng: Random) -> Case:
    made = nodes.drawn(rng)
    listed = made.pods()[: weighted(rng, {0: 1, 1: 10, 2: 1})]
    row: Case = {
        "namespace": rng.choice(("*", "*", *nodes.NAMESPACES)),
        "fingerprint_enabled": chance(rng, 0.7),
        "list_error": chance(rng, 0.03),
        "listed": listed,
    }
    if listed and chance(rng, 0.95):
        row["api_pod"] = nodes.known(rng, listed[0])
    return row


def _topology(rng: Random) -> Case:
    return {"topology": nodes.drawn(rng).row()["topology"]}


def _normalize(rng: Random) -> Case:
    row = nodes.drawn(rng).row()
    return {"topology": row["topology"], "allocatable": row["allocatable"]}


def _pods(rng: Random) -> Case:
    return {"method": rng.choice(("all", "with-exclusive-resources")), "pods": nodes.drawn(rng).pods()}


def _pod(rng: Random) -> Case:
    pods = nodes.drawn(rng).pods()
    return {"pod": rng.choice(pods) if pods else None}


RTE: Final[Mapping[str, tuple[float, Draw]]] = {
    "exporter.scan": (40, _scan),
    "exporter.cpu_to_numa": (1, _topology),
    "exporter.normalize": (4, _normalize),
    "exporter.fingerprint_method_derived": (6, _pods),
    "exporter.exclusive_filter": (6, _pod),
    "exporter.locality_present": (1, smalltables.locality),
    "exporter.pod_exclude": (10, smalltables.patterns),
    "exporter.terminal_filter": (2, smalltables.finished),
    "exporter.parse_endpoint": (5, smalltables.endpoint),
    "exporter.reference_container": (4, smalltables.reference),
    "exporter.shared_pool_derived": (4, smalltables.pool),
    "sysinfo.memory_tree": (5, smalltables.tree),
    "sysinfo.meminfo_parse_derived": (5, smalltables.meminfo),
    "sysinfo.hugepage_resource_name": (2, smalltables.page_size),
}
NFD: Final[Mapping[str, tuple[float, Draw]]] = {
    "updater.aggregate": (50, _aggregate),
    "updater.scanner": (30, _scanner),
    "updater.exclude_list": (6, smalltables.excluded),
    "updater.policy_name": (3, smalltables.policy),
}
TEXTS: Final[Mapping[str, tuple[float, Draw]]] = {
    "fingerprint.sign_derived": (1, smalltables.signed),
    "fingerprint.check": (2, smalltables.checked),
    "fingerprint.version_compat": (1, smalltables.version),
    "nrt.numa_id_to_name": (1, smalltables.zone_id),
    "nrt.numa_name_to_id": (2, smalltables.zone_name),
    "nrt.attribute_get": (1, smalltables.attribute),
    "nrt.attribute_insert": (1, smalltables.insertion),
    "nrt.attribute_merge": (1, smalltables.merge),
    "nrt.attribute_delete_all": (1, smalltables.attribute),
}
"""Suites of the packages that both programs share."""
PROGRAMS: Final = {"rte": {**RTE, **TEXTS}, "nfd": {**NFD, **TEXTS}}


def draw(seed: int, number: int, program: str) -> tuple[str, Case]:
    """The suite and the row with this number."""
    rng = Random(f"{program}/{seed}/{number}")
    tables = PROGRAMS[program]
    suite = weighted(rng, {name: weight for name, (weight, _) in tables.items()})
    return suite, {
        "id": f"{program}-{seed}-{number}",
        "suite": suite,
        "input": smalltables.spoiled(rng, tables[suite][1](rng)),
    }


OPEN: Final = frozenset(("sys_memory", "memory_capacity", "exclude", "config", "files"))
"""Tables from which any entry can be removed."""
OPTIONAL: Final = frozenset(("exclude", "namespace", "fingerprint_method", "api_pod"))
"""Columns that a row can omit."""
FIXED: Final = frozenset(("id", "reference", "distances"))
"""Lists whose length has a meaning."""
NEEDED: Final = frozenset(("nodes", "files"))
"""What is never empty."""


def smaller(case: Case) -> Iterator[Case]:
    for row in shrink.candidates(case["input"], _cuts(case["input"])):
        zones = (row.get("topology") or {}).get("nodes") or ()
        for zone in zones:
            del zone["distances"][len(zones) :]
        yield {**case, "input": row}


def _cuts(row: Case) -> Iterator[tuple[shrink.Place, Any]]:
    for place, thing in shrink.objects(row):
        for key, child in thing.items():
            if (key in OPTIONAL and not place) or (place and place[-1] in OPEN):
                yield place, key
            if isinstance(child, list) and key not in FIXED:
                whole = (0, len(child)) if key in NEEDED else None
                yield from (((*place, key), slice(*block)) for block in shrink.blocks(len(child)) if block != whole)
