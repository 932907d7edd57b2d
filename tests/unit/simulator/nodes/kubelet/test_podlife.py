import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.api.decode import decode
from numalign.api.objects.pod import Container, Pod
from numalign.simulator.nodes.kubelet.podlife import PodLife
from numalign.simulator.nodes.workloads import ContainerBehaviour

FOR_EVER = ContainerBehaviour()
Runs = Mapping[str, Sequence[ContainerBehaviour]]
"""What each container does, start after start; the last one is repeated."""


def life(runs: Runs, *, init: Sequence[str] = (), apps: Sequence[str] = ("app",), policy: str = "Always") -> PodLife:
    """Init containers whose names begin with "side" are sidecars."""
    spec: dict[str, Any] = {"restartPolicy": policy, "containers": [{"name": name} for name in apps]}
    spec["initContainers"] = [
        {"name": name} | ({"restartPolicy": "Always"} if name.startswith("side") else {}) for name in init
    ]
    pod = decode.decode(Pod, {"metadata": {"name": "web", "uid": "u"}, "spec": spec})

    def workload(pod: Pod, container: Container, attempt: int) -> ContainerBehaviour:
        planned = runs.get(container.name, [FOR_EVER])
        return planned[min(attempt, len(planned) - 1)]

    return PodLife(pod, 1.0, workload)


def told(one: PodLife, until: float) -> list[tuple[float, str, str]]:
    """Everything that happens, at the moments at which something is due."""
    changes: list[tuple[float, str, str]] = []
    now = 0.0
    while (due := one.due()) is not None and due <= until:
        now = max(now, due)
        changes += [(now, move.what, move.container) for move in one.advance(now)]
    return changes


def test_containers_start_once_the_sandbox_stands() -> None:
    one = life({}, apps=["a", "b"])
    assert (one.phase, one.advance(0.5)) == ("Pending", [])
    assert told(one, 100) == [(1.0, "started", "a"), (1.0, "started", "b")]
    assert (one.phase, one.due()) == ("Running", None)


def test_init_containers_run_one_after_the_other_and_sidecars_stay() -> None:
    one = life({"i1": [ContainerBehaviour(5)], "i2": [ContainerBehaviour(3)]}, init=["i1", "side", "i2"])
    assert told(one, 100) == [
        (1.0, "started", "i1"),
        (6.0, "ended", "i1"),
        (6.0, "started", "side"),
        (6.0, "started", "i2"),
        (9.0, "ended", "i2"),
        (9.0, "started", "app"),
    ]
    assert [each.name for each in one.containers if each.running] == ["side", "app"]


@pytest.mark.parametrize(
    "policy, code, phase, starts",
    [
        pytest.param("Always", 0, "Running", 4, id="always starts what succeeded"),
        pytest.param("Always", 1, "Running", 4, id="always starts what failed"),
        pytest.param("OnFailure", 0, "Succeeded", 1, id="on failure leaves what succeeded"),
        pytest.param("OnFailure", 1, "Running", 4, id="on failure starts what failed"),
        pytest.param("Never", 0, "Succeeded", 1, id="never, succeeded"),
        pytest.param("Never", 1, "Failed", 1, id="never, failed"),
    ],
)
def test_the_restart_policy_decides_what_follows_an_exit(policy: str, code: int, phase: str, starts: int) -> None:
    one = life({"app": [ContainerBehaviour(2, code)]}, policy=policy)
    told(one, 60)
    assert (one.phase, one.apps[0].starts, one.ended) == (phase, starts, phase != "Running")


def test_a_crash_loop_backs_off() -> None:
    one = life({"app": [ContainerBehaviour(0, 1)]})
    starts = [moment for moment, what, _ in told(one, 1000) if what == "started"]
    gaps = [later - earlier for earlier, later in itertools.pairwise(starts)]
    assert gaps == [0, 10, 20, 40, 80, 160, 300, 300]


def test_a_long_run_makes_earlier_crashes_forgotten() -> None:
    one = life({"app": [ContainerBehaviour(0, 1), ContainerBehaviour(0, 1), ContainerBehaviour(601, 1), FOR_EVER]})
    starts = [moment for moment, what, _ in told(one, 2000) if what == "started"]
    assert starts == [1.0, 1.0, 11.0, 612.0]


