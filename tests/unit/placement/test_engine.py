"""Facts go in, decisions come out: placed pods are charged, ended pods are free, and no input makes it raise."""

from random import Random
from typing import Any

import pytest
from msgspec import structs

from numalign.api.decode import quantity
from numalign.api.errors import BadObject
from numalign.api.nrt import normalise, wire
from numalign.api.nrt.nodetopology import Amounts, NodeTopology, Zone
from numalign.api.nrt.topologymanager import TopologyManager
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.node import Node, NodeInfo, NodeSpec, NodeStatus
from numalign.api.objects.pod import Pod
from numalign.placement.columns.nodefacts import Assumption
from numalign.placement.decisions import Code, Wake, WakeCause
from numalign.placement.engine import Engine
from numalign.placement.facts import BindFailed, NodeGone, NodeSeen, PodGone, PodSeen, ReportGone, ReportSeen, Tick
from numalign.placement.settings import Settings
from tests.unit.kubelet import made
from tests.unit.placement import choices
from tests.unit.placement.choices import Choice

GIB = 1 << 30
NIC = "example.com/nic"


def node(name: str = "n", cpus: int = 16, pods: int = 110, **more: int) -> Node:
    offered = {"cpu": cpus, "memory": 64 * GIB, NIC: 8, "pods": pods} | more
    amounts = {resource: quantity.of(amount) for resource, amount in offered.items()}
    return Node(metadata=ObjectMeta(name=name), status=NodeStatus(capacity=amounts, allocatable=amounts))


def report(name: str = "n", cpus: tuple[int, ...] = (8, 8), policy: Any = "single-numa-node") -> NodeTopology:
    zones = tuple(
        Zone(
            id=place,
            resources={"cpu": Amounts(1000 * free, 1000 * free, 1000 * free), "memory": Amounts(*[32 * GIB] * 3)},
        )
        for place, free in enumerate(cpus)
    )
    return NodeTopology(node=name, manager=TopologyManager(policy=policy), zones=zones)


def engine(*nodes: str, policy: Any = "single-numa-node", **settings: Any) -> Engine:
    made = Engine(Settings(**settings))
    for name in nodes:
        made.apply(NodeSeen(node(name)))
        made.apply(ReportSeen(report(name, policy=policy), 0.0))
    return made


def pod(name: str, cpu: int = 6, **more: Any) -> Pod:
    return made.pod(name, made.container("c", cpu=cpu), **more)


def decided(engine: Engine, pod: Pod, seed: int = 1) -> Choice:
    return choices.chosen(engine, pod, Random(seed))


def bound(pod: Pod, node: str, phase: str = "Pending") -> Pod:
    return structs.replace(
        pod, spec=structs.replace(pod.spec, node_name=node), status=structs.replace(pod.status, phase=phase)
    )


FLAVOURS = ["exact", "reference"]


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_a_pod_goes_where_it_fits(flavour: str) -> None:
    found = decided(engine("n", flavour=flavour), pod("p"))
    assert (found.uid, found.node) == ("p", "n")


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_a_pod_that_fits_no_zone_goes_nowhere(flavour: str) -> None:
    found = decided(engine("n", flavour=flavour), pod("p", cpu=9))
    assert (found.node, found.refused) == (None, {Code.DOES_NOT_FIT: 1})


def test_a_pod_too_large_for_the_node_as_a_whole_is_refused_for_that() -> None:
    found = decided(engine("n"), pod("p", cpu=17))
    assert found.refused == {Code.TOTALS: 1}


def test_pods_without_uids_are_distinguished_by_their_names() -> None:
    known = engine("n")
    local = [structs.replace(pod("p", cpu=8), metadata=ObjectMeta(name=name, namespace="d")) for name in "abc"]
    found = [decided(known, each) for each in local]
    assert [each.node for each in found] == ["n", "n", None]
    known.apply(BindFailed("d/a"))
    assert decided(known, local[2]).node == "n"


def test_the_zones_of_a_placement_are_real_ids() -> None:
    known = Engine()
    known.apply(NodeSeen(node()))
    zones = tuple(structs.replace(zone, id=zone.id * 3 + 2) for zone in report().zones)
    known.apply(ReportSeen(structs.replace(report(), zones=zones), 0.0))
    assert decided(known, pod("p")).placement[0].zones == ((2,),)


