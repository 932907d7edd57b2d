"""Draws a node: zones down, resources across, and in every cell the pods that hold a part of it.

Each pod has a letter, and a colour where there are colours; a bar shows which pods hold how much and what is free.
Where the columns would get too narrow, the cells stand one below the other. `lacks` draws what a refused pod needs
beside what every zone has. Everything is drawn from the output structs of `values`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from string import ascii_lowercase, ascii_uppercase, digits

from rich.console import Group
from rich.table import Table
from rich.text import Text

from numalign.api.objects import resourcenames
from numalign.cli import output
from numalign.cli.display import formats
from numalign.cli.display.formats import Page
from numalign.cli.display.values import AdmitReport, Lacking, Resource, Zones, ZoneState

LETTERS = ascii_uppercase + ascii_lowercase + digits
TOO_MANY = "#"
UNKNOWN = "unknown holder"
"""The name in the legend for amounts that no known pod holds."""
UNKNOWN_LETTER = "?"
FREE = "."
COLOURS = ("green", "cyan", "magenta", "yellow", "blue", "bright_green", "bright_cyan", "bright_magenta")

EMPTY = "{} in all"
"""Of what a zone of the empty node has."""
BAR = 16
MOST_ZONES = 8
"""Zones that a table of what is lacking shows one by one."""
HEAD = 12
"""Characters of a resource's name that stay on one line; longer ones are split after the domain."""


class Marks:
    """Which letter and colour stands for which pod."""

    def __init__(self, pods: Iterable[str]) -> None:
        self.places = {pod: place for place, pod in enumerate(dict.fromkeys(pods))}

    def letter(self, pod: str) -> str:
        if pod == UNKNOWN:
            return UNKNOWN_LETTER
        place = self.places[pod]
        return LETTERS[place] if place < len(LETTERS) else TOO_MANY

    def style(self, pod: str) -> str:
        return f"black on {COLOURS[self.places[pod] % len(COLOURS)]}"

    def legend(self) -> Text:
        legend = Text()
        for pod in self.places:
            legend.append(self.letter(pod), self.style(pod)).append(f" {output.printable(formats.pod(pod))}   ")
        return legend.append(FREE, "dim").append(" free")


def draw(page: Page, answer: AdmitReport) -> None:
    """Add the node's zones, as they are after the last pod, to the page."""
    draw_zones(page, answer.resources, [pod.full_name for pod in answer.pods])


def draw_zones(page: Page, offered: Iterable[Resource], pods: Iterable[str]) -> None:
    """The same for any node; pods by their full names, in the order of their letters."""
    resources = [resource for resource in offered if resource.allocatable or any(_zone_sets([resource]))]
    marks = Marks(pod for pod in pods if _holds(resources, pod))
    across = _across(page.table("", *(_head(each.name) for each in resources)), resources, marks)
    page.add(across if page.fits(across) else Group(*_down(resources, marks)))
    if marks.places:
        page.add()
        page.add(marks.legend())


def _holds(resources: Iterable[Resource], pod: str) -> bool:
    return any(pod in zone.pods for resource in resources for zone in resource.zones)


def _head(resource: str) -> str:
    name = output.printable(resource)
    return name if len(name) <= HEAD else name.replace("/", "/\n", 1)


def _across(table: Table, resources: Sequence[Resource], marks: Marks) -> Table:
    for zones in _zone_sets(resources):
        table.add_row(formats.zones(zones), *(_cell(_state(each, zones), each.name, marks) for each in resources))
    table.add_row("node", *(_free(each, each.name) for each in resources))
    return table


def _down(resources: Sequence[Resource], marks: Marks) -> Iterator[Text]:
    for zones in _zone_sets(resources):
        yield Text(formats.zones(zones), "bold")
        for each in resources:
            state = _state(each, zones)
            if state and state.allocatable:
                yield Text.assemble(f"  {output.printable(each.name)}  ", _free(state, each.name))
                yield Text.assemble("  ", _bar(state, each.name, marks))
    yield Text("node", "bold")
    for each in resources:
        yield Text.assemble(f"  {output.printable(each.name)}  ", _free(each, each.name))


