"""What the agent's pages say of it, well and ill."""

from __future__ import annotations

import asyncio

from numalign.agent import main as http
from numalign.process.serve import PageRequest, PageResponse, Pages
from numalign.simulator import virtualtime
from tests.unit.agent.clusters import PERIOD, Script, Town


def answers(town_is_away: bool, unknown: tuple[str, ...] = ()) -> dict[str, PageResponse]:
    async def main() -> dict[str, PageResponse]:
        town, script = Town(), Script()
        town.away, script.unknown = town_is_away, unknown
        async with town.agent(script) as agent:
            await asyncio.sleep(90)
            pages = Pages(http.status_pages(agent, PERIOD))
            paths = ("/healthz", "/readyz", "/metrics")
            return {path: await pages.answer(PageRequest(method="GET", path=path)) for path in paths}

    return virtualtime.run(main())


def test_an_agent_that_has_published_is_ready() -> None:
    found = answers(False)
    assert found["/readyz"].status == 200
    assert 'numalign_agent_reports_total{result="written"} 1\n' in str(found["/metrics"].body)
    assert "numalign_agent_report_age_seconds" in str(found["/metrics"].body)
    assert "process_resident_memory_bytes " in str(found["/metrics"].body)


def test_an_agent_that_cannot_publish_is_healthy_and_says_why_it_is_not_ready() -> None:
    found = answers(True)
    assert (found["/healthz"].status, found["/readyz"].status) == (200, 503)
    assert "Connection refused" in str(found["/readyz"].body)
    assert 'numalign_agent_write_failures_total{code="<error>"}' in str(found["/metrics"].body)


def test_an_agent_with_an_incomplete_snapshot_says_what_is_missing() -> None:
    found = answers(False, ("the kubelet's configuration is unknown",))
    assert found["/readyz"].body == "last published: never\nthe kubelet's configuration is unknown\n"
