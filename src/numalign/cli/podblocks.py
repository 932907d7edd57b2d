"""One pod's answer as a block of text: the verdict, then where its containers sit or why it was refused.

`kubelet` draws all pods of a report this way, `demo` the one that matters. The kubelet's reason and message appear as
they are; everything else is made from the report's data."""

from __future__ import annotations

from collections.abc import Iterator

from rich.table import Table
from rich.text import Text

from numalign.cli import drawing, output, wording
from numalign.cli.drawing import INDENT, Page
from numalign.cli.report import Container, Explanation, Pod, Wanted, Zones

STYLES = {"admitted": "bold green", "rejected": "bold red", "undecided": "bold yellow"}


def draw(page: Page, pod: Pod) -> None:
    page.add(Text.assemble((wording.pod(pod.full_name), "bold"), "  ", (pod.verdict, STYLES[pod.verdict])))
    lines = drawing.labelled()
    lines.add_row("asks for", f"{wording.wants(pod.requests)} ({pod.qos_class})")
    for container in pod.containers:
        for label, text in _placement(container):
            lines.add_row(label, text)
    for label, words in _refusal(pod):
        lines.add_row(label, words)
    page.add(lines, indent=INDENT)
    if pod.explanation and pod.explanation.wanted:
        page.add()
        page.add(_supplies(page, pod.explanation.wanted), indent=2 * INDENT)


def line(pod: Pod) -> tuple[Text, ...]:
    """The same in one row of a table: name, request, verdict, and the place or the reason."""
    place = pod.reason or "; ".join(_short(container) for container in pod.containers)
    verdict = Text(pod.verdict, STYLES[pod.verdict])
    return Text(wording.pod(pod.full_name)), Text(wording.wants(pod.requests)), verdict, Text(place)


def _short(container: Container) -> str:
    cpus = "shared CPUs" if container.cpus is None else f"CPUs {container.cpus}"
    return f"{wording.zones(container.zones)}, {cpus}" if container.zones else cpus


def _refusal(pod: Pod) -> Iterator[tuple[str, str]]:
    if pod.reason:
        yield "reason", pod.reason
    if pod.message:
        yield "why" if pod.verdict == "undecided" else "message", pod.message
    for note in pod.notes:
        yield "note", note
    if pod.explanation:
        yield from _because(pod, pod.explanation)


def _because(pod: Pod, explanation: Explanation) -> Iterator[tuple[str, str]]:
    yield "refused at", f"container {explanation.container}" if explanation.container else "the pod as a whole"
    if explanation.text:
        yield "because", explanation.text
    free = {each.resource: each.node_free for each in explanation.wanted if each.node_free is not None}
    if explanation.node_has_room and free:
        yield "although", wording.node_has_room(pod.requests, free)


def _placement(container: Container) -> Iterator[tuple[str, Text]]:
    place = wording.zones(container.zones) if container.zones else "any zone"
    yield container.name, Text(f"{place}; affinity {_affinity(container)}")
    yield "", Text(f"CPUs {container.cpus}" if container.cpus is not None else "CPUs shared")
    for block in container.memory:
        yield "", Text(f"{block.type} {wording.amount(block.type, block.bytes)} in {wording.zones(block.zones)}")
    for resource, ids in container.devices.items():
        yield "", Text(output.printable(f"{resource} {', '.join(ids)}"))


def _affinity(container: Container) -> str:
    affinity = container.affinity
    zones = "any" if affinity.zones is None else wording.zones(affinity.zones)
    return f"{zones}, {'preferred' if affinity.preferred else 'not preferred'}"


def _supplies(page: Page, wanted: tuple[Wanted, ...]) -> Table:
    """What was asked beside what every zone had."""
    table = page.table("", *(each.resource for each in wanted))
    table.add_row("needs", *(wording.amount(each.resource, each.needed) for each in wanted))
    table.add_row("node", *(_node_free(each) for each in wanted))
    for label, cells in _rows(wanted):
        table.add_row(label, *cells)
    if any(each.offered is not None for each in wanted):
        table.add_row("offered", *(_offered(each) for each in wanted))
    return table


def _node_free(wanted: Wanted) -> str:
    return "-" if wanted.node_free is None else f"{wording.amount(wanted.resource, wanted.node_free)} free"


def _rows(wanted: tuple[Wanted, ...]) -> Iterator[tuple[str, list[Text]]]:
    """A row for every zone set; zones of which the same can be said share one."""
    alike: dict[tuple[object, ...], tuple[list[Text], list[Zones]]] = {}
    every = dict.fromkeys(supply.zones for each in wanted for supply in each.zones)
    for zones in sorted(every, key=lambda zones: (not zones, len(zones), zones)):
        cells = [_supply(each, zones) for each in wanted]
        key = len(zones) == 1 or zones, *(cell.plain for cell in cells)
        alike.setdefault(key, (cells, []))[1].append(zones)
    for cells, sets in alike.values():
        yield wording.alike(sets), cells


def _supply(wanted: Wanted, zones: Zones) -> Text:
    supply = next((each for each in wanted.zones if each.zones == zones), None)
    if supply is None:
        return Text("-", "dim")
    text = Text(f"{wording.amount(wanted.resource, supply.free)} free", "green" if not supply.short else "")
    if supply.short:
        text.append(f", {wording.amount(wanted.resource, supply.short)} short", "red")
    if supply.group:
        text.append(f", bound to {wording.zones(supply.group)}", "red")
    return text


def _offered(wanted: Wanted) -> str:
    if wanted.offered is None:
        return "-"
    preferred = [offer.zones for offer in wanted.offered if offer.preferred]
    others = [offer.zones for offer in wanted.offered if not offer.preferred]
    if preferred:
        return wording.choices(preferred)
    if others:
        return f"only {wording.choices(others)}"
    return "too many to list" if wanted.offered_count else "nothing"