def test_what_is_placed_is_charged_at_once() -> None:
    known = engine("n")
    places = [decided(known, pod(name)).placement for name in "ab"]
    assert [place[0].zones for place in places] == [((0,),), ((1,),)]
    assert decided(known, pod("c")).node is None


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_a_bind_that_failed_frees_what_was_charged(flavour: str) -> None:
    known = engine("n", flavour=flavour)
    placed = [name for name in "abc" if decided(known, pod(name, cpu=8)).node]
    assert known.apply(BindFailed(placed[-1])) == [Wake("n", WakeCause.FREED)]
    assert decided(known, pod("d", cpu=8)).node == "n"


def test_a_pod_that_finished_frees_its_zones_at_once() -> None:
    known = engine("n")
    both = made.pod("a", made.container("one", cpu=8), made.container("two", cpu=8))
    known.apply(PodSeen(bound(both, "n"), 0.0))
    assert decided(known, pod("c", cpu=8)).node is None
    known.apply(PodSeen(bound(both, "n", "Succeeded"), 0.0))
    assert decided(known, pod("c", cpu=8)).node == "n"


def test_a_deleted_pod_is_charged_until_its_grace_period_is_over_and_ten_seconds_more() -> None:
    known = engine("n")
    running = bound(pod("a", cpu=16), "n", "Running")
    known.apply(PodSeen(running, 0.0))
    known.apply(PodGone(running, 0.0))
    assert decided(known, pod("b", cpu=8)).refused == {Code.TOTALS: 1}
    known.apply(Tick(39.0))
    assert decided(known, pod("b", cpu=8)).node is None
    known.apply(Tick(41.0))
    assert decided(known, pod("b", cpu=8)).node == "n"


def test_reports_are_in_the_columns_after_a_tick_even_if_no_pod_comes() -> None:
    known = engine("n")
    known.apply(Tick(1.0))
    assert known.columns.free[known.columns.rows["n"], :, 0].tolist() == [8, 8]


def test_a_node_without_a_report_takes_pods_with_score_zero() -> None:
    known = Engine()
    known.apply(NodeSeen(node()))
    found = decided(known, pod("p", cpu=12))
    assert (found.node, found.score, found.placement) == ("n", 0, ())


def test_a_node_with_a_report_is_better_than_one_without() -> None:
    known = engine("reported")
    known.apply(NodeSeen(node("bare")))
    found = decided(known, pod("p"))
    assert (found.node, found.score >= 1) == ("reported", True)


def test_a_report_without_a_node_is_no_place_for_pods() -> None:
    known = Engine()
    known.apply(ReportSeen(report(), 0.0))
    assert decided(known, pod("p")).refused == {Code.TOTALS: 1}


def test_a_node_that_is_gone_takes_no_pods_until_it_is_back() -> None:
    known = engine("n")
    known.apply(NodeGone("n"))
    assert decided(known, pod("p")).node is None
    known.apply(NodeSeen(node()))
    assert decided(known, pod("p")).node == "n"


def test_a_node_that_takes_the_row_of_another_is_described_anew() -> None:
    known = engine("old")
    decided(known, pod("a", cpu=1))
    known.apply(NodeGone("old"))
    known.apply(ReportGone("old", 1.0))
    known.apply(NodeSeen(node("new")))
    known.apply(ReportSeen(report("new"), 1.0))
    found = decided(known, pod("p"))
    assert (found.node, found.placement[0].zones) == ("new", ((0,),))


def test_pods_stay_charged_while_their_node_is_away() -> None:
    known = engine("n")
    known.apply(PodSeen(bound(pod("a", cpu=12), "n"), 0.0))
    known.apply(NodeGone("n"))
    known.apply(ReportGone("n", 1.0))
    known.apply(NodeSeen(node()))
    assert decided(known, pod("p", cpu=6)).refused == {Code.TOTALS: 1}


def test_a_deleted_report_stays_in_force_and_is_marked() -> None:
    known = engine("n")
    decided(known, pod("first", cpu=6))
    assert known.apply(ReportGone("n", 1.0)) == []
    known.apply(Tick(1e9))
    assert decided(known, pod("large", cpu=9)).refused == {Code.DOES_NOT_FIT: 1}
    assert decided(known, pod("second", cpu=6)).placement[0].zones == ((1,),)
    assert decided(known, pod("third", cpu=4)).refused == {Code.DOES_NOT_FIT: 1}
    assert marks(known) == {True}
    known.apply(NodeSeen(structs.replace(node(), spec=NodeSpec(unschedulable=True))))
    assert (known.lacks_report("n"), marks(known)) == (False, {True})


def marks(known: Engine) -> set[bool]:
    """Whether the nodes' reports are marked as deleted."""
    known.flavour.refresh()
    found = known.flavour.either(lambda exact: [exact.mirror.facts(row) for row in known.rows.values()], lambda _: [])
    return {Assumption.REPORT_DELETED in facts.assumptions for facts in found if facts is not None}


