"""Draws a `WhatIf`: a table of differences, and who loses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from numalign.cli.display.formats import INDENT, Page
from numalign.plan.questions.whatif import Figures, WhatIf

WORDS = {
    "nodes": "nodes",
    "running": "pods that run in the end",
    "refused": "refused by their kubelet",
    "moved": "moved",
    "lost": "lost",
    "placed": "waited and find a node",
    "waiting": "still wait",
    "rejected_if_blind": "rejections if blind",
}
MOST_NODES = 3


def text(found: WhatIf) -> str:
    page = Page()
    table = page.table("", "NOW", "THEN", "DIFFERENCE")
    for words, now, then in _pairs(found):
        difference = then - now
        table.add_row(words, f"{now:,g}", f"{then:,g}", f"{difference:+,g}" if difference else "")
    page.add(table)
    for why, names in found.unchanged.items():
        page.add()
        more = f" and {len(names) - MOST_NODES:,} more" if len(names) > MOST_NODES else ""
        page.add(f"not changed: {', '.join(names[:MOST_NODES])}{more}: {why}")
    if found.losers:
        page.add()
        losers = page.table("WHO LOSES", "PODS", "PRIORITY", "BECAUSE", "WHY IT FINDS NO NODE")
        for each in found.losers:
            losers.add_row(
                each.owner, f"{each.pods:,} of {each.of:,}", f"{each.priority}", each.because or "-", each.why
            )
        page.add(losers, indent=INDENT)
    return page.text()


def figures(found: Figures) -> Iterator[tuple[str, float]]:
    """Every number with its name."""
    for name in WORDS:
        yield name, getattr(found, name)
    for device, zones in found.free_zones.items():
        yield f"free zones of {device}", zones
    for device, count in found.stranded.items():
        yield f"stranded {device}", count
    for kind, count in found.capacity.items():
        yield f"room for more {kind}", count


def _pairs(found: WhatIf) -> Iterator[tuple[str, float, float]]:
    now, then = dict(figures(found.now)), dict(figures(found.then))
    for name in dict.fromkeys((*now, *then)):
        yield WORDS.get(name, name), now.get(name, 0), then.get(name, 0)


def lines(found: WhatIf) -> Iterator[Mapping[str, object]]:
    for words, now, then in _pairs(found):
        yield {"figure": words, "now": f"{now:g}", "then": f"{then:g}", "difference": f"{then - now:g}"}
