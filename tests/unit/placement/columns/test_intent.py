"""What a pod's annotations mean on which node, and where containers end up then (koordinator spec 20.5)."""

from typing import Any

import pytest

from numalign.api.attributes.intent import Intent
from numalign.api.objects.pod import Pod
from numalign.kubelet import admission
from numalign.kubelet.topologymanager import mask as masks
from numalign.placement.columns import intent, requests
from numalign.placement.columns.intent import KEPT, PENALTY, Judgement, Unkept
from numalign.placement.columns.noderules import NodeRules
from numalign.placement.columns.requests import Program
from numalign.placement.columns.resources import CPU, Resources
from numalign.placement.columns.shapes import Shapes
from numalign.placement.rowmodel import evaluate
from numalign.placement.rowmodel.state import RowState
from tests.unit.kubelet import made

SINGLE = "single-numa-node"
POLICIES = ["none", "best-effort", "restricted", "single-numa-node"]
REQUIRE, PREFER, NONE = Intent(strictness="require"), Intent(strictness="prefer"), Intent(strictness="none")


def rules(policy: Any = "single-numa-node", scope: Any = "container") -> NodeRules:
    return NodeRules(zones=(0, 1), policy=policy, scope=scope, static_cpus=True, sockets=(1, 2))


def program(pod: Pod, on: NodeRules) -> Program:
    return requests.program(Shapes().intern(pod), on, Resources())


def judged(
    wish: Intent, policy: str = "single-numa-node", scope: str = "container", pod: Pod | None = None
) -> Judgement:
    on = rules(policy, scope)
    return intent.judge(wish, on, program(pod or cpus(4, 4), on))


def cpus(*counts: int | str, **more: Any) -> Pod:
    return made.pod("p", *(made.container(f"c{place}", cpu=count) for place, count in enumerate(counts)), **more)


# Strictness


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("scope", ["container", "pod"])
def test_a_pod_that_asks_for_nothing_takes_any_node(policy: str, scope: str) -> None:
    assert judged(Intent(), policy, scope) == judged(NONE, policy, scope) == KEPT


def test_a_pod_that_asks_for_nothing_takes_nodes_without_a_report() -> None:
    assert intent.judge(Intent(), None, None) == intent.judge(NONE, None, None) == KEPT


@pytest.mark.parametrize("policy", ["none", "best-effort"])
def test_a_requirement_is_refused_where_the_kubelet_would_misalign(policy: str) -> None:
    assert judged(REQUIRE, policy) == Judgement(allowed=False, unkept=Unkept.POLICY)


@pytest.mark.parametrize("policy", ["restricted", "single-numa-node"])
@pytest.mark.parametrize("wish", [REQUIRE, PREFER], ids=["require", "prefer"])
def test_strict_policies_keep_every_strictness(wish: Intent, policy: str) -> None:
    assert judged(wish, policy) == KEPT


@pytest.mark.parametrize("policy", ["none", "best-effort"])
def test_a_preference_is_allowed_there_with_a_warning_and_a_lower_score(policy: str) -> None:
    found = judged(PREFER, policy)
    assert found == Judgement(allowed=True, penalty=PENALTY, unkept=Unkept.POLICY)
    assert found.reason == "policy-too-weak"


@pytest.mark.parametrize(
    "wish, allowed",
    [(REQUIRE, False), (PREFER, True), (Intent(scope="pod"), False), (Intent(scope="pod", strictness="none"), True)],
    ids=["require", "prefer", "a scope", "a scope that does not matter"],
)
def test_without_a_report_nothing_is_known_to_be_kept(wish: Intent, allowed: bool) -> None:
    found = intent.judge(wish, None, None)
    assert (found.allowed, found.unkept) == (allowed, None if wish.strictness == "none" else Unkept.NO_REPORT)


# Scope


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("scope", ["container", "pod"])
def test_the_nodes_own_scope_is_kept_under_any_policy(policy: str, scope: Any) -> None:
    assert judged(Intent(scope=scope), policy, scope) == KEPT


@pytest.mark.parametrize("policy", POLICIES)
def test_scope_container_is_kept_by_scope_pod_only_where_there_is_one_zone_for_all(policy: str) -> None:
    found = judged(Intent(scope="container"), policy, "pod")
    assert found == (KEPT if policy == "single-numa-node" else Judgement(allowed=False, unkept=Unkept.SCOPE))


ALONE = {
    "one container": (cpus(4), True),
    "one that is aligned beside one that is not": (cpus(4, "500m"), True),
    "none that is aligned": (cpus("500m", "500m"), True),
    "two aligned ones": (cpus(4, 4), False),
    "one and an init container": (cpus(4, init=[made.container("i", cpu=1)]), False),
    "one and a sidecar": (cpus(4, init=[made.container("s", cpu=1, sidecar=True)]), False),
}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("pod, kept", ALONE.values(), ids=ALONE)
def test_scope_pod_is_kept_by_scope_container_for_pods_aligned_once(pod: Pod, kept: bool, policy: str) -> None:
    assert judged(Intent(scope="pod"), policy, "container", pod).allowed is kept


