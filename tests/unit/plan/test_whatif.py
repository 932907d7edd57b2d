"""`plan what-if`: who moves, who loses, and what the same cluster would have."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from numalign.api.errors import BadObject
from numalign.api.objects.meta import OwnerReference
from numalign.api.objects.pod import Pod
from numalign.plan.questions import changes, whatif
from numalign.plan.questions.changes import Change
from numalign.plan.questions.scene import Kind
from numalign.plan.questions.whatif import WhatIf, WhatIfQuestion
from numalign.scheduler.snapshot.snapshot import Snapshot
from tests.machinescenes import node
from tests.unit.plan.plannedclusters import cluster, kind, pending
from tests.unit.scheduler.servers import GPU, owned, trainer


def asked(taken: Snapshot, change: Change, *kinds: Kind, **more: Any) -> WhatIf:
    return whatif.compared(taken, WhatIfQuestion(change=change, kinds=kinds, **more))


def train(name: str, gpus: int = 2, cpu: str = "4", **spec: Any) -> Pod:
    return owned(trainer(name, gpus, cpu, **spec), "set-1")


def daemon(name: str) -> Pod:
    pod = trainer(name, 0, "1")
    owner = OwnerReference(kind="DaemonSet", name="agent", uid="agent", controller=True)
    return structs.replace(pod, metadata=structs.replace(pod.metadata, owner_references=(owner,)))


def test_pods_of_a_lost_node_come_back_where_there_is_room() -> None:
    taken = cluster(node("a", running=[train("a-0"), train("a-1")]), node("b", running=[train("b-0")]))
    found = asked(taken, Change(gone=frozenset({"a"})))
    assert (found.now.running, found.then.running, found.then.moved, found.then.lost) == (3, 3, 2, 0)
    assert found.fits
    assert found.losers == ()


def test_zones_are_counted_as_free_where_no_pod_comes_or_goes() -> None:
    taken = cluster(node("a", running=[train("a-0", gpus=4)]), node("b"))
    found = asked(taken, Change())
    assert (found.now.free_zones[GPU], found.then.free_zones[GPU]) == (3, 3)


def test_who_loses_is_named_with_the_reason_in_the_order_of_priority() -> None:
    low, high = train("low", gpus=4), train("high", gpus=4, priority=100)
    full = [train("b-0", gpus=4), train("b-1", gpus=3)]
    taken = cluster(node("a", running=[low, high]), node("b", running=full[:1]))
    found = asked(taken, Change(gone=frozenset({"a"})))
    assert (found.then.moved, found.then.lost) == (1, 1)
    (loser,) = found.losers
    assert (loser.owner, loser.pods, loser.of) == ("ReplicaSet default/set", 1, 3)
    assert loser.names == ("default/low",)
    assert loser.because == whatif.GONE
    assert "nvidia.com/gpu" in loser.why
    assert not found.fits


def test_a_pod_without_a_controller_does_not_come_back_and_a_daemon_ends_with_its_node() -> None:
    taken = cluster(node("a", running=[trainer("bare"), daemon("agent-a")]), node("b"))
    found = asked(taken, Change(gone=frozenset({"a"})))
    (loser,) = found.losers
    assert (loser.owner, loser.why) == ("Pod default/bare", whatif.NOTHING)
    assert found.then.lost == 1


def test_a_stricter_policy_refuses_what_spans_zones_at_the_restart() -> None:
    """Six GPUs span both zones. A kubelet that is restarted with single-numa-node does not admit the pod again."""
    taken = cluster(
        node("a", policy="best-effort", running=[train("wide", gpus=6), train("narrow", gpus=1)]), node("b")
    )
    found = asked(taken, changes.read({"topology-policy": "single-numa-node"}))
    assert (found.then.refused, found.then.lost) == (1, 1)
    (loser,) = found.losers
    assert loser.names == ("default/wide",)
    assert loser.because == whatif.REFUSED


def test_more_zones_refuse_what_needed_one_zone() -> None:
    taken = cluster(node("a", policy="single-numa-node", running=[train("four", gpus=4)]))
    assert asked(taken, changes.read({"zones-per-socket": "1"})).fits
    found = asked(taken, changes.read({"zones-per-socket": "2"}))
    assert (found.then.refused, found.then.lost) == (1, 1)


def test_only_chosen_nodes_change() -> None:
    taken = cluster(
        node("a", policy="best-effort", running=[train("wide-a", gpus=6)]),
        node("b", policy="best-effort", running=[train("wide-b", gpus=6)]),
    )
    change = structs.replace(changes.read({"topology-policy": "single-numa-node"}), nodes=frozenset({"b"}))
    found = asked(taken, change)
    assert [each.names for each in found.losers] == [("default/wide-b",)]


def test_more_reserved_cpus_leave_less_of_the_node() -> None:
    taken = cluster(node("a", machine="2x16", running=[train("big", 0, "15")]))
    found = asked(taken, changes.read({"reserved-cpus": "0-3,16-19"}), kind("small", cpu="2"))
    # 14 CPUs of one zone are free, and then 12 of each, of which one pod of the workload takes two.
    assert (found.then.refused, found.then.lost) == (1, 1)
    assert (found.now.capacity["small"], found.then.capacity["small"]) == (6, 11)


def test_waiting_pods_that_find_a_node_are_counted_and_so_are_rejections_of_a_blind_scheduler() -> None:
    running = [train("a-0", gpus=3), train("a-1", gpus=3)]
    taken = cluster(node("a", running=running), pending(train("waits", gpus=2)))
    found = asked(taken, changes.read({"topology-policy": "best-effort"}))
    assert (found.now.waiting, found.then.waiting, found.then.placed) == (1, 0, 1)
    assert (found.now.rejected_if_blind, found.then.rejected_if_blind) == (3, 0)
    assert found.now.stranded["nvidia.com/gpu"] == 2


def test_a_node_whose_report_does_not_say_enough_stays_as_it_is() -> None:
    taken = cluster(node("a"), node("plain", policy="restricted", publisher="rte"))
    found = asked(taken, changes.read({"zones-per-socket": "2"}))
    assert list(found.unchanged.values()) == [("plain",)]
    alone = cluster(node("plain", policy="restricted", publisher="rte"))
    with pytest.raises(BadObject, match="no node can be changed"):
        asked(alone, changes.read({"zones-per-socket": "2"}))


def test_the_policy_of_any_node_with_a_report_can_be_changed() -> None:
    taken = cluster(node("plain", policy="single-numa-node", publisher="rte"))
    found = asked(taken, changes.read({"topology-policy": "best-effort"}), kind("wide", pods=1, cpu="2", gpu="6"))
    assert (found.now.placed, found.then.placed) == (0, 1)


def test_a_kubelet_that_would_not_start_is_an_error() -> None:
    taken = cluster(node("a"))
    with pytest.raises(BadObject, match="would not start"):
        asked(taken, Change(kubelet={"cpuManagerPolicyOptions": {"no-such-option": "true"}}))


def test_every_pod_again_on_empty_nodes_compares_strategies() -> None:
    taken = cluster(node("a", running=[train("a-0")]), node("b", running=[train("b-0")]))
    change = structs.replace(changes.read({"scoring": "MostAllocated"}), from_empty=True)
    found = asked(taken, change, seed=1)
    assert (found.now.running, found.then.running) == (2, 2)
    assert (found.now.moved, found.then.moved) == (2, 2)
    assert found == asked(taken, change, seed=1)


def test_pods_that_are_evicted_for_others_are_among_the_losers() -> None:
    taken = cluster(
        node("a", running=[train("high", gpus=8, priority=100)], policy="best-effort"),
        node("b", running=[train("low", gpus=8)], policy="best-effort"),
    )
    found = asked(taken, Change(gone=frozenset({"a"})))
    (loser,) = found.losers
    assert (loser.names, loser.because) == (("default/low",), whatif.EVICTED)
    assert (found.then.running, found.then.moved, found.then.lost) == (1, 1, 1)


def test_nodes_that_are_not_there_are_named() -> None:
    with pytest.raises(BadObject, match="Node ghost: is not in the cluster"):
        asked(cluster(node("a")), Change(gone=frozenset({"ghost"})))
