"""Draws what `numalign record` prints: segments, attempts, repeated decisions and comparisons."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import msgspec

from numalign.cli.display.formats import Page
from numalign.cli.results import schedulerpages
from numalign.scheduler.playback.recordings import RecordedAttempt, Repetition, SegmentSummary
from numalign.scheduler.record.segments import SUFFIX, SegmentFile, stamp

MOST_SHOWN = 50
"""Decisions that differ and are listed one by one."""


def segments(found: Sequence[SegmentSummary]) -> str:
    page = Page()
    table = page.table("SEGMENT", "BEGUN", "ENDED", "DECISIONS", "ENTRIES", "SIZE")
    for each in found:
        counts = f"{each.decisions:,}", f"{each.entries:,}", _size(each.size)
        table.add_row(each.segment.removesuffix(SUFFIX), _second(each.begun), _second(each.ended), *counts)
    page.add(table)
    return page.text()


def attempts(found: Sequence[RecordedAttempt]) -> str:
    page = Page()
    if not found:
        return "No attempts found."
    table = page.table("TIME", "POD", "TRIED", "RESULT")
    for each in found:
        record = each.record
        result = schedulerpages.outcome(record.node, record.zones, record.message)
        table.add_row(_time(each.at), record.pod, str(record.attempt), result)
    page.add(table)
    return page.text()


def repeated(found: Sequence[Repetition], *, with_each: bool) -> str:
    """`with_each`: every decision in full; otherwise only those that differ."""
    page = Page()
    for each in found:
        if each.played.again is not None and (with_each or each.differs):
            page.add(_time(each.at))
            for line in schedulerpages.replay_text(each.played.again).splitlines():
                page.add(line)
            page.add()
    again = [each for each in found if each.played.again is not None]
    differing = sum(each.differs for each in again)
    page.add(f"{_decisions(len(again))} repeated: {len(again) - differing:,} the same, {differing:,} different")
    if len(found) > len(again):
        page.add(f"{_decisions(len(found) - len(again))} not repeated: no node was sought")
    return page.text()


def compared(found: Sequence[Repetition]) -> str:
    page = Page()
    again = [each for each in found if each.played.again is not None]
    differing = [each for each in again if _node(each) != each.played.record.node]
    if differing:
        table = page.table("TIME", "POD", "WAS", "WOULD BE")
        for each in differing[:MOST_SHOWN]:
            record = each.played.record
            table.add_row(_time(each.at), record.pod, record.node or "waits", _node(each) or "waits")
        page.add(table)
        if len(differing) > MOST_SHOWN:
            page.add(f"... and {len(differing) - MOST_SHOWN:,} more; -o json lists all")
        page.add()
    placed = sum(1 for each in differing if not each.played.record.node)
    waits = sum(1 for each in differing if not _node(each))
    page.add(
        f"{_decisions(len(again))} compared: {len(again) - len(differing):,} on the same node,"
        f" {len(differing) - placed - waits:,} on another node, {placed:,} placed that waited,"
        f" {waits:,} waiting that were placed"
    )
    return page.text()


def plain(found: Iterable[Repetition]) -> list[dict[str, Any]]:
    return [
        {
            "at": stamp(each.at),
            "recorded": msgspec.to_builtins(each.played.record),
            "again": schedulerpages.plain(each.played.again) if each.played.again is not None else None,
            "same": None if each.played.again is None else not each.differs,
        }
        for each in found
    ]


def trimmed(gone: Sequence[SegmentFile]) -> str:
    if not gone:
        return "No segment deleted."
    size = _size(sum(each.size for each in gone))
    return f"{len(gone)} {'segment' if len(gone) == 1 else 'segments'} deleted, {size}"


def _node(each: Repetition) -> str:
    return each.played.again.node if each.played.again is not None else ""


def _decisions(count: int) -> str:
    return f"{count:,} {'decision' if count == 1 else 'decisions'}"


def _time(moment: datetime) -> str:
    return stamp(moment)


def _second(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _size(count: int) -> str:
    return f"{count / (1 << 20):,.1f}Mi" if count >= 1 << 20 else f"{count / 1024:,.1f}Ki"
