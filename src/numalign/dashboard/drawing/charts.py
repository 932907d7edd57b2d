"""Draws the small charts of the page *Health*: bars beside numbers, and a line of rates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from markupsafe import Markup

WIDE: Final = 120
HIGH: Final = 10
LINE_WIDE: Final = 240
LINE_HIGH: Final = 48


def bar(number: float, most: float) -> Markup:
    """The number as a part of the largest one beside it."""
    length = round(WIDE * number / most, 1) if most > 0 else 0
    return Markup(
        f'<svg class="bar-chart" viewBox="0 0 {WIDE} {HIGH}" width="{WIDE}" height="{HIGH}" aria-hidden="true">'
        f'<rect class="u" width="{length:g}" height="{HIGH}"/></svg>'
    )


def line(points: Sequence[tuple[float, float]], label: str) -> Markup:
    """Values by time, from 0 up to the largest."""
    begin, end = points[0][0], points[-1][0]
    most = max(value for _, value in points) or 1
    path = " ".join(
        f"{LINE_WIDE * (at - begin) / ((end - begin) or 1):.1f},{LINE_HIGH - 2 - (LINE_HIGH - 4) * value / most:.1f}"
        for at, value in points
    )
    return Markup(
        '<svg class="line-chart" viewBox="0 0 {} {}" width="{}" height="{}" role="img" aria-label="{}">'
        '<polyline points="{}"/></svg>'
    ).format(LINE_WIDE, LINE_HIGH, LINE_WIDE, LINE_HIGH, label, path)