def test_a_preferred_scope_that_is_not_kept_is_a_warning() -> None:
    found = judged(Intent(scope="pod", strictness="prefer"), "restricted")
    assert found == Judgement(allowed=True, penalty=PENALTY, unkept=Unkept.SCOPE)


def test_a_weak_policy_is_named_before_another_scope() -> None:
    assert judged(Intent(scope="pod", strictness="require"), "none").unkept is Unkept.POLICY


# Acceptance cases: two zones of 8 CPUs, the zones of each container or None for refused.

INIT_8, INIT_4 = made.container("i", cpu=8), made.container("i", cpu=4)
SIDECAR = made.container("s", cpu=2, sidecar=True)
BOTH = (0, 1)
Zones = list[tuple[int, ...]] | None

CASES: dict[str, tuple[Pod, str, str, Zones]] = {
    "CS-1, scope pod": (cpus(6, 6), SINGLE, "pod", None),
    "CS-1": (cpus(6, 6), SINGLE, "container", [(0,), (1,)]),
    "CS-2, scope pod": (cpus(4, 4), SINGLE, "pod", [(0,), (0,)]),
    "CS-2": (cpus(4, 4), SINGLE, "container", [(0,), (0,)]),
    "CS-4, scope pod": (cpus(5, 3, 8), SINGLE, "pod", None),
    "CS-4": (cpus(5, 3, 8), SINGLE, "container", [(0,), (0,), (1,)]),
    "CS-6, scope pod": (cpus(6, init=[INIT_8]), SINGLE, "pod", [(0,), (0,)]),
    "CS-6": (cpus(6, init=[INIT_8]), SINGLE, "container", [(0,), (0,)]),
    "CS-8, scope pod": (cpus(8, init=[SIDECAR]), SINGLE, "pod", None),
    "CS-8": (cpus(8, init=[SIDECAR]), SINGLE, "container", [(0,), (1,)]),
    "CS-10, scope pod": (cpus(10, 4), "restricted", "pod", [BOTH, BOTH]),
    "CS-10, packed": (cpus(10, 4), "restricted", "container", [BOTH, (1,)]),
    "CS-11": (cpus(4, 4), SINGLE, "pod", [(0,), (0,)]),
}


def by_row_model(pod: Pod, policy: str, scope: str, free: tuple[int, int] = (8, 8)) -> Zones:
    on = rules(policy, scope)
    row = RowState(rules=on, size={CPU: (8, 8)}, base={CPU: free})
    verdict = evaluate.evaluate(row, program(pod, on))
    return [on.real(own[0]) for own in verdict.possible] if verdict.fits else None


def by_kubelet(pod: Pod, policy: Any, scope: Any, taken: int = 0) -> Zones:
    """By the managers themselves; a third zone holds the CPU that the system keeps. `taken`: CPUs of the first zone."""
    kubelet = made.kubelet(made.machine(zones=3, cores=(8, 8, 1)), policy=policy, scope=scope, reserved_cpus="16")
    state = kubelet.initial()
    if taken:
        state, _ = admission.align(kubelet, state, made.pod("before", made.container("b", cpu=taken)))
    _, outcome = admission.align(kubelet, state, pod)
    found = [masks.members(each.affinity.mask or 0) for each in outcome.placement.values()]
    return found if outcome.admitted else None


@pytest.mark.parametrize("pod, policy, scope, zones", CASES.values(), ids=CASES)
def test_containers_get_these_zones(pod: Pod, policy: str, scope: str, zones: Zones) -> None:
    assert by_row_model(pod, policy, scope) == by_kubelet(pod, policy, scope) == zones


@pytest.mark.parametrize("scope, zones", [("pod", [(1,), (1,)]), ("container", None)])
def test_cs_7_an_app_container_must_include_the_zone_of_its_init_container(scope: str, zones: Zones) -> None:
    pod = cpus(8, init=[INIT_4])
    assert by_row_model(pod, SINGLE, scope, (6, 8)) == by_kubelet(pod, SINGLE, scope, taken=2) == zones


def test_cs_6_the_app_container_takes_its_cpus_from_the_init_container() -> None:
    on = rules()
    verdict = evaluate.evaluate(
        RowState(rules=on, size={CPU: (8, 8)}, base={CPU: (8, 8)}), program(CASES["CS-6"][0], on)
    )
    assert [(entry.zones, entry.amount) for entry in verdict.entries] == [(1, 8)]


def test_cs_11_container_scope_is_evaluated_as_the_stricter_pod_scope() -> None:
    assert judged(Intent(scope="container"), SINGLE, "pod", cpus(4, 4)) == KEPT


@pytest.mark.parametrize("policy", POLICIES)
def test_cs_12_pod_scope_is_refused_by_container_scope(policy: str) -> None:
    assert judged(Intent(scope="pod"), policy, "container", cpus(4, 4)).unkept is Unkept.SCOPE