def test_a_report_that_comes_back_counts_and_is_not_marked() -> None:
    known = engine("n")
    known.apply(ReportGone("n", 1.0))
    known.apply(ReportSeen(report(cpus=(16, 4)), 2.0))
    assert (decided(known, pod("large", cpu=12)).node, marks(known)) == ("n", {False})


def of_machine(uid: str = "u", boot: str = "b", cpus: int = 16, devices: int = 8) -> Node:
    found = node("n", cpus, 110, **{NIC: devices})
    status = structs.replace(found.status, node_info=NodeInfo(boot_id=boot))
    return structs.replace(found, metadata=structs.replace(found.metadata, uid=uid), status=status)


CONTRADICTIONS = {
    "another Node": of_machine(uid="v"),
    "booted again": of_machine(boot="c"),
    "other CPUs": of_machine(cpus=24),
}


@pytest.mark.parametrize("contradiction", CONTRADICTIONS.values(), ids=CONTRADICTIONS.keys())
def test_a_deleted_report_ends_when_the_node_is_another_machine(contradiction: Node) -> None:
    known = Engine()
    known.apply(NodeSeen(of_machine()))
    known.apply(ReportSeen(report(), 0.0))
    known.apply(ReportGone("n", 1.0))
    known.apply(NodeSeen(of_machine(devices=0)))
    assert not known.lacks_report("n"), "devices come and go"
    assert Wake("n", WakeCause.REPORT) in known.apply(NodeSeen(contradiction))
    assert known.lacks_report("n")


def test_a_deleted_report_ends_with_its_node() -> None:
    known = engine("n")
    known.apply(ReportGone("n", 1.0))
    known.apply(NodeGone("n"))
    known.apply(NodeSeen(node()))
    assert known.lacks_report("n")


@pytest.mark.parametrize("goes", [True, False], ids=["the Node is deleted", "the Node is another one in a list"])
def test_a_report_that_is_deleted_after_the_next_node_of_that_name_came_is_not_kept(goes: bool) -> None:
    known = Engine()
    known.apply(NodeSeen(of_machine()))
    known.apply(ReportSeen(report(), 0.0))
    if goes:
        known.apply(NodeGone("n"))
    known.apply(NodeSeen(of_machine(uid="v")))
    assert known.apply(ReportGone("n", 1.0)) == [Wake("n", WakeCause.REPORT)]
    assert known.lacks_report("n")
    known.apply(ReportSeen(report(), 2.0))
    known.apply(ReportGone("n", 3.0))
    assert not known.lacks_report("n"), "the report of the new Node is kept"


@pytest.mark.parametrize("goes", [True, False], ids=["the Node is deleted", "the Node is another one in a list"])
def test_a_report_of_our_agent_is_not_that_of_the_next_node_of_that_name(goes: bool) -> None:
    """The watch of reports may be behind that of Nodes; the agent of the next Node writes its own report."""
    known = Engine()
    ours = structs.replace(report(), facts=structs.replace(report().facts, placements=()))
    known.apply(NodeSeen(of_machine()))
    known.apply(ReportSeen(ours, 0.0))
    if goes:
        known.apply(NodeGone("n"))
    assert known.apply(NodeSeen(of_machine(uid="v"))) == [Wake("n", WakeCause.NODE), Wake("n", WakeCause.REPORT)]
    assert known.lacks_report("n")
    known.apply(ReportGone("n", 1.0))
    known.apply(ReportSeen(ours, 2.0))
    known.apply(NodeSeen(of_machine(uid="v", devices=0)))
    assert not known.lacks_report("n")


def test_a_deleted_report_ends_after_the_time_that_is_set() -> None:
    known = engine("n", keep_deleted_reports=60.0)
    known.apply(ReportGone("n", 10.0))
    assert known.apply(Tick(69.0)) == []
    assert not known.lacks_report("n")
    assert known.apply(Tick(70.0)) == [Wake("n", WakeCause.REPORT)]
    assert known.lacks_report("n")


def test_a_deleted_report_ends_at_once_where_none_are_kept_and_in_the_reference_flavour() -> None:
    for known in (engine("n", keep_deleted_reports=0.0), engine("n", flavour="reference")):
        assert known.apply(ReportGone("n", 1.0)) == [Wake("n", WakeCause.REPORT)]
        assert decided(known, pod("p", cpu=12)).score == 0


