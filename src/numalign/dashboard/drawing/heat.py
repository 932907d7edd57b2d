"""What each cell of the heat map of waiting pods shows: a word or an amount, a shade, and the sentence behind it.

The page of waiting pods calls `cell`. A cell can be read without colours: it says what is short, by how much, and in
which zone."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from numalign.dashboard import words
from numalign.dashboard.details import Answer, Lack, NodeAnswer

SHADES: Final = 4
"""Steps from little to everything that is short."""
MARKS: Final = {
    Answer.FITS: "fits",
    Answer.MAYBE: "maybe",
    Answer.RULE: "rule",
    Answer.NEVER: "never",
    Answer.SHORT: "short",
}
MEANINGS: Final = {
    Answer.FITS: "the pod would be placed there now",
    Answer.MAYBE: "it may fit: that depends on pods that have not arrived, or on what the report leaves out",
    Answer.SHORT: "so much is short in the zone, or the zones, that come closest",
    Answer.RULE: "a taint, a cordon, a selector or another rule keeps the pod away",
    Answer.NEVER: "the node is too small even when empty",
}


class Cell(Struct, frozen=True, kw_only=True):
    mark: str
    """What is written first."""
    where: str = ""
    """Written below it: the zone."""
    shade: str
    """The class."""
    title: str


def cell(found: NodeAnswer) -> Cell:
    worst = found.worst if found.answer in (Answer.SHORT, Answer.NEVER) else None
    title = found.why or MEANINGS[found.answer]
    if worst is None:
        return Cell(mark=MARKS[found.answer], shade=_plain(found.answer), title=title)
    mark = f"−{short(worst)}"
    if found.answer is Answer.NEVER:
        return Cell(mark=mark, where="never", shade="heat-never", title=title)
    return Cell(mark=mark, where=where(worst), shade=f"heat-{_shade(worst)}", title=title)


def short(lack: Lack) -> str:
    """4 gpu, 12 cpu, 6Gi memory: by how much the best zones miss the need."""
    return f"{words.amount_up(lack.short, lack.resource)} {words.short_resource(lack.resource)}"


def where(lack: Lack) -> str:
    """zone 1: the zone that lacks least; for more zones than one, how many."""
    closest = lack.closest
    if not lack.in_zones or closest is None:
        return "node" if not lack.in_zones else f"{lack.in_zones} zones" if lack.in_zones > 1 else "best zone"
    return f"zone {closest.zone}" if lack.in_zones == 1 else f"best {lack.in_zones} zones"


def _shade(lack: Lack) -> int:
    return min(SHADES, 1 + int(SHADES * lack.short / lack.need * 0.999))


def _plain(answer: Answer) -> str:
    known = {Answer.FITS: "heat-fits", Answer.MAYBE: "heat-maybe", Answer.RULE: "heat-rule", Answer.NEVER: "heat-never"}
    return known.get(answer, "heat-2")
