"""From the row model's shortfall to a reason with names, and from many reasons to one."""

import re
from typing import Any

import pytest
from hypothesis import given, settings

from numalign.api.attributes.intent import Intent
from numalign.api.objects.pod import Pod
from numalign.kubelet.demand import Role
from numalign.placement.columns import requests
from numalign.placement.columns.columns import Columns
from numalign.placement.columns.intent import Unkept
from numalign.placement.columns.nodefacts import Assumption
from numalign.placement.columns.noderules import NodeRules
from numalign.placement.columns.nodetotals import PodRequests
from numalign.placement.columns.resources import CPU, Resources
from numalign.placement.columns.shapes import Shapes
from numalign.placement.decisions import Code
from numalign.placement.explain import answers, reasons, wording
from numalign.placement.explain.answers import RefusedPod
from numalign.placement.explain.reasons import Lack, NodeCause, Reason, ZoneShare
from numalign.placement.rowmodel import evaluate
from numalign.placement.rowmodel.causes import Cause, Shortfall, Want
from numalign.placement.rowmodel.state import RowState
from tests.strategies import placement as strategies
from tests.strategies.placement import Lived
from tests.unit.kubelet import made
from tests.unit.kubelet.made import NIC

SINGLE = "single-numa-node"
NIC_COLUMN = 2
ODD = re.compile(r"None|  | ,|[{}]|needs (in|on|,)|\b0 (zones|CPUs)|^ ")
"""What a sentence looks like into which something was put that is not there."""


def rules(policy: Any = SINGLE, scope: Any = "container", **more: Any) -> NodeRules:
    """Zones 0 and 4."""
    return NodeRules(zones=(0, 4), policy=policy, scope=scope, static_cpus=True, sockets=(1, 2), **more)


def pod(cpu: int = 4, nic: int = 0, **more: Any) -> Pod:
    devices: dict[str, Any] = {"nic": nic} if nic else {}
    return made.pod("p", made.container("app", cpu=cpu, **devices), **more)


def refused(
    pod: Pod, on: NodeRules, cpus: tuple[int, int] = (8, 8), nics: tuple[int, int] = (2, 2), **more: Any
) -> Reason:
    """On two zones of 8 CPUs and 2 NICs each, of which so many are free."""
    question = asked(pod, on)
    row = RowState(rules=on, size={CPU: (8, 8), NIC_COLUMN: (2, 2)}, base={CPU: cpus, NIC_COLUMN: nics})
    verdict = evaluate.evaluate(row, question.program)
    assert verdict.shortfall is not None
    return answers.of_shortfall(question, Code.DOES_NOT_FIT, verdict.shortfall, **more)


def test_a_reason_names_cause_policy_scope_and_container() -> None:
    found = refused(pod(6), rules(), cpus=(5, 3))
    assert (found.cause, found.policy, found.scope) == (Cause.NO_COMMON_ZONES, SINGLE, "container")
    assert (found.container, found.place, found.role) == ("app", 0, Role.APP)


def test_every_zone_says_what_it_has_and_how_much_it_is_short_of() -> None:
    found = refused(pod(6), rules(), cpus=(5, 3))
    assert found.lacks == (
        Lack(
            resource="cpu",
            need=6000,
            zones=1,
            most=5000,
            by_zone=(ZoneShare(0, 5000, 1000), ZoneShare(4, 3000, 3000)),
        ),
    )


def test_the_zones_that_came_closest_go_by_their_real_ids() -> None:
    assert refused(pod(6, nic=1), rules(), cpus=(5, 3), nics=(0, 2)).closest == (4,)


def test_the_pod_as_a_whole_has_no_container() -> None:
    found = refused(pod(6), rules(scope="pod"), cpus=(5, 3))
    assert (found.container, found.place, found.role) == ("", -1, None)


def test_an_init_container_is_called_one() -> None:
    found = refused(pod(1, init=[made.container("first", cpu=6)]), rules(), cpus=(5, 3))
    assert (found.container, found.role) == ("first", Role.INIT)