def test_a_plain_report_is_read_with_what_the_node_says_by_now() -> None:
    known = engine("n")
    older = structs.replace(node().status, node_info=NodeInfo(kubelet_version="v1.30.1"))
    known.apply(NodeSeen(structs.replace(node(), status=older)))
    decided(known, pod("p"))
    rules = known.columns.rules(known.columns.rows["n"])
    assert rules is not None
    assert rules.minor == (1, 30)


def test_the_number_of_pods_is_limited() -> None:
    known = Engine()
    known.apply(NodeSeen(node(pods=1)))
    known.apply(ReportSeen(report(), 0.0))
    assert [decided(known, pod(name, cpu=1)).node for name in "ab"] == ["n", None]


def test_a_pod_that_makes_no_sense_is_named_and_counted() -> None:
    known = engine("n")
    odd = pod("p")
    odd = structs.replace(odd, metadata=structs.replace(odd.metadata, annotations={"numalign.io/scope": "galaxy"}))
    with pytest.raises(BadObject, match="galaxy"):
        known.shape(odd)
    known.apply(PodSeen(bound(odd, "n"), 0.0))
    assert known.problems["pod-not-understood"] == 1


def test_a_flavour_and_a_cache_mode_have_to_go_together() -> None:
    with pytest.raises(BadObject, match="passthrough"):
        Engine(Settings(cache_mode="passthrough"))


def wishing(name: str, **words: str) -> Pod:
    plain = pod(name)
    annotations = {f"numalign.io/{key}": word for key, word in words.items()}
    return structs.replace(plain, metadata=structs.replace(plain.metadata, annotations=annotations))


def test_a_required_wish_is_refused_where_the_node_is_weaker() -> None:
    found = decided(engine("n", policy="best-effort"), wishing("p", strictness="require"))
    assert found.refused == {Code.INTENT: 1}


def test_a_preferred_wish_is_warned_of_where_the_node_is_weaker() -> None:
    found = decided(engine("n", policy="best-effort"), wishing("p", strictness="prefer"))
    assert (found.node, found.score, found.warning) == ("n", 1, "policy-too-weak")


def test_a_node_that_keeps_a_preferred_wish_is_better() -> None:
    known = engine("weak", policy="best-effort")
    known.apply(NodeSeen(node("strong")))
    known.apply(ReportSeen(report("strong"), 0.0))
    assert decided(known, wishing("p", strictness="prefer")).node == "strong"


def test_a_pod_that_is_decided_again_is_charged_once() -> None:
    known = engine("n")
    decided(known, pod("a", cpu=8))
    decided(known, pod("a", cpu=8))
    assert decided(known, pod("b", cpu=8)).node == "n"


def test_pods_that_hold_no_zones_leave_the_order_of_others_alone() -> None:
    known = engine("n")
    shared = [made.pod(name, made.container("c", cpu="500m", burstable=True)) for name in "xy"]
    for each in (shared[0], pod("a"), shared[1], pod("b")):
        assert decided(known, each).node == "n"


def test_what_came_free_may_attract_pods_that_have_not_arrived() -> None:
    known = engine("n")
    known.apply(PodSeen(bound(pod("a", cpu=8), "n", "Running"), 0.0))
    decided(known, pod("b", cpu=8))
    known.apply(PodSeen(bound(pod("a", cpu=8), "n", "Succeeded"), 0.0))
    assert decided(known, pod("c", cpu=8)).refused[Code.NOT_CERTAIN] == 1


ODD = {
    "no zones": (),
    "negative amounts": (Zone(id=0, resources={"cpu": Amounts(-5, -5, -5)}),),
    "absurd amounts": (Zone(id=0, resources={"cpu": Amounts(1 << 62, 1 << 62, 1 << 62)}),),
    "two hundred zones": tuple(Zone(id=place, resources={"cpu": Amounts(1000, 1000, 1000)}) for place in range(200)),
    "unknown resources": (Zone(id=0, resources={"": Amounts(1, 1, 1), "odd one/": Amounts(1, 1, 1)}),),
}


@pytest.mark.parametrize("zones", ODD.values(), ids=ODD)
@pytest.mark.parametrize("flavour", FLAVOURS)
def test_odd_reports_never_raise(zones: tuple[Zone, ...], flavour: str) -> None:
    known = engine("n", flavour=flavour)
    decided(known, pod("a"))
    known.apply(ReportSeen(structs.replace(report(), zones=zones), 1.0))
    decided(known, pod("b", cpu=1))
    known.apply(ReportSeen(report(), 2.0))
    assert decided(known, pod("c", cpu=1)).node == "n"


