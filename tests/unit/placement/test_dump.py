"""A ledger written down and taken over by another engine: the same rows, beliefs and answers."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from numalign.api.decode import structs as wire
from numalign.api.objects.node import Node
from numalign.api.objects.pod import Pod
from numalign.placement import dump
from numalign.placement.columns.holdings import Entry
from numalign.placement.dump import LedgerDump
from numalign.placement.engine import Engine
from numalign.placement.explain import nodeview
from numalign.placement.ledger.nodeledger import UnknownPods
from numalign.placement.ledger.sync import LedgerSync
from numalign.placement.settings import Settings
from numalign.scheduler import placementannotation
from numalign.scheduler.choose.choose import Chosen
from numalign.scheduler.choose.scoring import ScoreDetails
from numalign.scheduler.record import entries
from tests.placing import views
from tests.unit.scheduler import servers
from tests.unit.scheduler.servers import Servers, trainer

ENDED = {"phase": "Succeeded"}


def known(before: Servers) -> dict[str, Pod]:
    return {uid: each.pod for uid, each in before.cluster.assumed.items()}


def taken_over(before: Servers, *names: str) -> Servers:
    """Another cluster of the same nodes and pods, with the ledger of the first."""
    text = wire.ENCODER.encode(dump.dump(before.cluster.engine))
    copy = msgspec.json.decode(text, type=LedgerDump, dec_hook=wire.decoded)
    after, pods = Servers(*names), known(before)
    for pod in pods.values():
        after.cluster.pod(pod, 0.0)
    dump.adopt(after.cluster.engine, copy, pods)
    return after


def placed(there: Servers, pod: Pod, seed: int) -> str:
    """By the long way: one that has placed such pods before knows a shorter one."""
    found = there.choose(pod, seed, ranking=ScoreDetails(lambda: 0.0))
    return f"{found.decision.node} {placementannotation.of(found.decision)}" if isinstance(found, Chosen) else ""


@settings(max_examples=30)
@given(st.lists(st.integers(1, 5), max_size=8), st.integers(0, 100))
def test_an_engine_that_adopts_the_dump_decides_the_same(gpus: list[int], seed: int) -> None:
    before = Servers("a", "b")
    for number, count in enumerate(gpus):
        before.place(trainer(f"p{number}", gpus=count), seed + number)
    after = taken_over(before, "a", "b")
    for node in ("a", "b"):
        assert nodeview.of(after.cluster.engine, node) == nodeview.of(before.cluster.engine, node)
    assert views(after.cluster.engine) == views(before.cluster.engine)
    for wanted in (1, 2, 4):
        assert placed(after, trainer("q", gpus=wanted), seed) == placed(before, trainer("q", gpus=wanted), seed)


def test_a_pod_that_ended_after_the_report_stays_given_back() -> None:
    before = Servers("a")
    before.place(trainer("p", gpus=4))
    pod = known(before)["uid-p"]
    before.cluster.pod(pod, 0.0)
    before.cluster.pod(structs.replace(pod, status=structs.replace(pod.status, **ENDED)), 1.0)
    after = taken_over(before, "a")
    assert nodeview.of(after.cluster.engine, "a") == nodeview.of(before.cluster.engine, "a")


def test_a_node_that_is_gone_comes_back_with_the_pods_where_they_were() -> None:
    """Zones of pods are positions among the zones of the last report, which the dump has to name."""
    before = Servers("a")
    before.place(trainer("p", gpus=4))
    pod = known(before)["uid-p"]
    before.cluster.pod(pod, 0.0)
    before.cluster.report_gone("a", 1.0)
    before.cluster.node_gone("a")
    after = Servers()
    text = wire.ENCODER.encode(dump.dump(before.cluster.engine))
    after.cluster.pod(pod, 1.0)
    dump.adopt(after.cluster.engine, msgspec.json.decode(text, type=LedgerDump, dec_hook=wire.decoded), {"uid-p": pod})
    for each in (before, after):
        each.cluster.node(servers.node("a"), 2.0)
        each.cluster.report(servers.reported("a"), 2.0)
    found = nodeview.of(after.cluster.engine, "a")
    assert found is not None
    assert found.tenants[0].charges != ()
    assert found == nodeview.of(before.cluster.engine, "a")


def test_a_dump_shows_of_shapes_and_ended_pods_what_it_may() -> None:
    there = Servers("a")
    there.place(trainer("p", gpus=4))
    pod = known(there)["uid-p"]
    private = structs.replace(pod, metadata=structs.replace(pod.metadata, annotations={"example.com/note": "hush"}))
    there.cluster.pod(private, 0.0)
    there.cluster.pod_gone(private, 1.0)
    for shown, expected in ((lambda each: each, True), (entries.discreet, False)):
        assert (b"hush" in wire.ENCODER.encode(dump.dump(there.cluster.engine, shown))) is expected


def test_pods_without_objects_are_left_out() -> None:
    before = Servers("a")
    before.place(trainer("p", gpus=4))
    after = Servers("a")
    dump.adopt(after.cluster.engine, dump.dump(before.cluster.engine), {})
    assert views(after.cluster.engine) == views(Servers("a").cluster.engine)


def test_resources_find_their_columns_by_name() -> None:
    before = Servers("a")
    before.place(trainer("p"))
    after = Servers(reports=False)
    after.cluster.engine.columns.column("example.com/first")
    after.cluster.node(servers.node("a"))
    after.cluster.report(servers.reported("a"), 0.0)
    dump.adopt(after.cluster.engine, dump.dump(before.cluster.engine), known(before))
    there, here = (nodeview.of(each.cluster.engine, "a") for each in (before, after))
    assert here == there


def test_a_flavour_without_a_ledger_has_nothing_to_copy() -> None:
    engine = Engine(Settings(flavour="reference"))
    assert dump.dump(engine) == LedgerDump()
    dump.adopt(engine, dump.dump(Servers("a").cluster.engine), {})


def test_a_late_event_of_a_pod_that_ended_counts_in_neither() -> None:
    pod = servers.on(trainer("p", gpus=4), "a")
    before, after = Servers("a", reports=False), Servers("a", reports=False)
    before.cluster.pod(pod, 0.0)
    before.cluster.pod(structs.replace(pod, status=structs.replace(pod.status, **ENDED)), 1.0)
    dump.adopt(after.cluster.engine, dump.dump(before.cluster.engine), {})
    for each in (before, after):
        each.cluster.pod(pod, 2.0)
        assert mirror(each).ledger.holding("uid-p") is None
        assert [node.records for node in mirror(each).ledger.nodes()] == [{}]


def test_a_pod_on_a_node_without_report_is_placed_when_the_report_comes() -> None:
    pod = servers.on(trainer("p", gpus=4), "a")
    before, after = Servers("a", reports=False), Servers("a", reports=False)
    for each in (before, after):
        each.cluster.pod(pod, 0.0)
    text = wire.ENCODER.encode(dump.dump(before.cluster.engine))
    copy = msgspec.json.decode(text, type=LedgerDump, dec_hook=wire.decoded)
    dump.adopt(after.cluster.engine, copy, {"uid-p": pod})
    for each in (before, after):
        each.cluster.report(servers.reported("a"), 1.0)
    found = nodeview.of(after.cluster.engine, "a")
    assert found is not None
    assert found.tenants[0].charges != ()
    assert found == nodeview.of(before.cluster.engine, "a")


def another(name: str) -> Node:
    """Another Node of this name."""
    node = servers.node(name)
    return structs.replace(node, metadata=structs.replace(node.metadata, uid="another"))


def test_a_report_of_an_earlier_node_does_not_serve_the_next_one() -> None:
    before = Servers("a")
    before.cluster.node_gone("a")
    after = Servers()
    after.cluster.report(servers.reported("a"), 0.0)
    dump.adopt(after.cluster.engine, dump.dump(before.cluster.engine), {})
    for each in (before, after):
        each.cluster.node(another("a"), 1.0)
    lacking = [each.cluster.engine.lacks_report("a") for each in (before, after)]
    assert lacking == [True, True]


def test_a_report_that_was_dropped_with_its_node_stays_dropped() -> None:
    before = Servers("a")
    before.cluster.node_gone("a")
    before.cluster.node(another("a"), 1.0)
    after = Servers()
    after.cluster.report(servers.reported("a"), 0.0)
    after.cluster.node(another("a"), 1.0)
    dump.adopt(after.cluster.engine, dump.dump(before.cluster.engine), {})
    assert after.cluster.engine.lacks_report("a")


def test_doubts_about_pods_that_only_a_report_has_end_with_the_doubts_of_the_first() -> None:
    before = Servers("a")
    unknown = mirror(before).ledger.nodes()[0].unknown_pods
    unknown.note({"uid-p": (Entry(0, 4, 1),)}, 1)
    after = taken_over(before, "a")
    for each in (before, after):
        each.cluster.pod(servers.on(trainer("p", gpus=4), "a"), 0.0)
        each.cluster.engine.flavour.refresh()
        assert mirror(each).ledger.nodes()[0].unknown_pods == UnknownPods()


def mirror(there: Servers) -> LedgerSync:
    return there.cluster.engine.flavour.either(lambda exact: exact.mirror, lambda _: pytest.fail("no ledger"))
