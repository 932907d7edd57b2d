"""Topology reports as they reach the API server: on time, late, wrong, or not at all."""

import itertools
from collections.abc import Callable

import pytest
from msgspec import structs

from numalign.api.nrt import normalise, publishers, wire
from numalign.api.nrt.nodetopology import NodeTopology
from numalign.kubelet.report import report
from numalign.simulator.apiserver.storage.resources import CUSTOMRESOURCEDEFINITIONS, NAMESPACES
from numalign.simulator.nodes.publisher import crd
from numalign.simulator.nodes.specs import NodeSpec, PublisherFaults, Publishing
from numalign.simulator.trees import Tree
from tests.unit.simulator.nodes import stage
from tests.unit.simulator.nodes.stage import NODE, Stage, played


def publishing(**how: object) -> NodeSpec:
    return structs.replace(NODE, publishing=structs.replace(Publishing(), **how))


def read(tree: Tree) -> NodeTopology:
    return normalise.normalise(wire.decode(tree))


def free(tree: Tree) -> list[int]:
    """CPUs that each zone has left."""
    return [zone.resources["cpu"].available // 1000 for zone in read(tree).zones]


def moments(spec: NodeSpec, seconds: float, *, pods: int = 0, seed: int = 1) -> list[float]:
    """When reports arrive on a node on which so many pods come at the tenth second."""

    async def story(on: Stage) -> list[float]:
        on.fleet.add(spec)
        await on.passes(10.0)
        on.create(*(stage.pod(f"p{number}", "2") for number in range(pods)))
        await on.passes(seconds - 10.0)
        return on.moments()

    return played(story, seed=seed)


def test_our_agent_publishes_what_the_model_holds() -> None:
    async def story(on: Stage) -> tuple[NodeTopology, NodeTopology]:
        node = on.fleet.add(NODE)
        on.create(stage.pod("a", "4"), stage.pod("b", "14"))
        await on.passes(5.0)
        return read(on.report()), report.of("n1", node.node_state.kubelet, node.node_state.state)

    published, expected = played(story)
    assert published == expected


def test_an_idle_agent_renews_its_heartbeat_before_it_looks_dead() -> None:
    async def story(on: Stage) -> tuple[list[float], list[str]]:
        on.fleet.add(publishing())
        await on.passes(10.0)
        first = on.report()["metadata"]["annotations"][publishers.HEARTBEAT]
        await on.passes(890.0)
        return on.moments(), [first, on.report()["metadata"]["annotations"][publishers.HEARTBEAT]]

    written, beats = played(story)
    assert max(after - before for before, after in itertools.pairwise(written)) <= publishers.HEARTBEAT_SECONDS
    assert beats[0] < beats[1]


@pytest.mark.parametrize(
    "spec, expected",
    [
        pytest.param(publishing(), [1.0, 11.0], id="agent: at once, and once for all that came together"),
        pytest.param(publishing(reactive=False), [1.0, 60.0], id="agent that only looks once a minute"),
        pytest.param(publishing(window=0.0), [0.0, 10.0], id="agent that waits for nothing"),
        pytest.param(publishing(publisher="rte"), [0.0, 11.0, 60.0, 120.0], id="rte: with the containers"),
        pytest.param(
            publishing(publisher="rte", period=10.0, reactive=False), [10.0 * n for n in range(13)], id="timer"
        ),
        pytest.param(publishing(publisher="nfd"), [10.0, 60.0, 120.0], id="nfd: nothing at first, then state files"),
        pytest.param(publishing(publisher="none"), [], id="nobody"),
    ],
)
def test_each_publisher_has_its_own_moments(spec: NodeSpec, expected: list[float]) -> None:
    arrived = moments(spec, 121.0, pods=1)
    assert sorted(set(arrived)) == pytest.approx(expected)


def test_rte_drops_events_that_come_too_fast() -> None:
    arrived = moments(publishing(publisher="rte", period=0.0), 60.0, pods=14)
    assert arrived == pytest.approx([0.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0])


def test_a_report_tells_the_node_as_it_was_a_lag_ago() -> None:
    async def story(on: Stage) -> list[list[int]]:
        on.fleet.add(publishing(lag=30.0, window=0.0))
        await on.passes(60.0)
        on.create(stage.pod("web", "4"))
        seen = []
        for _ in range(3):
            await on.passes(14.0)
            seen.append(free(on.report()))
        return seen

    assert played(story) == [[14, 16], [14, 16], [10, 16]]


def test_jitter_spreads_reports_but_keeps_their_order() -> None:
    async def story(on: Stage) -> list[float]:
        on.fleet.add(publishing(publisher="rte", period=5.0, reactive=False, jitter=20.0))
        await on.passes(300.0)
        return on.moments()

    arrived = played(story)
    gaps = {round(later - earlier, 3) for earlier, later in itertools.pairwise(arrived)}
    assert arrived == sorted(arrived)
    assert len(gaps) > 5


def test_equal_seeds_give_equal_moments_and_others_do_not() -> None:
    spec = publishing(publisher="rte", jitter=10.0)
    assert moments(spec, 300.0, seed=3) == moments(spec, 300.0, seed=3) != moments(spec, 300.0, seed=4)


def test_rte_owns_its_object_by_the_node_and_says_why_it_wrote() -> None:
    async def story(on: Stage) -> tuple[Tree, str, str]:
        on.fleet.add(publishing(publisher="rte"))
        await on.passes(30.0)
        first = on.report()["metadata"]["annotations"]["k8stopoawareschedwg/rte-update"]
        await on.passes(40.0)
        tree = on.report()
        [owner] = tree["metadata"]["ownerReferences"]
        assert owner["uid"] == on.node()["metadata"]["uid"]
        return tree, first, tree["metadata"]["annotations"]["k8stopoawareschedwg/rte-update"]

    tree, first, second = played(story)
    assert (first, second) == ("reactive", "periodic")
    assert [each["name"] for each in tree["attributes"]] == [
        "nodeTopologyPodsFingerprint",
        "nodeTopologyPodsFingerprintMethod",
        "topology.node.k8s.io/numaplacement-metadata",
        "topologyManagerScope",
        "topologyManagerPolicy",
    ]


def test_nfd_applies_in_the_name_of_its_namespace_with_the_old_token() -> None:
    async def story(on: Stage) -> Tree:
        on.api.create(NAMESPACES, {"metadata": {"name": "node-feature-discovery"}})
        on.fleet.add(publishing(publisher="nfd"))
        on.create(stage.pod("web"))
        await on.passes(5.0)
        return on.report()

    tree = played(story)
    assert tree["topologyPolicies"] == ["SingleNUMANodeContainerLevel"]
    assert [each["kind"] for each in tree["metadata"]["ownerReferences"]] == ["Namespace"]
    assert tree["metadata"]["managedFields"][0]["manager"] == "node-feature-discovery-topology-updater"
    assert "annotations" not in tree["metadata"]


def test_rte_patches_and_writes_in_full_every_now_and_then() -> None:
    async def story(on: Stage) -> list[str]:
        on.fleet.add(publishing(publisher="rte"))
        await on.passes(60.0 * 13)
        return [verb for _, verb, _ in on.api.reported]

    assert played(story) == ["create", *["merge"] * 10, "update", "merge"]


def test_rte_repairs_an_object_that_somebody_deleted() -> None:
    async def story(on: Stage) -> int:
        on.fleet.add(publishing(publisher="rte"))
        await on.passes(5.0)
        on.api.delete(crd.RESOURCE, "n1")
        await on.passes(60.0)
        return len(on.reports())

    assert played(story) == 1


def test_our_agent_notices_within_a_period_that_its_object_is_gone() -> None:
    async def story(on: Stage) -> int:
        on.fleet.add(NODE)
        await on.passes(5.0)
        on.api.delete(crd.RESOURCE, "n1")
        await on.passes(60.0)
        return len(on.reports())

    assert played(story) == 1


def test_nobody_publishes_while_the_kubelet_is_down() -> None:
    async def story(on: Stage) -> int:
        node = on.fleet.add(publishing(publisher="rte", period=10.0))
        await on.passes(15.0)
        node.stop()
        await on.passes(100.0)
        return len(on.moments())

    assert played(story) == 2


def test_after_a_reboot_the_publisher_begins_anew() -> None:
    async def story(on: Stage) -> list[float]:
        node = on.fleet.add(publishing(publisher="rte", period=0.0))
        await on.passes(15.0)
        node.reboot()
        await on.passes(100.0)
        return on.moments()

    assert played(story) == pytest.approx([0.0, 75.0])


def test_a_restarted_publisher_publishes_again_after_its_restart() -> None:
    async def story(on: Stage) -> list[float]:
        node = on.fleet.add(publishing(publisher="rte", period=0.0))
        await on.passes(20.0)
        node.restart_exporter()
        on.create(stage.pod("unheard"))
        await on.passes(60.0)
        return on.moments()

    assert played(story) == pytest.approx([0.0, 30.0])


def test_a_stopped_publisher_is_silent_until_it_is_started() -> None:
    async def story(on: Stage) -> list[float]:
        node = on.fleet.add(publishing(window=0.0))
        await on.passes(10.0)
        node.stop_exporter()
        on.create(stage.pod("web"))
        await on.passes(100.0)
        node.start_exporter()
        node.start_exporter()
        await on.passes(1.0)
        return on.moments()

    assert played(story) == pytest.approx([0.0, 110.0])


def test_a_machine_that_is_gone_has_no_publisher_to_come_back() -> None:
    async def story(on: Stage) -> list[float]:
        node = on.fleet.add(publishing(publisher="nfd", lag=5.0))
        on.create(stage.pod("web"))
        await on.passes(1.0)
        on.api.delete(CUSTOMRESOURCEDEFINITIONS, crd.crd()["metadata"]["name"])
        on.fleet.remove(node.name)
        await on.passes(10.0)
        on.api.create(CUSTOMRESOURCEDEFINITIONS, crd.crd())
        await on.passes(200.0)
        return on.moments()

    assert played(story) == []


def test_nfd_dies_of_a_refusal_and_comes_back() -> None:
    async def story(on: Stage) -> list[float]:
        on.api.delete(CUSTOMRESOURCEDEFINITIONS, crd.crd()["metadata"]["name"])
        on.fleet.add(publishing(publisher="nfd"))
        await on.passes(65.0)
        on.api.create(CUSTOMRESOURCEDEFINITIONS, crd.crd())
        await on.passes(70.0)
        return on.moments()

    # Refused at 60 s, started again ten seconds later, a period after that.
    assert played(story) == pytest.approx([130.0])


def counted(faults: PublisherFaults, check: Callable[[Tree], bool]) -> tuple[int, int]:
    """Reports of an hour at one a minute: how many arrive, and how many of those pass the check."""

    async def story(on: Stage) -> tuple[int, int]:
        on.fleet.add(publishing(publisher="rte", faults=faults))
        await on.passes(3600.0)
        return len(on.api.reported), sum(check(tree) for _, _, tree in on.api.reported)

    return played(story)


def test_dropped_reports_never_arrive() -> None:
    arrived, _ = counted(PublisherFaults(dropped=0.5), lambda tree: True)
    assert 15 < arrived < 45


def test_duplicates_arrive_a_second_time() -> None:
    async def story(on: Stage) -> list[float]:
        on.fleet.add(publishing(publisher="rte", period=0.0, lag=5.0, faults=PublisherFaults(duplicated=1.0)))
        await on.passes(30.0)
        return on.moments()

    assert played(story) == pytest.approx([5.0, 10.0])


def test_garbage_is_accepted_by_the_schema_and_survived_by_readers() -> None:
    def is_odd(tree: Tree) -> bool:
        topology = read(tree)
        return bool(topology.guesses) or len(topology.zones) != 2

    plain, odd_before = counted(PublisherFaults(), is_odd)
    arrived, odd = counted(PublisherFaults(garbage=1.0), is_odd)
    assert odd_before == 0 < plain
    assert arrived > 5
    assert odd == arrived


def test_attributes_can_be_left_out() -> None:
    def has_policy(tree: Tree) -> bool:
        return any(each["name"] == "topologyManagerPolicy" for each in tree["attributes"])

    arrived, with_policy = counted(PublisherFaults(without=("topologyManagerPolicy",)), has_policy)
    assert (arrived > 0, with_policy) == (True, 0)


def test_a_publisher_that_keeps_dying_is_late() -> None:
    sound, _ = counted(PublisherFaults(), lambda tree: True)
    dying, _ = counted(PublisherFaults(restarted=1.0), lambda tree: True)
    assert (sound, dying) == (60, 0)


def test_stale_reports_tell_what_was_told_before() -> None:
    async def story(on: Stage) -> list[int]:
        on.fleet.add(publishing(window=0.0, faults=PublisherFaults(stale=1.0)))
        await on.passes(5.0)
        on.create(stage.pod("web", "4"))
        await on.passes(0.5)
        return free(on.report())

    assert played(story) == [14, 16]