def test_what_no_zone_can_ever_hold_is_structural() -> None:
    found = refused(pod(9), rules())
    assert (found.structural, found.lacks[0].too_large, found.lacks[0].zones) == (True, True, 1)
    assert not refused(pod(6), rules(), cpus=(5, 3)).structural


def test_resources_that_take_different_numbers_of_zones_are_structural() -> None:
    found = refused(pod(9, nic=1), rules("restricted"))
    assert (found.cause, found.structural) == (Cause.DIFFERENT_ZONE_COUNTS, True)
    assert {lack.resource: lack.zones for lack in found.named_lacks} == {"cpu": 2, NIC: 1}


def test_what_is_too_large_for_ever_is_named_before_what_is_only_taken() -> None:
    found = refused(pod(9, nic=1), rules(), nics=(0, 0))
    assert [lack.resource for lack in found.named_lacks] == ["cpu"]


def test_of_what_is_short_the_scarcest_is_named() -> None:
    found = refused(pod(8, nic=2), rules(), cpus=(7, 7), nics=(1, 0))
    assert [(lack.resource, lack.most) for lack in found.named_lacks] == [(NIC, 1)]


def test_resources_that_are_there_but_not_together_are_all_named() -> None:
    found = refused(pod(6, nic=1), rules(), cpus=(8, 0), nics=(0, 2))
    assert (found.worst, {lack.resource for lack in found.named_lacks}) == (None, {"cpu", NIC})


def test_a_container_bound_to_the_zone_of_its_init_container_says_so() -> None:
    found = refused(pod(8, init=[made.container("i", cpu=4)]), rules(), cpus=(6, 8))
    assert (found.container, found.after_init) == ("app", True)


def test_an_init_container_without_cpus_of_its_own_binds_no_container() -> None:
    found = refused(pod(8, init=[made.container("i", cpu="500m")]), rules(), cpus=(6, 7))
    assert not found.after_init


def test_under_restricted_the_best_zones_count_together() -> None:
    found = refused(pod(12), rules("restricted"), cpus=(6, 5))
    assert [(lack.zones, lack.most) for lack in found.lacks] == [(2, 11_000)]


def test_without_zones_the_whole_node_counts() -> None:
    found = refused(pod(12), rules("none"), cpus=(6, 5))
    assert (found.cause, found.lacks[0].zones, found.lacks[0].most) == (Cause.TOO_FEW_CPUS, 0, 11_000)


def test_a_core_is_not_divided() -> None:
    found = refused(pod(3), rules(cpu_options=frozenset({"full-pcpus-only"}), threads_per_core=2))
    assert (found.cause, found.structural, found.threads_per_core) == (Cause.PARTIAL_CORES, True, 2)


def asked(pod: Pod, on: NodeRules) -> RefusedPod:
    resources = Resources()
    resources.column(NIC)
    return RefusedPod(pod, requests.program(Shapes().intern(pod), on, resources), on, resources)


def test_a_sum_that_would_do_is_not_claimed_to_be_short() -> None:
    """Devices of two zones count in both."""
    found = Shortfall(cause=Cause.TOO_FEW_DEVICES, step=0, wants=(Want(NIC_COLUMN, 3, 0, (2, 2)),))
    reason = answers.of_shortfall(asked(pod(nic=3), rules("none")), Code.DOES_NOT_FIT, found)
    assert reason.lacks[0].most is None


def test_pods_on_their_way_are_named_only_where_they_matter() -> None:
    named = [
        answers.of_shortfall(
            asked(pod(), rules()), Code.NOT_CERTAIN, Shortfall(cause=cause), waiting_for=["d/a"]
        ).waiting_for
        for cause in (Cause.UNSETTLED_PODS, Cause.CPU_IDS)
    ]
    assert named == [("d/a",), ()]


def test_assumptions_are_listed_in_order() -> None:
    both = {Assumption.MINOR_ASSUMED, Assumption.CORES_UNKNOWN}
    assert refused(pod(9), rules(), assumptions=both).assumptions == tuple(sorted(both))


