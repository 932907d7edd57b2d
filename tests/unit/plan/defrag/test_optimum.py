"""Plans of small clusters are carried out fact by fact, and held against every sequence of moves that is shorter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from numalign.api.objects.pod import Pod
from numalign.placement.capacity import count, waste
from numalign.placement.columns.holdings import Aligned
from numalign.placement.columns.resources import CPU
from numalign.placement.engine import Engine
from numalign.placement.facts import BindFailed
from numalign.plan.defrag.messages import DefragPlan
from numalign.plan.defrag.movable import created_again
from numalign.plan.defrag.planner import Wanted
from numalign.scheduler.snapshot import restore
from numalign.scheduler.snapshot.restore import Restored
from tests.unit.plan.defrag.towns import DIRECT, Tenant, planned, run, town, wanted_pods
from tests.unit.plan.defrag.towns import pod as pod_of

Cluster = Callable[[], Restored]
Case = tuple[list[str], list[Tenant], str, Wanted]


@st.composite
def cases(draw: st.DrawFn, most_nodes: int, most_pods: int) -> Case:
    """Nodes that were full and that some pods have left, and a goal that is one more than there is."""
    nodes = ["a", "b", "c"][: draw(st.integers(min(2, most_nodes), most_nodes))]
    sizes = st.tuples(st.sampled_from(nodes), st.integers(1, 6), st.booleans())
    policy = draw(st.sampled_from(["single-numa-node", "restricted", "best-effort", DIRECT]))
    tenants, staying, found = list[Tenant](), 0, town(nodes, [], policy)()
    for number, (node, cpu, ended) in enumerate(draw(st.lists(sizes, min_size=4, max_size=4 * most_pods))):
        tenant = Tenant(f"p{number}", node, cpu, ended=ended or staying >= most_pods)
        if run(found, pod_of(tenant), node):
            staying += not tenant.ended
            tenants.append(tenant)
    there = town(nodes, tenants, policy)()
    kind = draw(st.sampled_from(["pods", "pods", "zones", "node"]))
    if kind == "node":
        return nodes, tenants, policy, Wanted(text="", node=draw(st.sampled_from(nodes)))
    if kind == "zones":
        zones = sum(is_reached(there, Wanted(text="", zones=number)) for number in range(1, 2 * len(nodes) + 1))
        return nodes, tenants, policy, Wanted(text="", zones=zones + 1)
    cpu = draw(st.integers(4, 8))
    fitting = max(number for number in range(20) if is_reached(there, wanted_pods(number, cpu)))
    return nodes, tenants, policy, wanted_pods(fitting + 1, cpu)


def is_reached(found: Restored, wanted: Wanted) -> bool:
    """Whether the goal is there, by the engine's own counts and columns."""
    engine = found.engine
    if wanted.pod is not None:
        (counted,) = count.count(engine, [engine.shape(wanted.pod)])
        return counted.total >= wanted.pods
    if wanted.node:
        return not found.world.on_row[found.world.rows[wanted.node]]
    engine.flavour.refresh()
    columns, height = engine.columns, engine.height
    if any(waste.exact(engine).machine(row) is not None for row in range(height)):
        return sum(_untouched(engine, row) for row in range(height)) >= wanted.zones
    return (
        int((columns.free[:height, :2, CPU] == columns.size[columns.stock[:height]][:, :2, CPU]).sum()) >= wanted.zones
    )


def _untouched(engine: Engine, row: int) -> int:
    """Zones of a node in direct mode of which everything is free."""
    flavour = waste.exact(engine)
    machine = flavour.machine(row)
    assert machine is not None
    free = flavour.direct.ledger.free(engine.columns.names[row], machine)
    return sum(
        free.cpus & machine.cpus[zone] == machine.cpus[zone]
        and free.shared[zone] == 0
        and all(left[zone] == there[zone] for left, (_, there) in zip(free.memory, machine.memory, strict=True))
        for zone in range(len(machine.zones))
    )


