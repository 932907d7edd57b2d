"""One pod's answer as a block of text: the verdict, then where its containers sit or why it was refused.

`kubelet` draws all pods of a report this way, `demo` the one that matters. The kubelet's reason and message appear as
they are; everything else is made from the report's data."""

from __future__ import annotations

from collections.abc import Iterator

from rich.table import Table
from rich.text import Text

from numalign.cli import drawing, output
from numalign.cli.admit import matrix, wording
from numalign.cli.admit.report import Container, Explanation, Offered, Pod
from numalign.cli.drawing import INDENT, Page

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
    if pod.explanation and pod.explanation.lacks:
        page.add()
        page.add(_lacks(page, pod.explanation), indent=2 * INDENT)


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
    if explanation.node_has_room and explanation.node_free:
        yield "although", wording.node_has_room(pod.requests, explanation.node_free)


def _lacks(page: Page, explanation: Explanation) -> Table:
    """What the pod needs beside what every zone has, and the managers' hints."""
    table = matrix.lacks(page, explanation.lacks)
    hints = {each.resource: each for each in explanation.offered}
    if hints:
        table.add_row("offered", *(_offered(hints.get(each.resource)) for each in explanation.lacks))
    return table


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


def _offered(offered: Offered | None) -> str:
    if offered is None or offered.hints is None:
        return "-"
    preferred = [hint.zones for hint in offered.hints if hint.preferred]
    others = [hint.zones for hint in offered.hints if not hint.preferred]
    if preferred:
        return wording.choices(preferred)
    if others:
        return f"only {wording.choices(others)}"
    return "too many to list" if offered.count else "nothing"