@pytest.mark.parametrize("weights", [{"cpu": 0, "memory": 0}, {"cpu": -1, "memory": 1}, {"cpu": -3}])
def test_the_reference_flavour_reads_weights_below_one_as_one(weights: dict[str, int]) -> None:
    scores = [decided(engine("n", flavour="reference", weights=each), pod("p", cpu=2)).score for each in (weights, {})]
    assert scores[0] == scores[1] > 0


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_what_was_left_out_or_put_right_in_a_report_is_counted_by_name(flavour: str) -> None:
    odd = {"name": "cpu", "capacity": "-8", "allocatable": "many", "available": "1.0005"}
    zones = [{"name": name, "type": "Node", "resources": [odd]} for name in ("node-0", "node-0", "numa1")]
    written = wire.decode({"metadata": {"name": "n"}, "zones": [*zones, {"name": "s", "type": "Socket"}]})
    known = engine("n", flavour=flavour)
    known.apply(ReportSeen(normalise.normalise(written), 1.0, written))
    assert known.problems == {
        "zone-duplicate": 1,
        "zone-name-unknown": 1,
        "quantity-negative": 1,
        "quantity-unreadable": 1,
        "quantity-rounded": 1,
        "allocatable-assumed": 1,
        "capacity-raised": 1,
    }


@pytest.mark.parametrize("trusting", [False, True], ids=["any-order", "bind-order"])
@pytest.mark.parametrize("lost", [NIC, "memory"])
def test_pods_on_their_way_outlive_a_report_that_lost_what_they_ask_for(lost: str, trusting: bool) -> None:
    offered = {"cpu": Amounts(8000, 8000, 8000), "memory": Amounts(*[32 * GIB] * 3), NIC: Amounts(4, 4, 4)}
    left = {name: amounts for name, amounts in offered.items() if name != lost}
    complete, less = (tuple(Zone(id=zone, resources=each) for zone in range(2)) for each in (offered, left))
    alike = [made.pod(name, made.container("c", cpu=2, memory=GIB, nic=1)) for name in "abcd"]
    known = Engine(Settings(trust_bind_order=trusting))
    known.apply(NodeSeen(node()))
    known.apply(ReportSeen(structs.replace(report(), zones=complete), 0.0))
    assert decided(known, alike[0]).node == "n"
    known.apply(ReportSeen(structs.replace(report(), zones=less), 1.0))
    known.apply(PodSeen(bound(alike[1], "n"), 2.0))
    decided(known, alike[2])
    known.apply(ReportSeen(structs.replace(report(), zones=complete), 3.0))
    assert decided(known, alike[3]).node == "n"


@pytest.mark.parametrize(
    "phase, in_turn", [("Pending", True), ("Running", False)], ids=["it may be admitted later", "it runs"]
)
def test_a_pod_that_may_take_the_zone_of_one_on_its_way_is_bound_in_turn(phase: str, in_turn: bool) -> None:
    known = engine("n")
    first = decided(known, pod("a", cpu=5)).decision
    known.apply(PodSeen(bound(pod("a", cpu=5), "n", phase), 1.0))
    second = decided(known, pod("b", cpu=4)).decision
    assert first is not None
    assert second is not None
    assert (first.in_turn, second.in_turn) == (False, in_turn)


def deleted(pod: Pod) -> Pod:
    stamped = structs.replace(pod.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
    return structs.replace(pod, metadata=stamped)


def test_a_prediction_has_the_zones_of_terminating_pods_which_may_have_ended_before_the_pod_comes() -> None:
    known = engine("n")
    leaver, stays = bound(pod("a", cpu=6), "n", "Running"), bound(pod("b", cpu=1), "n", "Running")
    for each in (leaver, stays):
        decided(known, structs.replace(each, spec=structs.replace(each.spec, node_name="")))
        known.apply(PodSeen(each, 1.0))
    assert [each.zones for each in decided(known, pod("c", cpu=3)).placement] == [((1,),)]
    known.apply(PodSeen(deleted(leaver), 2.0))
    assert [each.zones for each in decided(known, pod("d", cpu=3)).placement] == [((0,), (1,))]
    # It may end after all others have come, so that its zone is not free for them.
    assert decided(known, pod("e", cpu=5)).decision is None


def test_odd_facts_never_raise() -> None:
    known = Engine()
    for fact in (
        NodeGone("x"),
        ReportGone("x", 0.0),
        BindFailed("x"),
        PodGone(pod("x"), 0.0),
        PodSeen(pod("x"), 0.0),
        Tick(0),
    ):
        assert known.apply(fact) == []
