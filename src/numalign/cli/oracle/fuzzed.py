"""The result of a fuzzing campaign as text."""

from __future__ import annotations

from pathlib import Path

from numalign.cli import drawing
from numalign.oracle.fuzz import Summary
from numalign.oracle.harness.ask import Judged

COLUMNS = ("agreed", "deliberate", "undecided", "unanswered", "differs")


def table(summary: Summary) -> str:
    """Findings by family; the last line is always the total."""
    page = drawing.Page()
    drawn = page.table("family", *COLUMNS)
    for family in sorted({family for family, _ in summary.counts}):
        drawn.add_row(family, *(str(summary.counts[family, finding]) for finding in COLUMNS))
    page.add(drawn)
    if summary.asked > summary.compared:
        page.add(f"{summary.asked} questions")
    page.add(f"{summary.compared} cases, {summary.disagreements} disagreements")
    return page.text()


def disagreement(judged: Judged, saved: Path) -> str:
    lines = [f"{judged.family} {judged.answer.get('id', '')}  (saved as {saved})"]
    for difference in judged.differences[:5]:
        lines += [
            f"  {difference.path}",
            f"    real   {difference.expected}",
            f"    model  {difference.answered}",
        ]
    return "\n".join(lines)
