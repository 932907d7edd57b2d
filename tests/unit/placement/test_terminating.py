"""Terminating pods may end before another pod comes to their node: what is decided holds in either case."""

from collections.abc import Collection
from itertools import chain, combinations

from hypothesis import given
from hypothesis import strategies as st

from numalign.api.objects.pod import Pod
from numalign.placement import exact
from numalign.placement.decisions import Code, Wake, WakeCause
from numalign.placement.engine import Engine
from numalign.placement.explain import answers
from numalign.placement.explain.wording import sentence
from numalign.placement.facts import NodeSeen, PodSeen, ReportSeen, Tick
from numalign.placement.ledger.podrecord import LONGEST_WAIT
from tests.unit.kubelet import made
from tests.unit.placement.test_engine import bound, decided, deleted, engine, node, pod, report

FOUND_AT = 2.0


def running(known: Engine, name: str, cpu: int) -> Pod:
    """A pod that runs on the node where the engine puts it."""
    each = pod(name, cpu=cpu)
    home = decided(known, each).node
    assert home is not None
    seen = bound(each, home, "Running")
    known.apply(PodSeen(seen, 1.0))
    return seen


def with_init_container(name: str, first: int, then: int) -> Pod:
    """The container reuses the CPUs of the init container, so it has to go to the same zone."""
    return made.pod(name, made.container("c", cpu=then), init=(made.container("i", cpu=first),))


def contested(*nodes: str) -> tuple[Engine, Pod]:
    """Zone 0 is full; when the pod ends that is returned, it has two free CPUs. Zone 1 is empty."""
    known = engine(*nodes)
    leaver = running(known, "leaver", cpu=2)
    running(known, "stays", cpu=6)
    return known, leaver


def engine_of_zones(count: int) -> Engine:
    known = Engine()
    known.apply(NodeSeen(node(cpus=8 * count)))
    known.apply(ReportSeen(report(cpus=(8,) * count), 0.0))
    return known


def test_a_pod_that_is_admitted_only_while_a_terminating_pod_is_there_waits() -> None:
    known, leaver = contested("n")
    known.apply(PodSeen(deleted(leaver), FOUND_AT))
    assert decided(known, with_init_container("p", 1, 5)).refused == {Code.NOT_CERTAIN: 1}


def test_it_names_the_terminating_pods() -> None:
    known, leaver = contested("n")
    known.apply(PodSeen(deleted(leaver), FOUND_AT))
    waiting = with_init_container("p", 1, 5)
    decided(known, waiting)
    reason = answers.of(known, waiting).reason(0)
    assert reason is not None
    assert sentence(reason) == "the pod fits or not depending on when terminating pods end: default/leaver"


def test_it_goes_to_another_node_meanwhile() -> None:
    known, leaver = contested("n")
    known.apply(NodeSeen(node("m")))
    known.apply(ReportSeen(report("m"), 0.0))
    known.apply(PodSeen(deleted(leaver), FOUND_AT))
    assert decided(known, with_init_container("p", 1, 5)).node == "m"


def test_no_pod_waits_where_none_terminates() -> None:
    known, _ = contested("n")
    assert decided(known, with_init_container("p", 1, 5)).node == "n"


def test_a_pod_that_fits_in_either_case_does_not_wait() -> None:
    known, leaver = contested("n")
    known.apply(PodSeen(deleted(leaver), FOUND_AT))
    assert decided(known, with_init_container("p", 1, 2)).node == "n"
    assert decided(known, pod("q", cpu=5)).node == "n"


def test_the_end_of_the_terminating_pod_ends_the_wait() -> None:
    known, leaver = contested("n")
    known.apply(PodSeen(deleted(leaver), FOUND_AT))
    waiting = with_init_container("p", 3, 5)
    assert decided(known, waiting).node == "n"  # its init container does not fit into zone 0 in either case
    smaller = with_init_container("q", 1, 3)
    assert decided(known, smaller).node is None
    assert known.apply(PodSeen(bound(deleted(leaver), "n", "Succeeded"), 3.0)) == [Wake("n", WakeCause.FREED)]


def test_no_pod_waits_for_long() -> None:
    known, leaver = contested("n")
    known.apply(PodSeen(deleted(leaver), FOUND_AT))
    waiting = with_init_container("p", 1, 5)
    assert decided(known, waiting).node is None
    known.apply(PodSeen(deleted(leaver), FOUND_AT + 20))  # a later event does not prolong it
    assert known.apply(Tick(FOUND_AT + LONGEST_WAIT - 1)) == []
    assert decided(known, waiting).node is None
    assert known.apply(Tick(FOUND_AT + LONGEST_WAIT)) == [Wake("n", WakeCause.FREED)]
    assert decided(known, waiting).node == "n"


def test_a_pod_that_terminates_when_it_is_first_seen_counts() -> None:
    known = engine("n")
    running(known, "stays", cpu=6)
    known.apply(PodSeen(deleted(bound(pod("leaver", cpu=2), "n", "Running")), FOUND_AT))
    assert decided(known, with_init_container("p", 1, 5)).refused == {Code.NOT_CERTAIN: 1}


def test_every_order_of_ends_is_predicted() -> None:
    known = engine_of_zones(4)
    leavers = [running(known, name, cpu=8) for name in "ab"]
    for each in leavers:
        known.apply(PodSeen(deleted(each), FOUND_AT))
    assert [each.zones for each in decided(known, pod("p", cpu=4)).placement] == [((0,), (1,), (2,))]


Zones = list[set[tuple[int, ...]]]


def decided_after(held: list[int], deletions: Collection[str], ended: Collection[str], newcomer: Pod) -> Zones | None:
    """The zones of a pod on a node where others run, terminate or have ended; None: it is not placed there."""
    known = engine_of_zones(3)
    pods = [running(known, f"h{place}", cpu) for place, cpu in enumerate(held)]
    for each in pods:
        if each.metadata.name in deletions:
            known.apply(PodSeen(deleted(each), FOUND_AT))
        if each.metadata.name in ended:
            known.apply(PodSeen(bound(each, "n", "Succeeded"), FOUND_AT))
    found = decided(known, newcomer)
    return [set(each.zones) for each in found.placement] if found.node is not None else None


@given(
    held=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    leaving=st.sets(st.sampled_from(["h0", "h1", "h2", "h3"]), max_size=exact.EVERY_ORDER),
    containers=st.tuples(st.integers(1, 8), st.integers(1, 8)),
)
def test_a_decision_holds_whichever_of_the_terminating_pods_have_ended(
    held: list[int], leaving: set[str], containers: tuple[int, int]
) -> None:
    newcomer = with_init_container("p", *containers)
    predicted = decided_after(held, leaving, (), newcomer)
    if predicted is None:
        return
    for ended in chain.from_iterable(combinations(sorted(leaving), count) for count in range(len(leaving) + 1)):
        found = decided_after(held, (), ended, newcomer)
        assert found is not None
        assert all(one <= either for one, either in zip(found, predicted, strict=True))
