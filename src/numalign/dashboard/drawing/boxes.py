"""Boxes with text in them, and the SVG that shows them.

`machine` and `bars` lay out nodes as boxes; pages put `svg` of them into templates. Colours are classes, because pages
have no inline style, and a box that a colour marks has a text or a pattern as well. All text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from markupsafe import Markup, escape
from msgspec import Struct

BASELINE: Final = 0.36
"""How far below the middle of a box its text stands, in parts of the height of the text."""
WIDE: Final = 0.62
"""The width of a sign in parts of the height of the text."""


class Box(Struct, frozen=True, kw_only=True):
    x: float
    y: float
    width: float
    height: float
    kind: str
    """The classes of the box."""
    text: str = ""
    title: str = ""
    """What a pointer that rests on the box reads."""
    hatched: bool = False

    @property
    def right(self) -> float:
        return self.x + self.width

    @property
    def bottom(self) -> float:
        return self.y + self.height

    def holds(self, other: Box) -> bool:
        """Whether the other box is inside."""
        across = self.x <= other.x and other.right <= self.right
        return across and self.y <= other.y and other.bottom <= self.bottom


class Drawing(Struct, frozen=True):
    """Boxes, those further back first. `label` says in words what is drawn."""

    label: str
    width: float
    height: float
    boxes: tuple[Box, ...]


def svg(drawing: Drawing, name: str) -> Markup:
    """`name`: differs between the drawings of a page."""
    width, height = _number(drawing.width), _number(drawing.height)
    hatch = f"hatch-{escape(name)}"
    parts = [
        f'<svg class="drawing" role="img" aria-label="{escape(drawing.label)}" width="{width}" height="{height}"'
        f' viewBox="0 0 {width} {height}" preserveAspectRatio="xMinYMin meet">'
    ]
    if any(box.hatched for box in drawing.boxes):
        parts.append(
            f'<defs><pattern id="{hatch}" width="5" height="5" patternUnits="userSpaceOnUse"'
            ' patternTransform="rotate(45)"><path class="hatch" d="M0 0V5"/></pattern></defs>'
        )
    for box in drawing.boxes:
        parts += _drawn(box, hatch)
    # A node has thousands of boxes: each text is escaped where it is put in.
    return Markup("".join((*parts, "</svg>")))


def _drawn(box: Box, hatch: str) -> Iterator[str]:
    place = " ".join(
        f'{side}="{_number(length)}"'
        for side, length in (("x", box.x), ("y", box.y), ("width", box.width), ("height", box.height))
    )
    title = f"<title>{escape(box.title)}</title>" if box.title else ""
    yield f'<rect {place} class="{escape(box.kind)}">{title}</rect>'
    if box.hatched:
        yield f'<rect {place} class="over" fill="url(#{hatch})"/>'
    if box.text:
        size = min(box.height * 0.72, 11.0, box.width / (len(box.text) * WIDE))
        x, y = box.x + box.width / 2, box.y + box.height / 2 + size * BASELINE
        yield (
            f'<text x="{_number(x)}" y="{_number(y)}" font-size="{_number(size)}"'
            f' class="on-{escape(box.kind.split()[0])}">{escape(box.text)}</text>'
        )


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
COLOURS: Final = 12
"""Colours for pods; more pods share them, and differ by their letters."""


class Marks:
    """Which letters and which colour stand for which pod."""

    def __init__(self, pods: Iterable[str]) -> None:
        self._places = {pod: place for place, pod in enumerate(dict.fromkeys(pods))}

    def letters(self, pod: str) -> str:
        """A to Z, then AA to ZZ, then with numbers."""
        place = self._places.get(pod)
        if place is None:
            return "?"
        rounds, rest = divmod(place, len(LETTERS))
        if not rounds:
            return LETTERS[rest]
        return LETTERS[rounds - 1] + LETTERS[rest] if rounds <= len(LETTERS) else f"{LETTERS[rest]}{rounds}"

    def kind(self, pod: str) -> str:
        place = self._places.get(pod)
        return "taken" if place is None else f"pod pod-{place % COLOURS}"


def rows(count: int, most: int) -> Sequence[range]:
    """So many things in rows of at most `most`."""
    return [range(start, min(start + most, count)) for start in range(0, count, most)]