# Nodes as a whole


def node(most_pods: int = 10, pods: int = 0, **offered: int) -> Columns:
    columns = Columns()
    columns.set_totals(columns.row("n"), offered, most_pods)
    columns.charge_totals(0, [(CPU, 3000)], pods)
    return columns


def test_node_totals_show_what_is_left_of_what_is_short() -> None:
    found = answers.of_totals(node(cpu=8000, memory=10), 0, PodRequests((0, 1), (6000, 5)))
    assert (found.code, found.cause, found.structural) == (Code.TOTALS, NodeCause.TOTALS, False)
    assert found.lacks == (Lack(resource="cpu", need=6000, most=5000),)


def test_a_pod_larger_than_the_node_is_structural() -> None:
    found = answers.of_totals(node(cpu=8000), 0, PodRequests((0,), (9000,)))
    assert (found.structural, found.lacks[0].too_large) == (True, True)


def test_a_node_full_of_pods_differs_from_one_that_takes_none() -> None:
    asked = PodRequests((0,), (1000,))
    full, none = node(pods=10, cpu=8000), node(most_pods=0)
    causes = [answers.of_totals(columns, 0, asked).cause for columns in (full, none)]
    assert causes == [NodeCause.POD_COUNT, NodeCause.NO_NODE]


def test_a_wish_that_is_not_kept_names_what_the_node_has() -> None:
    found = answers.of_wish(Intent(scope="pod"), Unkept.SCOPE, rules("restricted"))
    assert (found.code, found.policy, found.scope, found.wish) == (
        Code.INTENT,
        "restricted",
        "container",
        Intent(scope="pod"),
    )


# Many as one


def test_of_many_nodes_the_best_number_counts() -> None:
    found = [refused(pod(6), rules(), cpus=free) for free in [(5, 3), (1, 4), (0, 0)]]
    assert reasons.merged(found).lacks == (Lack(resource="cpu", need=6000, zones=1, most=5000),)
    assert reasons.merged(found).closest == ()


def test_one_reason_stays_as_it_is() -> None:
    found = refused(pod(6), rules(), cpus=(5, 3))
    assert reasons.merged([found]) is found


def test_a_policy_that_differs_is_left_out() -> None:
    found = [refused(pod(6), rules(policy), cpus=(5, 3)) for policy in (SINGLE, "restricted")]
    assert found[0].kind == found[1].kind
    assert (reasons.merged(found).policy, reasons.merged(found).scope) == (None, "container")


DIFFERENT = {
    "another cause": (refused(pod(6), rules(), cpus=(5, 3)), refused(pod(9, nic=1), rules("restricted"))),
    "another resource": (
        refused(pod(6, nic=1), rules(), cpus=(5, 3)),
        refused(pod(6, nic=1), rules(), nics=(0, 0)),
    ),
    "another size": (refused(pod(6), rules(), cpus=(5, 3)), refused(pod(7), rules(), cpus=(5, 3))),
    "once empty it would fit": (refused(pod(9), rules()), refused(pod(6), rules(), cpus=(5, 3))),
    "another container": (
        refused(pod(6), rules(), cpus=(5, 3)),
        refused(pod(6), rules(scope="pod"), cpus=(5, 3)),
    ),
}


@pytest.mark.parametrize("one, other", DIFFERENT.values(), ids=DIFFERENT)
def test_reasons_of_different_kinds_stay_apart(one: Reason, other: Reason) -> None:
    assert one.kind != other.kind


@given(strategies.lived(max_zones=4))
@settings(max_examples=40)
def test_whatever_the_row_model_says_can_be_said(life: Lived) -> None:
    view, row = life.view, life.view.row(life.state)
    for pod in life.coming:
        question = RefusedPod(pod, view.program(pod), view.rules, view.resources)
        verdict = evaluate.evaluate(row, question.program)
        if verdict.shortfall is not None:
            reason = answers.of_shortfall(question, Code.DOES_NOT_FIT, verdict.shortfall)
            assert not ODD.search(wording.sentence(reason))
