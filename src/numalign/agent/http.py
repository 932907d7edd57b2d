"""The agent's pages: metrics, whether it lives, and whether the cluster knows its node.

`main` hands them to `process.serve`. /healthz is about the process alone: a kubelet or an API server that is away is no
reason to restart us. /readyz says whether the report is young enough, and if not, why."""

from __future__ import annotations

from typing import Final

from numalign.agent.cycle import Agent
from numalign.process import metrics
from numalign.process.serve import Page, PageRequest, PageResponse

PATIENCE: Final = 3
"""Periods for which a report counts as young."""


def pages(agent: Agent, period: float) -> dict[str, Page]:
    def readiness(_: PageRequest) -> PageResponse:
        age = agent.age()
        if age is not None and age <= PATIENCE * period:
            return PageResponse(f"ok: the report was right {age:.0f} s ago\n")
        other = agent.other
        standing = agent.standing
        reasons = [*standing.withheld, *filter(None, [standing.failure])]
        reasons += [f"{other} writes this node's report"] if other else []
        since = "never" if age is None else f"{age:.0f} s ago"
        return PageResponse("\n".join([f"last told: {since}", *reasons, ""]), 503)

    return {
        "/metrics": lambda _: PageResponse(agent.metrics.registry.text(), content_type=metrics.CONTENT_TYPE),
        "/healthz": lambda _: PageResponse("ok\n"),
        "/readyz": readiness,
    }
