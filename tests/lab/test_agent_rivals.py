"""What happens to a real node's report in the cluster: it comes back by itself, and one agent at a time writes it."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator

import pytest
from msgspec import structs

from numalign.agent.publish import publish
from numalign.api.nrt import normalise, publishers, wire
from numalign.api.nrt.nodetopology import NodeTopology
from numalign.kube import errors
from numalign.kube.resources import EVENTS, TOPOLOGIES, Event
from numalign.lab import up
from numalign.lab.processes import Part
from numalign.simulator.nodes.publisher import crd
from tests.lab import agents, books, metrics
from tests.lab.fleet import OFFERING, UPDATED
from tests.lab.fleet import TOLD as NODE
from tests.lab.live import NAMESPACE, Live
from tests.lab.test_agent import free, held, until_told
from tests.lab.test_agent_faults import place

OLDER = structs.replace(TOPOLOGIES, version=wire.V1ALPHA1)
DEFINITION = up.DEFINITIONS.at(crd.crd()["metadata"]["name"])
FAILURES = "numalign_agent_write_failures_total"
PRUNED = "numalign_agent_pruned_attributes"
STANDS_BACK = "numalign_agent_stands_back"


@pytest.fixture
def defined(single: Live) -> Iterator[Live]:
    """With the definition of reports, and with those that others look at, before and after. NFD's updater is stopped
    meanwhile: it ends when it writes a report that is not defined."""
    updater = next(part for part in single.lab.every_part() if part.program.title == f"{UPDATED}/nfd")
    updater.stop()
    yield single
    with contextlib.suppress(errors.Conflict):
        single.run(up.define_reports(single.lab))
    updater.start()

    async def all_reported() -> bool:
        return all([await reported(single, name) for name in (NODE, OFFERING, UPDATED)])

    single.awaited(all_reported, "a node has no report")


async def reported(live: Live, name: str = NODE) -> NodeTopology | None:
    try:
        return normalise.normalise(await live.client.get(TOPOLOGIES.at(name)))
    except errors.NotFound:
        return None


def undefine(live: Live) -> None:
    """With their definition, all reports go."""
    live.run(live.client.delete(DEFINITION))

    async def gone() -> bool:
        try:
            await live.client.get(DEFINITION)
        except errors.NotFound:
            return True
        return False

    live.awaited(gone, "the definition stays")


def until_told_by(live: Live, agent: Part, metric: str, value: int) -> None:
    async def is_told() -> bool:
        return metrics.told_by(agent, metric) == {"": value}

    live.awaited(is_told, f"{metric} is not {value}")


def test_a_report_that_somebody_deleted_is_written_again_within_a_period(single: Live, hasty: Part) -> None:
    place(single, "kept", 3)
    before = until_told(single, 1)
    single.run(single.client.delete(TOPOLOGIES.at(NODE)))
    assert agents.in_time(single, hasty, lambda: reported(single), "no report") == before


def test_a_report_whose_definition_was_gone_is_written_within_a_period_of_its_return(
    defined: Live, hasty: Part
) -> None:
    place(defined, "kept", 3)
    until_told(defined, 1)
    undefine(defined)

    async def noticed() -> bool:
        return metrics.told_by(hasty, FAILURES).get("404", 0) > 0

    defined.awaited(noticed, "the agent does not count that its report is not taken")
    defined.run(up.define_reports(defined.lab))
    found = agents.in_time(defined, hasty, lambda: reported(defined), "no report")
    assert held(found) == books.cpus(defined.node(NODE))


def test_an_older_definition_gets_the_zones_and_the_newer_one_the_whole_report(defined: Live, hasty: Part) -> None:
    place(defined, "kept", 3)
    before = until_told(defined, 1)
    undefine(defined)
    whole = crd.crd()
    first = whole["spec"]["versions"][0] | {"storage": True}
    older = whole | {"spec": whole["spec"] | {"versions": [first]}}
    defined.run(defined.client.create(up.DEFINITIONS.everywhere(), older))

    async def in_older() -> NodeTopology | None:
        try:
            return normalise.normalise(await defined.client.get(OLDER.at(NODE)))
        except errors.NotFound:
            return None

    zones = defined.awaited(in_older, "no report in the older version")
    assert first["name"] == wire.V1ALPHA1
    assert (free(zones), zones.facts.placements) == (free(before), None)
    assert metrics.told_by(hasty, PRUNED)[""] > 0
    defined.run(defined.client.patch(DEFINITION, "merge", {"spec": {"versions": whole["spec"]["versions"]}}))
    # What is stored is served in the newer version, too, before the agent has written it.
    defined.awaited(lambda: reported(defined), "the newer version is not served")

    async def in_full() -> NodeTopology | None:
        found = await reported(defined)
        return found if found is not None and found.facts.placements else None

    assert held(agents.in_time(defined, hasty, in_full, "not the whole report")) == books.cpus(defined.node(NODE))
    until_told_by(defined, hasty, PRUNED, 0)


def test_of_two_agents_the_first_stands_back_says_so_and_takes_over_when_the_second_ends(
    single: Live, hasty: Part
) -> None:
    node = single.node(NODE)
    place(single, "before", 3)
    truths = {free(until_told(single, 1))}
    with agents.seen(single, NODE) as versions:
        with agents.beside(single, node, "second") as second:
            until_told_by(single, hasty, STANDS_BACK, 1)
            name = f"{socket.gethostname()}-{second.pid}"
            single.awaited(lambda: _warned(single, name), "no event on the Node names the second agent")
            place(single, "while", 2)
            truths.add(free(until_told(single, 2)))
            assert signature(single) == name
            assert metrics.told_by(second, STANDS_BACK) == {"": 0}
        place(single, "after", 1)
        found = until_told(single, 3)
    truths.add(free(found))
    until_told_by(single, hasty, STANDS_BACK, 0)
    assert held(found) == books.cpus(node)
    assert signature(single) == f"{socket.gethostname()}-{hasty.pid}"
    assert {free(version) for version in versions} == truths


async def _warned(live: Live, second: str) -> bool:
    events = await live.client.every(EVENTS.within(NAMESPACE))
    return any(
        each.reason == "SecondTopologyPublisher" and each.regarding.name == NODE and second in each.note
        for each in events
        if isinstance(each, Event)
    )


def signature(live: Live) -> str:
    """Which process wrote the report."""
    found = live.run(live.client.get(publish.resource(wire.V1ALPHA2).at(NODE)))
    return found.metadata.annotations[publishers.SIGNED]