def _zone_sets(resources: Iterable[Resource]) -> Iterator[Zones]:
    """Zones that have something allocatable; a machine may have dozens that have nothing."""
    found = {state.zones for resource in resources for state in resource.zones if state.allocatable}
    yield from sorted(found, key=lambda zones: (not zones, len(zones), zones))


def _state(resource: Resource, zones: Zones) -> ZoneState | None:
    return next((state for state in resource.zones if state.zones == zones), None)


def _cell(state: ZoneState | None, resource: str, marks: Marks) -> Text:
    if state is None or not state.allocatable:
        return Text("-", "dim")
    return Text.assemble(_bar(state, resource, marks), "\n", _free(state, resource))


def _free(state: Resource | ZoneState, resource: str) -> Text:
    return Text(formats.free_of(resource, state.free, state.allocatable), "" if state.free else "dim")


def _bar(state: ZoneState, resource: str, marks: Marks) -> Text:
    width = BAR if resourcenames.is_bytes(resource) else min(BAR, int(state.allocatable))
    *held, free = _shares([*state.pods.values(), state.free], width)
    bar = Text()
    for pod, length in zip(state.pods, held, strict=True):
        bar.append(marks.letter(pod) * length, marks.style(pod))
    return bar.append(FREE * free, "dim")


def _shares(amounts: Sequence[float], width: int) -> list[int]:
    """Whole characters in proportion to the amounts, at least one for each holder while they last."""
    exact = [amount * width / (sum(amounts) or 1) for amount in amounts]
    shares = [max(1, int(share)) if share else 0 for share in exact]
    while sum(shares) > width:
        widest = max(range(len(shares)), key=lambda place: shares[place])
        shares[widest] -= 1
    while sum(shares) < width and any(exact):
        neediest = max(range(len(shares)), key=lambda place: exact[place] - shares[place])
        shares[neediest] += 1
    return shares


def lacks(page: Page, wanted: Sequence[Lacking], *, empty: bool = False) -> Table:
    """What is needed, and what every zone has of it; of many zones those that have most.

    `empty`: the amounts are those of the node without any pod."""
    of = EMPTY if empty else "{} free"
    table = page.table("", *(output.printable(each.resource) for each in wanted))
    table.add_row("needs", *(_need(each) for each in wanted))
    every = dict.fromkeys(share.zone for each in wanted for share in each.zones)
    free = {zone: sum(_part(each, zone) for each in wanted) for zone in every}
    shown = sorted(sorted(every, key=lambda zone: (-free[zone], zone))[:MOST_ZONES])
    for zone in shown:
        table.add_row(formats.zones((zone,)), *(_share(each, zone, of) for each in wanted))
    if len(every) > len(shown):
        rest = every.keys() - shown
        table.add_row(f"{len(rest)} more", *(_range(each, rest, of) for each in wanted))
    if not every:
        table.add_row(
            "node has", *(Text("-") if each.most is None else _amount(each, each.most, of) for each in wanted)
        )
    return table


def _part(lack: Lacking, zone: int) -> float:
    return next((each.free / lack.need for each in lack.zones if each.zone == zone), 0.0) if lack.need else 0.0


def _need(lack: Lacking) -> str:
    amount = formats.amount(lack.resource, lack.need)
    return (
        amount if not lack.in_zones else f"{amount} in {'one zone' if lack.in_zones == 1 else f'{lack.in_zones} zones'}"
    )


def _share(lack: Lacking, zone: int, of: str) -> Text:
    share = next((each for each in lack.zones if each.zone == zone), None)
    if share is None:
        return Text("-", "dim")
    text = Text(of.format(formats.amount(lack.resource, share.free)), "" if share.short else "green")
    if share.short:
        text.append(f", {formats.amount(lack.resource, share.short)} short", "red")
    return text


def _range(lack: Lacking, zones: Collection[int], of: str) -> str:
    """The least and the most that any of these has."""
    free = [each.free for each in lack.zones if each.zone in zones] or [0]
    least, most = (formats.amount(lack.resource, amount) for amount in (min(free), max(free)))
    return of.format(least if least == most else f"{least} to {most}")


def _amount(lack: Lacking, amount: float, of: str) -> Text:
    short = lack.need - amount
    text = Text(of.format(formats.amount(lack.resource, amount)), "" if short > 0 else "green")
    return text.append(f", {formats.amount(lack.resource, short)} short", "red") if short > 0 else text
