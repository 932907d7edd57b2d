"""Draws one resource of one zone as a bar: what pods hold, what is free, and what the kubelet reserves.

The page of a node calls `holdings` and `bar`. Lengths are proportional; a part that would be too thin to see is
widened. Devices are drawn one by one where they are few. Amounts that are predicted are hatched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from numalign.api.objects import resourcenames
from numalign.dashboard import words
from numalign.dashboard.details import Held, NodePod, Part
from numalign.dashboard.drawing.boxes import Box, Drawing, Marks

WIDTH: Final = 344.0
HEIGHT: Final = 20.0
THINNEST: Final = 5.0
MOST_PIECES: Final = 24
"""Devices that are drawn one by one."""
LETTER: Final = 9.0
"""The width that letters need."""


class Holding(Struct, frozen=True, kw_only=True):
    """What one pod holds of a part. An empty pod: it is not known who holds it."""

    pod: str
    amount: int
    sure: bool = True
    """Whether the report shows it there."""
    among: tuple[str, ...] = ()
    """Pods that hold amounts in several zones, of which this is a part."""


def holdings(part: Part, pods: Sequence[NodePod]) -> list[Holding]:
    """Who holds what is not free. The amounts and what is free add up to what is allocatable."""
    left = part.allocatable - part.free
    found = []
    for pod in pods:
        amount = sum(
            each.amount
            for each in pod.holds
            if each.resource == part.resource and each.zones == part.zones and each.certain
        )
        amount = min(amount, left)
        if amount > 0:
            sure = pod.source == "observed" and pod.arrived
            found.append(Holding(pod=pod.name, amount=amount, sure=sure))
            left -= amount
    if left <= 0:
        return found
    spread = [pod.name for pod in pods if any(_may_be_in(part, each) for each in pod.holds)]
    return [*found, Holding(pod=spread[0] if len(spread) == 1 else "", amount=left, sure=False, among=tuple(spread))]


def _may_be_in(part: Part, held: Held) -> bool:
    """Whether it is in this zone, among others, or perhaps."""
    is_wider = held.zones != part.zones or not held.certain
    return held.resource == part.resource and is_wider and set(part.zones) <= set(held.zones)


class _Piece(Struct, frozen=True):
    amount: int
    kind: str
    text: str
    title: str
    hatched: bool = False


def bar(part: Part, held: Sequence[Holding], marks: Marks) -> Drawing:
    """`held`: as `holdings` gives it."""
    pieces = list(_pieces(part, held, marks))
    total = sum(each.amount for each in pieces)
    free = words.amount(part.free, part.resource)
    label = f"{part.resource}: {free} free of {words.amount(part.allocatable, part.resource)}; " + ", ".join(
        each.title for each in pieces
    )
    widths = _widths([each.amount for each in pieces], WIDTH)
    single = total if not resourcenames.is_bytes(part.resource) and part.resource != resourcenames.CPU else 0
    found, x = [], 0.0
    for piece, width in zip(pieces, widths, strict=True):
        count = piece.amount if 0 < single <= MOST_PIECES else 1
        for _ in range(count):
            found.append(
                Box(
                    x=x,
                    y=0.0,
                    width=width / count,
                    height=HEIGHT,
                    kind=f"{piece.kind} piece",
                    text=piece.text if width / count >= LETTER * max(1, len(piece.text)) * 0.8 else "",
                    title=piece.title,
                    hatched=piece.hatched,
                )
            )
            x += width / count
    return Drawing(label, WIDTH, HEIGHT, tuple(found))


def _pieces(part: Part, held: Sequence[Holding], marks: Marks) -> Iterator[_Piece]:
    for each in held:
        amount = words.amount(each.amount, part.resource)
        if not each.pod:
            whose = f"of pods {', '.join(each.among)}" if each.among else "by a pod that is not known"
            yield _Piece(each.amount, "taken", "?", f"{amount} held {whose}", bool(each.among))
        elif each.among:
            said = f"{amount} of what pod {each.pod} holds in several zones"
            yield _Piece(each.amount, marks.kind(each.pod), marks.letters(each.pod), said, True)
        else:
            said = f"{amount} held by pod {each.pod}{'' if each.sure else ' (predicted)'}"
            yield _Piece(each.amount, marks.kind(each.pod), marks.letters(each.pod), said, not each.sure)
    if part.free:
        yield _Piece(part.free, "free", "", f"{words.amount(part.free, part.resource)} free")
    rest = part.size - part.allocatable
    if rest > 0:
        yield _Piece(rest, "reserved", "", f"{words.amount(rest, part.resource)} reserved or not usable", True)


def _widths(amounts: Sequence[int], width: float) -> list[float]:
    """Proportional, each at least THINNEST while they all fit."""
    total = sum(amounts)
    if not total:
        return [0.0 for _ in amounts]
    least = min(THINNEST, width / len(amounts))
    spare = width - least * len(amounts)
    return [least + spare * amount / total for amount in amounts]
