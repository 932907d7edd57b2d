"""Draws a node as a glyph: its zones side by side, each filled from below by what is in use of one resource.

The page *Fleet* draws thousands of them, so a glyph is one link with at most six paths, however many zones there are.
Colours and patterns are classes of the style sheet; what a colour says, the shape and the link's label say, too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from markupsafe import Markup, escape

from numalign.dashboard import words
from numalign.dashboard.moment import Node, ReportState, Share, Zone

HEIGHT: Final = 32
GAP: Final = 2
EDGE: Final = 1
MARK: Final = 8
"""Above the zones, for the mark of the report."""
WIDTHS: Final = ((4, 11), (8, 7), (16, 4))
"""Up to so many zones, a zone is so wide."""
NARROWEST: Final = 2
EMPTY_WIDTH: Final = 24
MARKS: Final = {
    ReportState.DIVERGED: "M{x} 7l3.5 -6l3.5 6z",
    ReportState.STALE: "M{x} 3.5a3 3 0 1 0 6 0a3 3 0 1 0 -6 0",
    ReportState.MISSING: "M{x} 1l6 6m0 -6l-6 6",
}
"""A triangle, a ring, a cross."""
SAYS: Final = {
    ReportState.DIVERGED: "report contradicts the predictions",
    ReportState.STALE: "report is not renewed",
    ReportState.MISSING: "no report",
}
NO_SHARE: Final = Share(0, 0, 0)


def glyph(node: Node, resource: str, href: str, key: str, *, with_amount: bool = False) -> Markup:
    """`key`: the id of the element. `with_amount`: for the line below the name, which the style sheet writes."""
    zones = _drawn(node, resource)
    wide = next((width for most, width in WIDTHS if len(zones) <= most), NARROWEST)
    gap = GAP if wide > NARROWEST else 1
    across = len(zones) * (wide + gap) - gap if zones else EMPTY_WIDTH
    paths = "".join(_paths(node, zones, resource, wide, gap, across))
    size = f"{across + 2 * EDGE} {MARK + HEIGHT + 2 * EDGE}"
    width, height = size.split()
    kinds = " off" if not node.status.startswith("Ready") or "Disabled" in node.status else ""
    label, amount = escape(describe(node, resource)), _amount(node, resource) if with_amount else ""
    # Every part is a number, a class, or escaped.
    return Markup(
        f'<a class="g{kinds}" id="{escape(key)}" href="{escape(href)}" aria-label="{label}"{amount}>'
        f'<svg width="{width}" height="{height}" viewBox="0 0 {size}">{paths}</svg><bdi>{escape(node.name)}</bdi></a>'
    )


def _drawn(node: Node, resource: str) -> list[tuple[Zone, Share]]:
    """Zones that have the resource. The others are drawn as one: a superchip has thirty zones without CPUs."""
    shares = [(zone, zone.shares.get(resource, NO_SHARE)) for zone in node.zones]
    having = [(zone, share) for zone, share in shares if share.size > 0]
    return having + [(zone, share) for zone, share in shares if share.size <= 0][:1]


def _amount(node: Node, resource: str) -> str:
    total = node.totals.get(resource)
    if total is None:
        return ""
    free, offered = words.amount(total.free, resource), words.amount(total.allocatable, resource)
    return f' data-free="{escape(f"{free} of {offered} free")}"'


def _paths(
    node: Node, zones: list[tuple[Zone, Share]], resource: str, wide: int, gap: int, across: int
) -> Iterator[str]:
    used, reserved, stranded, frames, absent = list[str](), list[str](), list[str](), list[str](), list[str]()
    for place, (zone, share) in enumerate(zones):
        x, bottom = EDGE + place * (wide + gap), EDGE + MARK + HEIGHT
        if share.size <= 0:
            absent.append(f"M{x} {bottom - HEIGHT}h{wide}v{HEIGHT}h-{wide}z")
            continue
        frames.append(f"M{x} {bottom - HEIGHT}h{wide}v{HEIGHT}h-{wide}z")
        kept = _part(share.size - share.allocatable, share.size)
        held = _part(share.allocatable - share.free, share.size)
        if kept:
            reserved.append(f"M{x} {bottom}v-{kept}h{wide}v{kept}z")
        if held:
            used.append(f"M{x} {bottom - kept}v-{held}h{wide}v{held}z")
        if resource in zone.stranded and share.free:
            left = HEIGHT - kept - held
            stranded.append(f"M{x} {bottom - HEIGHT}h{wide}v{left}h-{wide}z")
    if not zones:
        absent.append(f"M{EDGE} {EDGE + MARK}h{across}v{HEIGHT}h-{across}z")
    for kind, parts in (("n", absent), ("f", frames), ("r", reserved), ("u", used), ("s", stranded)):
        if parts:
            yield f'<path class="{kind}" d="{"".join(parts)}"/>'
    if node.report.state in MARKS:
        drawn = MARKS[node.report.state].format(x=EDGE)
        yield f'<path class="m {node.report.state}" d="{drawn}"/>'


def _part(amount: int, size: int) -> int:
    """In pixels: something is never nothing, and less than everything is never everything."""
    if amount <= 0:
        return 0
    return HEIGHT if amount >= size else min(max(1, round(amount * HEIGHT / size)), HEIGHT - 1)


def describe(node: Node, resource: str) -> str:
    """The glyph in words."""
    parts = [node.name]
    if node.status != "Ready":
        parts.append(node.status)
    total = node.totals.get(resource)
    if total is not None:
        of = f"{words.amount(total.free, resource)} of {words.amount(total.allocatable, resource)}"
        parts.append(f"{of} {words.short_resource(resource)} free")
    for zone in node.zones:
        if (share := zone.shares.get(resource)) is not None:
            free = f"zone {zone.id}: {words.amount(share.free, resource)}"
            parts.append(f"{free} stranded" if resource in zone.stranded and share.free else free)
    if node.report.state in SAYS:
        parts.append(SAYS[node.report.state])
    return "; ".join(parts)
