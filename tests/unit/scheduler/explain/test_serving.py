"""Whether a scheduler has looked at a pending pod, and which schedulers the cluster seems to have."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.pod import Pod, PodCondition
from numalign.kube.resources import Event, Lease, LeaseSpec
from numalign.scheduler.explain import serving
from numalign.scheduler.explain.serving import SchedulerSigns, Unattended
from tests.unit.scheduler import waitingpods
from tests.unit.scheduler.servers import on, trainer

NOW = "2026-01-01T00:01:00Z"


def created(pod: Pod, at: str = "2026-01-01T00:00:20Z") -> Pod:
    return structs.replace(pod, metadata=structs.replace(pod.metadata, creation_timestamp=at))


def lease(name: str, renewed: str | None, holder: str | None = "host_1") -> Lease:
    spec = LeaseSpec(holder_identity=holder, lease_duration_seconds=15, renew_time=renewed)
    return Lease(metadata=ObjectMeta(name=name, namespace="kube-system"), spec=spec)


def asked(pod: Pod, *others: Pod, **signs: Any) -> Unattended:
    found = serving.unattended(created(pod), others, SchedulerSigns(**({"events": ()} | signs)), NOW)
    assert found is not None
    return found


TRACES: dict[str, tuple[Pod, SchedulerSigns]] = {
    "a condition": (
        structs.replace(
            trainer("p"), status=structs.replace(trainer("p").status, conditions=(PodCondition(type="PodScheduled"),))
        ),
        SchedulerSigns(),
    ),
    "an event": (trainer("p"), SchedulerSigns(events=(Event(reason="FailedScheduling"),))),
    "a node": (on(trainer("p"), "a"), SchedulerSigns()),
    "gates, which no scheduler passes": (
        waitingpods.pod("p", {"schedulingGates": [{"name": "example.com/quota"}]}),
        SchedulerSigns(),
    ),
}


@pytest.mark.parametrize("pod, signs", TRACES.values(), ids=TRACES)
def test_a_pod_with_a_trace_of_a_scheduler_is_attended(pod: Pod, signs: SchedulerSigns) -> None:
    assert serving.unattended(pod, (), signs, NOW) is None


def test_a_name_that_no_scheduler_has_is_questioned_and_the_known_ones_are_named() -> None:
    pod = waitingpods.pod("p", {"schedulerName": "my-own"})
    found = asked(
        pod, on(trainer("a"), "n"), on(trainer("b"), "n"), on(waitingpods.pod("c", {"schedulerName": "x"}), "n")
    )
    assert not found.is_served
    assert found.sentence == (
        "no scheduler has looked at the pod in 40 s: it has no PodScheduled condition and no event. "
        "Does a scheduler named my-own run? Pods here were scheduled under numalign and x"
    )


def test_a_lease_that_is_held_says_that_the_scheduler_runs() -> None:
    found = asked(trainer("p"), leases=(lease("other", NOW), lease("numalign", "2026-01-01T00:00:55Z")))
    assert found.is_served
    assert found.sentence.endswith(
        "; its scheduler runs (lease kube-system/numalign is held by host_1, renewed 5 s ago)"
    )


GONE = {
    "not renewed": lease("numalign", "2026-01-01T00:00:00Z"),
    "given up": lease("numalign", "2026-01-01T00:00:59Z", holder=""),
    "without a time": lease("numalign", None),
    "with a time that is none": lease("numalign", "yesterday"),
}


@pytest.mark.parametrize("found", GONE.values(), ids=GONE)
def test_a_lease_that_is_not_held_says_that_the_scheduler_is_gone_although_it_bound_pods(found: Lease) -> None:
    told = asked(trainer("p"), on(trainer("a"), "n"), leases=(found,))
    assert not told.is_served
    assert "its scheduler does not run: lease kube-system/numalign is not held" in told.sentence


def test_without_a_server_nothing_is_said_of_events_and_of_time() -> None:
    found = serving.unattended(trainer("p"), (), SchedulerSigns(), "")
    assert found is not None
    assert found.sentence == (
        "no scheduler has looked at the pod: it has no PodScheduled condition. Does a scheduler named numalign run? "
        "No pod here was scheduled yet"
    )
