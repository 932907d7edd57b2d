"""What a scheduler tells about itself, drawn: its queue, one pod's story, one node's zones.

`schedulerlook` hands in the page as it came; the scheduler may be of another version, so that nothing in it is taken
for granted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from numalign.cli import drawing
from numalign.cli.admit import wording
from numalign.cli.drawing import INDENT, Page

Told = Mapping[str, Any]
BEFORE_DETAILS = ("at", "what")


def state(told: Told) -> str:
    page = Page()
    if isinstance(told.get("node"), dict):
        node(page, told["node"])
        return page.text()
    if "leads" in told:
        _numbers(page, told)
    _queue(page, told.get("queue") or {})
    _on_their_way(page, told.get("assumed") or {})
    for story in told.get("stories") or ():
        _story(page, story)
    if told.get("node"):
        _held(page, told)
    for each in told["nodes"] if isinstance(told.get("nodes"), list) else ():
        page.add()
        node(page, each)
    return page.text()


def knows_pod(told: Told) -> bool:
    waits = any((told.get("queue") or {}).values())
    return waits or any(told.get(name) for name in ("assumed", "stories", "decisions", "node"))


def knows_node(told: Told) -> bool:
    found = told.get("node") or {}
    return bool(found.get("isThere") or found.get("pods") or "policy" in found)


def _numbers(page: Page, told: Told) -> None:
    grid = drawing.labelled()
    grid.add_row("leads", "yes" if told["leads"] else "no, another one does")
    nodes = told.get("nodes")
    grid.add_row(
        "knows",
        f"{len(nodes) if isinstance(nodes, list) else nodes} nodes, {told.get('pods')} pods on them, "
        f"{told.get('shapes')} kinds of pods",
    )
    grid.add_row("in flight", ", ".join(told.get("inFlight") or ()) or "nobody")
    for pod, node in (told.get("nominated") or {}).items():
        grid.add_row("nominated", f"{pod} to {node}")
    for kept in told.get("keptOff") or ():
        who = f"pods like {kept['like']}" + (f" of owner {kept['owner']}" if kept.get("owner") else "")
        grid.add_row("kept off", f"{who} off {kept['node']}, for {_seconds(kept['seconds'])} at least")
    page.add(grid)
    page.add()


def _queue(page: Page, queue: Told) -> None:
    table = page.table("POOL", "POD", "WAITS", "TRIED", "WHY")
    for pool, pods in queue.items():
        for pod in pods:
            why = [f"{plugin}: {', '.join(reasons)}" for plugin, reasons in (pod.get("refused") or {}).items()]
            why += [f"held by {pod['gate']}"] if pod.get("gate") else []
            table.add_row(pool, pod["pod"], _seconds(pod.get("waits", 0)), str(pod.get("attempts", 0)), "; ".join(why))
    page.add(table if table.row_count else "Nobody waits.")


def _on_their_way(page: Page, assumed: Told) -> None:
    if not assumed:
        return
    table = page.table("ON ITS WAY", "TO", "")
    for pod, where in assumed.items():
        table.add_row(pod, where["node"], "bound, not seen there yet" if where.get("bound") else "to be bound")
    page.add()
    page.add(table)


def _story(page: Page, story: Told) -> None:
    page.add()
    page.add(f"{story['pod']} ({story['uid']})")
    grid = drawing.labelled()
    for line in story["lines"]:
        details = ", ".join(
            f"{name} {value}" for name, value in line.items() if name not in BEFORE_DETAILS and value != ""
        )
        grid.add_row(line["at"], f"{line['what']}: {details}" if details else line["what"])
    page.add(grid, indent=INDENT)
    if story.get("leftOut"):
        page.add(f"({story['leftOut']} lines in the middle were left out)", indent=INDENT)


def _held(page: Page, told: Told) -> None:
    held = told.get("held")
    page.add()
    if not held:
        return page.add(f"On {told['node']}; nothing is known about zones there.")
    page.add(f"On {told['node']}, {_containers(held)} ({held['source']})")


def node(page: Page, told: Told) -> None:
    head = f"{told['name']}"
    if "policy" not in told:
        pods = ", ".join(told.get("pods") or ()) or "none"
        return page.add(f"{head}: no report; pods: {pods}" if told.get("isThere") else f"{head}: no such node")
    page.add(f"{head}: {told['policy']}, scope {told['scope']}")
    zones = told.get("zones") or ()
    table = page.table("FREE", *(f"zone {zone}" for zone in zones), "elsewhere")
    for resource, cells in (told.get("resources") or {}).items():
        by_zone = {tuple(cell["zones"]): _free(resource, cell) for cell in cells}
        others = [text for place, text in by_zone.items() if len(place) != 1]
        table.add_row(resource, *(by_zone.get((zone,), "") for zone in zones), ", ".join(others))
    page.add(table, indent=INDENT)
    _tenants(page, told.get("tenants") or ())


def _free(resource: str, cell: Told) -> str:
    return f"{wording.amount(resource, cell['free'])}/{wording.amount(resource, cell['allocatable'])}"


def _tenants(page: Page, tenants: Iterable[Told]) -> None:
    table = page.table("POD", "ZONES", "KNOWN AS", "")
    for each in tenants:
        notes = [
            words for flag, words in (("is_pending", "not admitted yet"), ("is_leaving", "leaving")) if each.get(flag)
        ]
        table.add_row(each["name"], _containers(each), each["source"], ", ".join(notes))
    if table.row_count:
        page.add(table, indent=INDENT)


def _containers(held: Told) -> str:
    found = held.get("containers") or {}
    return ", ".join(f"{name} in {_sets(sets)}" for name, sets in found.items()) or "no container is aligned"


def _sets(sets: Iterable[Iterable[int]]) -> str:
    return " or ".join("+".join(map(str, zones)) for zones in sets)


def _seconds(seconds: float) -> str:
    return f"{seconds:.0f}s" if seconds < 600 else f"{seconds / 60:.0f}m"