def move(found: Restored, pod: Pod, node: str, serial: int) -> Pod | None:
    """The pod as it runs on the other node; None: it is not admitted there, or in other zones while the pod ends."""
    row_before, again = found.world.pods[pod.metadata.uid].row, created_again(pod)
    name = f"{pod.metadata.name}-{serial}"
    again = structs.replace(again, metadata=structs.replace(again.metadata, name=name, uid=name))
    beside = _lands(found, again, node)
    restore.end(found, found.world.pods[pod.metadata.uid].pod)
    if beside and found.world.rows[node] == row_before and beside != _lands(found, again, node):
        return None
    return again if run(found, again, node) else None


def _lands(found: Restored, pod: Pod, node: str) -> tuple[Aligned, ...] | None:
    """Where the pod would land there now; None: nowhere."""
    shape = found.engine.shape(pod)
    found.engine.survey(shape)
    decision = found.engine.place(pod, shape, found.engine.rows[node], 0.0)
    if decision is None:
        return None
    found.engine.apply(BindFailed(pod.metadata.uid))
    return decision.placement


def carried_out(cluster: Cluster, plan: DefragPlan, wanted: Wanted, order: Random) -> Restored:
    found, now = cluster(), dict[str, Pod]()
    for step in plan.steps:
        for each in step.pods:
            pod = now.get(each.uid) or found.world.pods[each.uid].pod
            moved = move(found, pod, each.lands.node, step.number)
            assert moved is not None, (step, plan)
            now[each.uid] = moved
            assert _zones(found, moved.metadata.uid, each.lands.node) == {
                zones for container in each.lands.containers for zones in container.zones
            }
    assert is_reached(found, wanted)
    if wanted.pod is not None:
        goals = [landing.node for landing in plan.lands for _ in range(landing.count)]
        order.shuffle(goals)
        for number, node in enumerate(goals):
            metadata = structs.replace(wanted.pod.metadata, name=f"goal-{number}", uid=f"goal-{number}")
            assert run(found, structs.replace(wanted.pod, metadata=metadata), node)
        assert len(goals) >= wanted.pods
    return found


def _zones(found: Restored, uid: str, node: str) -> set[tuple[int, ...]]:
    """The sets of zones in which its containers are."""
    decided = waste.exact(found.engine).direct.ledger.pods(node).get(uid)
    if decided is not None:
        return {zones for own in decided.containers.values() for zones in own}
    (held,) = [record.holding for record in _records(found, uid)]
    assert held is not None
    return {tuple(i for i in range(2) if mask >> i & 1) for each in held.containers for mask in each.possible}


def _records(found: Restored, uid: str) -> Iterator[Any]:
    for ledger in waste.exact(found.engine).mirror.ledger.nodes():
        if uid in ledger.records:
            yield ledger.records[uid]


def shortest(
    cluster: Cluster, tenants: Sequence[Tenant], nodes: Sequence[str], wanted: Wanted, most: int
) -> int | None:
    """The length of the shortest sequence of moves, of at most so many; None: there is none."""
    staying = [each.name for each in tenants if not each.ended]
    for length in range(most + 1):
        for sequence in product(product(staying, nodes), repeat=length):
            found = cluster()
            now = {name: found.world.pods[name].pod for name in staying}
            for serial, (name, node) in enumerate(sequence):
                moved = move(found, now[name], node, serial)
                if moved is None:
                    break
                now[name] = moved
            else:
                if is_reached(found, wanted):
                    return length
    return None


def check(case: Case, depth: int) -> None:
    nodes, tenants, policy, wanted = case
    cluster = town(nodes, tenants, policy)
    plan = planned(cluster, wanted)
    if plan.verdict == "found":
        carried_out(cluster, plan, wanted, Random(1))
    known = len(plan.steps) if plan.verdict in ("found", "nothing-to-do") else None
    best = shortest(cluster, tenants, nodes, wanted, min(depth, known if known is not None else depth))
    if best is None:
        assert known is None or known > depth, plan
    else:
        assert known == best, (plan, best)
        assert plan.cost.at_least <= best


@settings(max_examples=12)
@given(case=cases(most_nodes=2, most_pods=3))
def test_plans_of_small_clusters_hold_and_none_is_shorter(case: Case) -> None:
    check(case, depth=2)


@pytest.mark.slow
@settings(max_examples=60)
@given(case=cases(most_nodes=2, most_pods=4))
def test_no_sequence_of_three_moves_beats_a_plan(case: Case) -> None:
    check(case, depth=3)
