"""The zones in which pods of a node in direct mode are: by their decisions, and as the agent acknowledges them."""

from __future__ import annotations

from numalign.api.attributes.directmode import AppliedContainer
from numalign.api.objects.pod import Pod
from numalign.kubelet import start
from numalign.kubelet.report import directreport, report
from numalign.placement.capacity.rowreader import RowReader
from numalign.placement.engine import Engine
from numalign.placement.facts import ReportSeen
from tests.unit.kubelet import made
from tests.unit.placement.direct import clusters, machines

ONE_ZONE = '{"policy": "SingleNUMANode"}'


def cluster(*pods: Pod, applied: tuple[AppliedContainer, ...] = ()) -> Engine:
    found = clusters.engine("n")
    for each in pods:
        decision = found.place(each, found.shape(each), found.rows["n"], 0.0)
        assert decision is not None
        clusters.see(found, clusters.bound(each, decision))
    if applied:
        machine = made.machine(zones=2, cores=8)
        kubelet = start.start(machine, clusters.UNMANAGED)
        plain = report.of("n", kubelet, kubelet.initial())
        acknowledged = directreport.advertised(plain, machine, clusters.UNMANAGED, clusters.ALL, applied)
        found.apply(ReportSeen(acknowledged, 1.0))
    found.flavour.refresh()
    return found


def pod(name: str, *cpus: int, spec: str = ONE_ZONE) -> Pod:
    return clusters.named(machines.pod(*cpus, spec=spec), name)


def test_a_pod_holds_the_zones_of_its_decision_alone() -> None:
    there = cluster(pod("first", 6), pod("second", 6), pod("free", 1, spec='{"policy": "None"}'))
    held = RowReader(there).held(there.rows["n"])
    assert {uid: held[uid] for uid in ("first", "second")} == {"first": 0b01, "second": 0b10}
    assert not held.get("free")


def test_a_report_shows_a_pod_once_the_agent_has_acknowledged_it() -> None:
    first, second, third = pod("first", 6), pod("second", 6), pod("third", 1, 1)
    applied = (
        AppliedContainer(uid="first", container="c0", cpus=0b111111, mems=0b11),
        AppliedContainer(uid="third", container="c0", cpus=1 << 6, mems=0b11),
        AppliedContainer(uid="third", container="c1", failure="CPU 7 is taken"),
    )
    there = cluster(first, second, third, applied=applied)
    assert RowReader(there).observed(there.rows["n"]) == {"first": frozenset({0})}


def test_zones_are_those_of_the_cpus_in_effect() -> None:
    """An acknowledgement says what the kernel reports, which may differ from the decision for a while."""
    applied = (AppliedContainer(uid="first", container="c0", cpus=0b111111 << 8, mems=0b11),)
    there = cluster(pod("first", 6), applied=applied)
    assert RowReader(there).observed(there.rows["n"]) == {"first": frozenset({1})}