@pytest.mark.parametrize("policy, phase", [("Never", "Failed"), ("OnFailure", "Pending"), ("Always", "Pending")])
def test_a_failed_init_container_ends_the_pod_only_if_it_is_never_restarted(policy: str, phase: str) -> None:
    one = life({"init": [ContainerBehaviour(1, 1)]}, init=["side", "init"], policy=policy)
    told(one, 5)
    assert (one.phase, one.ended) == (phase, policy == "Never")


def test_sidecars_are_started_again_and_end_with_the_apps() -> None:
    one = life(
        {"side": [ContainerBehaviour(2), FOR_EVER], "app": [ContainerBehaviour(50)]}, init=["side"], policy="Never"
    )
    changes = told(one, 100)
    assert [move for move in changes if move[2] == "side"] == [
        (1.0, "started", "side"),
        (3.0, "ended", "side"),
        (3.0, "started", "side"),
        (51.0, "ended", "side"),
    ]
    assert (one.phase, one.ended) == ("Succeeded", True)


@pytest.mark.parametrize("killed, code", [(False, 143), (True, 137)])
def test_a_stop_ends_everything_at_its_time(killed: bool, code: int) -> None:
    one = life({}, init=["side"])
    told(one, 5)
    one.stop(7.0, killed=killed)
    assert told(one, 10) == [(7.0, "ended", "side"), (7.0, "ended", "app")]
    assert (one.phase, one.apps[0].ended and one.apps[0].ended.exit_code) == ("Failed", code)


def test_a_stop_before_anything_ran_leaves_a_failed_pod() -> None:
    one = life({})
    one.stop(0.5, killed=False)
    assert (told(one, 10), one.phase, one.ended) == ([], "Failed", True)


def test_nothing_is_started_while_the_pod_is_stopping() -> None:
    one = life({"a": [ContainerBehaviour(2)]}, apps=["a", "b"])
    told(one, 2)
    one.stop(5.0, killed=False)
    assert told(one, 10) == [(3.0, "ended", "a"), (5.0, "ended", "b")]


def test_a_later_stop_does_not_prolong_an_earlier_one() -> None:
    one = life({})
    one.stop(2.0, killed=False)
    one.stop(9.0, killed=True)
    assert (one.stop_at, one.stop_code) == (2.0, 143)


def test_what_ended_unwatched_ended_at_its_own_time() -> None:
    one = life({"app": [ContainerBehaviour(5), FOR_EVER]})
    one.advance(1.0)
    one.advance(100.0)
    last = one.apps[0].last
    assert last
    assert (last.finished, one.apps[0].began) == (6.0, 100.0)


def test_after_a_reboot_everything_starts_again_init_containers_first() -> None:
    one = life({"init": [ContainerBehaviour(1)]}, init=["init"])
    told(one, 10)
    one.reboot(20.0, 90.0)
    assert one.phase == "Pending"
    assert told(one, 100) == [(90.0, "started", "init"), (91.0, "ended", "init"), (91.0, "started", "app")]
    assert one.apps[0].last
    assert one.apps[0].last.exit_code == 255


@pytest.mark.parametrize(
    "policy, starts, ended",
    [
        pytest.param("Never", 1, True, id="never: the pod ends"),
        pytest.param("OnFailure", 1, False, id="on failure: a success is not repeated"),
        pytest.param("Always", 3, False, id="always: once more"),
    ],
)
def test_what_a_reboot_repeats_is_up_to_the_policy(policy: str, starts: int, ended: bool) -> None:
    one = life({"done": [ContainerBehaviour(1), FOR_EVER]}, apps=["done", "other"], policy=policy)
    told(one, 2.0)
    one.reboot(2.5, 10.0)
    told(one, 10.0)
    assert (one.apps[0].starts, one.ended) == (starts, ended)


RUN = st.builds(
    ContainerBehaviour, st.none() | st.floats(min_value=0, max_value=700), st.integers(min_value=0, max_value=1)
)


@given(
    st.dictionaries(st.sampled_from(["i", "side", "a", "b"]), st.lists(RUN, min_size=1, max_size=3)),
    st.sampled_from(["Always", "OnFailure", "Never"]),
    st.none() | st.floats(min_value=0, max_value=3000),
)
def test_a_life_never_stands_still_and_ends_with_nothing_running(runs: Runs, policy: str, stop: float | None) -> None:
    one = life(runs, init=["i", "side"], apps=["a", "b"], policy=policy)
    if stop is not None:
        one.stop(stop, killed=False)
    changes = told(one, 5000.0)
    due = one.due()
    assert due is None or due > 5000.0
    assert not one.ended or not any(each.running for each in one.containers)
    assert len(changes) < 500
