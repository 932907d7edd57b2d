"""Nodes that were picked for pods which still wait."""

from __future__ import annotations

import pytest

from numalign.scheduler.queue.nominations import Nominations
from tests.unit.scheduler.waitingpods import names, pod, popped, queue, refused, tried


def nominated(name: str, node: str) -> list[str]:
    line = queue()
    line.add(pod(name, status={"nominatedNodeName": node}), 0)
    return [each.metadata.name for each in line.nominations.on(node)]


def test_a_nomination_in_the_status_counts_from_the_start() -> None:
    assert nominated("a", "n1") == ["a"]


def test_a_nomination_made_in_memory_outlives_an_update_that_does_not_speak_of_it() -> None:
    line = queue()
    line.add(pod("a"), 0)
    line.nominate("uid-a", "n1", 0)
    line.update(pod("a", labels={"x": "y"}), 1)
    assert [each.metadata.labels for each in line.nominations.on("n1")] == [{"x": "y"}]


@pytest.mark.parametrize("before, after, node", [("n1", "n2", "n2"), ("n1", "", ""), ("", "n2", "n2")])
def test_a_status_that_speaks_of_it_wins(before: str, after: str, node: str) -> None:
    nominations = Nominations()
    old = pod("a", status={"nominatedNodeName": before})
    nominations.put(old, "n1")
    nominations.update(old, pod("a", status={"nominatedNodeName": after}))
    assert nominations.node_of("uid-a") == node


def test_pods_that_do_not_wait_are_not_nominated() -> None:
    line = queue()
    line.nominate("uid-nobody", "n1", 0)
    assert line.nominations.nodes() == ()


@pytest.mark.parametrize("how", ["delete", "assigned", "done"])
def test_a_nomination_ends_with_its_pod(how: str) -> None:
    line = queue()
    line.add(pod("a", status={"nominatedNodeName": "n1"}), 0)
    assert popped(line, 0) == ["a"]
    {
        "delete": lambda: line.delete("uid-a", 1),
        "assigned": lambda: line.assigned("uid-a"),
        "done": lambda: line.done("uid-a"),
    }[how]()
    assert (len(line.nominations), line.nominations.nodes()) == (0, ())


@pytest.mark.parametrize("priority, pool", [(4, "active"), (5, "active"), (6, "unschedulable")])
@pytest.mark.parametrize("how", ["deleted", "nominated elsewhere", "cleared"])
@pytest.mark.parametrize("plugin", ["NodeResourcesFit", "NodeResourceTopologyMatch"])
def test_room_that_was_kept_wakes_those_who_had_to_respect_it(priority: int, pool: str, how: str, plugin: str) -> None:
    line = queue()
    line.add(pod("waits", {"priority": priority}), 0)
    tried(line, refused(plugin, zones_of=frozenset({"n1"})), 0)
    preemptor = pod("preemptor", {"priority": 5}, status={"nominatedNodeName": "n1"}, resourceVersion="1")
    line.add(preemptor, 1)
    assert popped(line, 1) == ["preemptor"]
    match how:
        case "deleted":
            line.delete("uid-preemptor", 5)
        case "nominated elsewhere":
            line.nominate("uid-preemptor", "n2", 5)
        case "cleared":
            line.update(pod("preemptor", {"priority": 5}, resourceVersion="2"), 5)
    assert names(line) == {pool: ["waits"]}
