"""Which pods are all right when a campaign rests, and which are stuck."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec import structs

from numalign.agent.sources.checkpoints import DeviceCheckpoint
from numalign.api.decode import decode
from numalign.api.objects.pod import Pod
from numalign.kube.client import Client
from numalign.kubelet import admission
from numalign.kubelet.machine import presets
from numalign.lab import spec
from numalign.lab.campaign import watch
from numalign.lab.campaign.actions import RestChecks
from numalign.lab.campaign.history import Holding
from numalign.lab.campaign.watch import Checkpoints, Observer

NODE = spec.node("n", presets.machine("2x16"))
REFUSED = {"conditions": [{"type": "PodScheduled", "status": "False", "message": "no room"}]}
RUNS = {"phase": "Running"}


def pod(
    name: str,
    cpus: int,
    *,
    node: str = "",
    status: dict[str, Any] | None = None,
    devices: dict[str, str] | None = None,
    **meta: Any,
) -> Pod:
    amounts = {"cpu": str(cpus), "memory": "1Gi"} | (devices or {})
    container = {"name": "main", "resources": {"requests": amounts, "limits": amounts}}
    body = {
        "metadata": {"name": name, "uid": name, **meta},
        "spec": {"nodeName": node, "containers": [container]},
        "status": status or {},
    }
    return decode.decode(Pod, body)


def urgent(one: Pod, policy: str = "PreemptLowerPriority") -> Pod:
    return structs.replace(one, spec=structs.replace(one.spec, priority=1000, preemption_policy=policy))


def held(*pods: Pod) -> Checkpoints:
    """What a kubelet has written down when these came one after the other."""
    kubelet = NODE.modelled
    state = kubelet.initial()
    for each in pods:
        state, outcome = admission.admit(kubelet, state, each)
        assert outcome.admitted
    assert state.cpu is not None
    return Checkpoints((), state.cpu, state.memory, DeviceCheckpoint(state.devices, {}, {}))


def wrong(there: list[Pod], found: Checkpoints) -> dict[str, str]:
    watching = SimpleNamespace(pods={each.metadata.uid: each for each in there}, checkpoints={"n": found})
    return RestChecks((NODE,), cast(Client, None), cast(Observer, watching)).wrong()


FULL = [pod("a", 15, node="n", status=RUNS), pod("b", 16, node="n", status=RUNS)]
CASES = {
    "it runs": (pod("c", 1, node="n", status=RUNS), held(), ""),
    "it is done": (pod("c", 1, node="n", status={"phase": "Succeeded"}), held(), ""),
    "it fits nowhere, and somebody said so": (pod("c", 17, status=REFUSED), held(), ""),
    "nobody said so": (pod("c", 17), held(), "pending without a reason"),
    "it fits": (pod("c", 4, status=REFUSED), held(), "fits on n, and waits: no room"),
    "its devices are on other nodes": (pod("c", 4, status=REFUSED, devices={"example.com/gpu": "1"}), held(), ""),
    "it is bound": (pod("c", 4, node="n"), held(), "is bound, and does not start"),
    "it is to go": (
        pod("c", 4, node="n", status=RUNS, deletionTimestamp="2026-01-01T00:00:00Z"),
        held(),
        "is to go, and stays",
    ),
}


@pytest.mark.parametrize("one, found, why", CASES.values(), ids=CASES)
def test_a_pod_at_rest(one: Pod, found: Checkpoints, why: str) -> None:
    assert wrong([one], found).get("c", "") == why


def test_a_pod_may_wait_for_others_that_hold_what_it_needs() -> None:
    waiting = pod("c", 4, status=REFUSED)
    assert wrong([*FULL, waiting], held(*FULL)) == {}
    assert "fits on n" in wrong([FULL[0], waiting], held(*FULL))["c"]


def test_checkpoints_say_in_which_zones_a_container_is() -> None:
    found = watch.holdings(NODE.machine, held(*FULL))
    assert found == {"a": {"main": Holding((0,), (0,))}, "b": {"main": Holding((1,), (1,))}}


def test_what_is_given_back_one_by_one_was_held_all_the_same() -> None:
    assert Holding(memory=(0,)).over(Holding((0,), (0,), ((1,),))) == Holding((0,), (0,), ((1,),))


@pytest.mark.parametrize(
    "waiting, stuck",
    [
        (urgent(pod("c", 8, status=REFUSED)), True),
        (urgent(pod("c", 8, status=REFUSED), "Never"), False),
        (pod("c", 8, status=REFUSED), False),
        (urgent(pod("c", 999, status=REFUSED)), False),
    ],
    ids=["may preempt", "never preempts", "has no priority", "fits on no empty node"],
)
def test_a_pod_that_can_preempt_others_does_not_wait(waiting: Pod, stuck: bool) -> None:
    assert list(wrong([*FULL, waiting], held(*FULL))) == (["c"] if stuck else [])


def test_a_pod_does_not_preempt_its_equals() -> None:
    there = [urgent(each) for each in FULL]
    assert wrong([*there, urgent(pod("c", 8, status=REFUSED))], held(*there)) == {}
