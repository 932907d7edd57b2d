"""A load drawn from a seed: what arrives when, and for whom."""

import itertools
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from numalign.simulator.nodes import workloads
from numalign.simulator.scenarios import play
from numalign.simulator.scenarios.durations import Span
from numalign.simulator.scenarios.play import Creation
from numalign.simulator.scenarios.scenario import CreatedObjects, Deletion, PodKind, PodStream

MIX = (PodKind(name="small", spec={"containers": []}), PodKind(name="large", spec={"schedulerName": "mine"}, weight=3))


def stream(**changes: Any) -> PodStream:
    return structs.replace(PodStream(at=1.0, pods=20, mix=MIX, every=Span(1.0, 2.0)), **changes)


def pods(seed: int = 1, **changes: Any) -> list[Creation]:
    made = play.calls([stream(**changes)], "numalign", seed)
    assert all(isinstance(call, Creation) for call in made)
    return [call for call in made if isinstance(call, Creation)]


def test_the_same_seed_gives_the_same_load_and_another_another() -> None:
    assert pods(seed=1) == pods(seed=1)
    assert pods(seed=1) != pods(seed=2)


@given(st.integers(0, 2**32))
def test_pods_arrive_within_the_span_and_have_names_of_their_own(seed: int) -> None:
    made = pods(seed)
    steps = [later.at - earlier.at for earlier, later in itertools.pairwise(made)]
    assert made[0].at == 1.0
    assert all(1.0 <= step <= 2.0 for step in steps)
    assert len({call.tree["metadata"]["name"] for call in made}) == len(made)


def test_pods_go_to_whoever_plays_unless_they_name_a_scheduler() -> None:
    wanted = {call.tree["metadata"]["labels"]["app"]: call.tree["spec"]["schedulerName"] for call in pods()}
    assert wanted == {"small": "numalign", "large": "mine"}


def test_a_lifetime_is_written_on_the_pod() -> None:
    (pod,) = pods(pods=1, lifetime=Span(60.0, 60.0))
    assert pod.tree["metadata"]["annotations"] == {workloads.RUN_SECONDS: "60.000"}


def test_templates_of_workloads_go_to_whoever_plays() -> None:
    deployment = {"kind": "Deployment", "spec": {"replicas": 2, "template": {"spec": {"containers": []}}}}
    (call,) = play.calls([CreatedObjects(0.0, (deployment,))], "numalign", 1)
    assert isinstance(call, Creation)
    assert call.tree["spec"]["template"]["spec"] == {"schedulerName": "numalign", "containers": []}
    assert "schedulerName" not in deployment["spec"]["template"]["spec"]  # type: ignore[index]


def test_calls_are_in_the_order_of_time() -> None:
    late, early = Deletion(at=9.0, api_version="v1", kind="Pod", name="a"), stream(at=0.0, pods=2)
    assert [call.at for call in play.calls([late, early], "x", 1)][-1] == 9.0
