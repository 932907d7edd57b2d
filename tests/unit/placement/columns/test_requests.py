"""What the managers of a kind of node are asked for a pod."""

from typing import Any

from numalign.api.objects.pod import Pod
from numalign.kubelet.demand import Reading, Role
from numalign.placement.columns import requests
from numalign.placement.columns.noderules import NodeRules
from numalign.placement.columns.requests import Ask, Program
from numalign.placement.columns.resources import CPU, MEMORY, Resources
from numalign.placement.columns.shapes import Shapes
from tests.unit.kubelet import made

GIB = 1 << 30
STATIC: dict[str, Any] = {"zones": (0, 1), "static_cpus": True, "static_memory": True}


def asked(pod: Pod, **rules: Any) -> tuple[Program, Resources]:
    resources = Resources()
    return requests.program(Shapes().intern(pod), NodeRules(**STATIC | rules), resources), resources


def test_each_container_asks_for_itself() -> None:
    pod = made.pod("p", made.container("a", cpu=2), made.container("b", cpu=1, nic=3))
    program, resources = asked(pod, policy="restricted")
    nic = resources.column(made.NIC)
    first, second = program.steps
    assert first.ask == Ask(cpus=2, memory=((MEMORY, GIB),))
    assert second.ask == Ask(cpus=1, memory=((MEMORY, GIB),), devices=((nic, 3),))
    assert program.whole is None


def test_a_manager_that_does_nothing_is_not_asked() -> None:
    program, _ = asked(made.pod("p", made.container("a", cpu=2, nic=1)), static_cpus=False, static_memory=False)
    (only,) = program.steps
    assert (only.ask.cpus, only.ask.memory, len(only.ask.devices)) == (0, (), 1)


def test_under_pod_scope_the_pod_is_aligned_as_a_whole() -> None:
    pod = made.pod("p", made.container("a", cpu=2), made.container("b", cpu=1))
    program, _ = asked(pod, policy="single-numa-node", scope="pod")
    assert program.whole == Ask(cpus=3, memory=((MEMORY, 2 * GIB),))


def test_without_a_policy_scope_means_nothing() -> None:
    program, _ = asked(made.pod("p", made.container("a")), policy="none", scope="pod")
    assert program.whole is None


def test_memory_in_fractions_of_a_byte_is_kept_apart_from_none() -> None:
    program, _ = asked(made.pod("p", made.container("a", memory="100m")))
    assert program.steps[0].ask.memory is None


def test_roles_follow_the_order_of_admission() -> None:
    pod = made.pod("p", made.container("app"), init=[made.container("first"), made.container("beside", sidecar=True)])
    program, _ = asked(pod)
    assert [step.role for step in program.steps] == [Role.INIT, Role.SIDECAR, Role.APP]


def test_pod_level_resources_are_one_budget_where_the_kubelet_serves_them_so() -> None:
    pod = made.pod("p", made.container("a", cpu=None, memory=None), level={"cpu": "4", "memory": "2Gi"})
    managed = Reading(pod_level_managers=True)
    program, _ = asked(pod, policy="restricted", scope="pod", reading=managed)
    assert program.budget == program.whole == Ask(cpus=4, memory=((MEMORY, 2 * GIB),))


def test_cpus_and_memory_are_the_first_columns_and_names_keep_theirs() -> None:
    resources = Resources()
    assert (resources.column("cpu"), resources.column("memory")) == (CPU, MEMORY)
    assert resources.column(made.NIC) == resources.column(made.NIC) == 2
    assert (resources.known(made.NIC), resources.known("example.com/other"), len(resources)) == (2, None, 3)
