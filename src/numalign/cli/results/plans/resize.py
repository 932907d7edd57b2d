"""Draws a `ResizePlan`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from numalign.cli.display.formats import INDENT, Page
from numalign.plan.questions.resize import ResizePlan

SAYS = {
    "fits": "the kubelet would resize it now",
    "deferred": "the kubelet would try again later",
    "infeasible": "the kubelet refuses for good",
    "refused": "the API server refuses",
    "unknown": "not known",
}


def text(plan: ResizePlan) -> str:
    page = Page()
    page.add(f"{plan.pod} on {plan.node}: {plan.verdict}, {SAYS[plan.verdict]}")
    if plan.message:
        page.add(plan.message, indent=INDENT)
    page.add("its CPUs, memory and devices stay where they are", indent=INDENT)
    for note in plan.notes:
        page.add(f"note: {note}", indent=INDENT)
    if plan.instead is not None:
        page.add()
        page.add(f"a new pod with these requests: {_instead(plan)}")
    return page.text()


def _instead(plan: ResizePlan) -> str:
    found = plan.instead
    assert found is not None, "the caller has looked"
    if found.node:
        return f"the scheduler would place it on {found.node} now"
    if found.same_node:
        return f"{plan.node} would admit it once the old pod is gone"
    return f"no node would take it: {found.why}"


def lines(plan: ResizePlan) -> Iterator[Mapping[str, object]]:
    yield {
        "pod": plan.pod,
        "node": plan.node,
        "verdict": plan.verdict,
        "by": plan.by,
        "reason": plan.reason,
        "message": plan.message,
    }
