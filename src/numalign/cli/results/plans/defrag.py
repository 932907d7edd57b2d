"""Draws a plan of moves, and what came of it; `commands.planning.defrag` calls `text` and `ending`."""

from __future__ import annotations

from collections.abc import Iterator

from numalign.cli.display.formats import Page
from numalign.plan.defrag.messages import DefragPlan, Execution, Landing, Step

VERDICTS = {
    "found": "A plan was found.",
    "nothing-to-do": "Nothing has to move.",
    "impossible": "No sequence of moves leads there",
    "not-found": "No plan was found, which proves nothing",
}


def text(plan: DefragPlan) -> str:
    page = Page()
    page.add(f"Goal: {plan.goal}. There {_is(plan.gain.before)} of {plan.gain.wanted:,} now.")
    page.add(VERDICTS[plan.verdict] + (f": {plan.why}." if plan.why else ""))
    if plan.steps:
        _add_steps(page, plan)
    if plan.kept and plan.verdict not in ("found", "nothing-to-do"):
        page.add()
        page.add("Pods that stay:")
        for kept in plan.kept:
            page.add(f"{kept.pods:,}: {kept.why}, such as {kept.example}", indent=2)
    return page.text()


def ending(found: Execution) -> str:
    page = Page()
    page.add(f"Goal: {found.goal}. " + ("It is there." if found.verdict == "done" else f"Stopped: {found.why}."))
    plans = "one plan" if found.plans == 1 else f"{found.plans:,} plans"
    page.add(f"{found.evictions:,} evictions, {plans}.")
    if found.moves:
        page.add()
        moves = page.table("EVICTED", "FROM", "SUCCESSOR", "ON", "ZONES", "PLANNED")
        for each in found.moves:
            zones = "+".join(map(str, each.zones)) if each.zones is not None else ""
            moves.add_row(each.pod, each.source, each.successor or "none", each.node or "none", zones, each.planned)
        page.add(moves)
    return page.text()


def _add_steps(page: Page, plan: DefragPlan) -> None:
    cost = plan.cost
    groups = f", {cost.groups:,} of them in groups" if cost.groups else ""
    page.add(f"{cost.pods:,} evictions{groups}; no plan needs fewer than {cost.at_least:,}.")
    page.add()
    steps = page.table("STEP", "EVICT", "ON", "LANDS ON", "ZONES", "CERTAINTY", "AFTER", "BECAUSE")
    for step in plan.steps:
        for row in _rows(step):
            steps.add_row(*row)
    page.add(steps)
    page.add()
    page.add(f"Then there {_is(plan.gain.after)}: {', '.join(f'{each.node} {each.count:,}' for each in plan.lands)}")
    page.add("The plan no longer holds after:")
    for what in plan.invalidated_by:
        page.add(what, indent=2)


def _rows(step: Step) -> Iterator[tuple[str, ...]]:
    for place, each in enumerate(step.pods):
        first = place == 0
        yield (
            str(step.number) if first else "",
            each.pod,
            each.source,
            each.lands.node,
            _zones(each.lands),
            each.lands.certainty,
            ", ".join(map(str, step.needs)) if first else "",
            step.because if first else "",
        )


def _zones(lands: Landing) -> str:
    """Sets of zones that the kubelet may choose, for each container that it aligns."""
    found = [" or ".join("+".join(map(str, zones)) for zones in each.zones) for each in lands.containers if each.zones]
    return ", ".join(dict.fromkeys(found)) or "any"


def _is(count: int) -> str:
    return f"is {count:,}" if count == 1 else f"are {count:,}"
