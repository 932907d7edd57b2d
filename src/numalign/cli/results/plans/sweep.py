"""Draws the runs of a sweep: by point, the means over the seeds."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from numalign.cli.display.formats import Page
from numalign.plan.sweep import grid
from numalign.plan.sweep.runner import FinishedRun


def text(rows: Sequence[FinishedRun]) -> str:
    page = Page()
    table = page.table("POINT", "SEEDS", "RUN", "LOST", "WAIT", "REFUSED", "IF BLIND", "STRANDED", "FREE ZONES")
    alike: dict[str, list[FinishedRun]] = {}
    for row in rows:
        alike.setdefault(grid.label(row.point), []).append(row)
    for label, own in alike.items():
        found = [row.figures for row in own if row.figures is not None]
        if not found:
            table.add_row(label, str(len(own)), own[0].problem)
            continue
        numbers = (
            fmean(each.running for each in found),
            fmean(each.lost for each in found),
            fmean(each.waiting for each in found),
            fmean(each.refused for each in found),
            fmean(each.rejected_if_blind for each in found),
            fmean(sum(each.stranded.values()) for each in found),
            fmean(sum(each.free_zones.values()) for each in found),
        )
        table.add_row(label, str(len(own)), *(f"{number:,.1f}" for number in numbers))
    page.add(table)
    return page.text()
