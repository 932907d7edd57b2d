"""Draws runs of a replay as a table, and writes them as CSV; the `plan` commands call it."""

from __future__ import annotations

import csv as writer
import io
from collections.abc import Sequence
from statistics import fmean

from numalign.cli.display.formats import Page
from numalign.plan.agreement import Agreement
from numalign.plan.replay import Run

ADDED = "bindings", "contradictions"
"""In place of what kubelets did, in numbers; empty where none were asked."""
COLUMNS = (*(name for name in Run.__struct_fields__ if name != "kubelets"), *ADDED)


def table(runs: Sequence[Run]) -> str:
    """By list, policy and zones: the means over the seeds."""
    page, asked = Page(), [run for run in runs if run.kubelets is not None]
    more = ("BOUND", "DIFFER") if asked else ()
    columns = ("LIST", "POLICY", "ZONES", "SEEDS", "AT 100 %", "AT 130 %", "FREE", "REJECTED", "STRANDED", "S")
    drawn = page.table(*columns, *more)
    alike: dict[tuple[str, str, int], list[Run]] = {}
    for run in runs:
        alike.setdefault((run.list, run.policy, run.zones), []).append(run)
    for (name, policy, zones), own in alike.items():

        def mean(field: str, own: Sequence[Run] = own) -> float:
            return fmean(getattr(run, field) for run in own)

        drawn.add_row(
            name,
            policy,
            str(zones),
            str(len(own)),
            f"{mean('allocated_100'):.2f}",
            f"{mean('allocated_130'):.2f}",
            f"{mean('unallocated_gpus'):.0f}",
            f"{mean('rejected'):.0f}",
            f"{mean('stranded_gpus'):.0f}",
            f"{mean('seconds'):.2f}",
            *_answers([run.kubelets for run in own if run.kubelets is not None]),
        )
    page.add(drawn)
    return page.text()


def _answers(found: Sequence[Agreement]) -> tuple[str, ...]:
    """How many bindings were put to kubelets, and how many of these they contradicted."""
    if not found:
        return ()
    return f"{sum(each.bindings for each in found):,}", f"{sum(len(each.contradictions) for each in found):,}"


def csv(runs: Sequence[Run]) -> str:
    lines = io.StringIO()
    rows = writer.DictWriter(lines, COLUMNS, lineterminator="\n")
    rows.writeheader()
    rows.writerows(_row(run) for run in runs)
    return lines.getvalue().rstrip("\n")


def _row(run: Run) -> dict[str, object]:
    kubelets = run.kubelets
    added = dict(zip(ADDED, (kubelets.bindings, len(kubelets.contradictions)), strict=True)) if kubelets else {}
    return {name: getattr(run, name) for name in COLUMNS if name not in ADDED} | added
