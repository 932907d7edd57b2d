"""Draws runs of a replay as a table, and writes them as CSV; the `plan` commands call it."""

from __future__ import annotations

import csv as writer
import io
from collections.abc import Sequence
from statistics import fmean

from msgspec import structs

from numalign.cli.display.formats import Page
from numalign.plan.replay import Run


def table(runs: Sequence[Run]) -> str:
    """By list, policy and zones: the means over the seeds."""
    page = Page()
    drawn = page.table("LIST", "POLICY", "ZONES", "SEEDS", "AT 100 %", "AT 130 %", "FREE", "REJECTED", "STRANDED", "S")
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
        )
    page.add(drawn)
    return page.text()


def csv(runs: Sequence[Run]) -> str:
    lines = io.StringIO()
    rows = writer.DictWriter(lines, Run.__struct_fields__, lineterminator="\n")
    rows.writeheader()
    rows.writerows(structs.asdict(run) for run in runs)
    return lines.getvalue().rstrip("\n")
