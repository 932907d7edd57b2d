"""The result of asking a real kubelet about recorded cases, as a table or as data.

`oracle` passes every case. The table shows the first cases with another answer and the model's judgement, a line per
family, and last the count that scripts look for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec import Struct, UnsetType

from numalign.api import errors
from numalign.cli.devkit import replays
from numalign.cli.display import formats
from numalign.oracle.kubelet.replay import ReaskedCase

MOST_PER_CASE = 5


class ReaskTally(Struct):
    """Cases of one family. A mismatch is a case that the real kubelet answers differently from the recording."""

    cases: int = 0
    unanswered: int = 0
    mismatches: int = 0
    model_differs: int = 0

    def add(self, each: ReaskedCase) -> None:
        self.cases += 1
        self.unanswered += not each.is_answered
        self.mismatches += bool(each.differences)
        self.model_differs += each.is_answered and not each.model_agrees


class ListedChange(Struct, frozen=True):
    """One difference between the recording and the real answer. A side without a value is omitted."""

    family: str
    case: str
    where: str
    path: str
    recorded: Any | UnsetType
    real: Any | UnsetType
    model: str


class ReaskResult(Struct, frozen=True):
    against: str
    cases: int
    unanswered: int
    mismatches: int
    model_differs: int
    families: dict[str, ReaskTally]
    differences: tuple[ListedChange, ...]


def result(asked: Sequence[ReaskedCase], against: str) -> ReaskResult:
    total = _tally(asked)
    differences = tuple(listed for each in asked for listed in _listed(each))
    return ReaskResult(
        against, total.cases, total.unanswered, total.mismatches, total.model_differs, _by_family(asked), differences
    )


def agreed(asked: Iterable[ReaskedCase]) -> bool:
    """Whether the real kubelet answers as recorded, and the model as the real kubelet."""
    return all(map(_is_as_it_should_be, asked))


def _is_as_it_should_be(each: ReaskedCase) -> bool:
    return not each.differences and (each.model_agrees or not each.is_answered)


def table(asked: Sequence[ReaskedCase], against: str, show: int) -> str:
    """The first `show` notable cases, the families, the count."""
    return "\n".join([*_notable(asked, against, show), _families(asked), _count(_tally(asked))])


def _notable(asked: Iterable[ReaskedCase], against: str, show: int) -> Iterator[str]:
    notable = [each for each in asked if not _is_as_it_should_be(each)]
    for each in notable[:show]:
        yield from _shown(each, against)
        yield ""
    if show and len(notable) > show:
        yield f"... and {len(notable) - show} more cases"
        yield ""


def _families(asked: Iterable[ReaskedCase]) -> str:
    page = formats.Page()
    drawn = page.table("family", "cases", "unanswered", "answered otherwise", "model differs")
    for family, tally in _by_family(asked).items():
        numbers = (tally.cases, tally.unanswered, tally.mismatches, tally.model_differs)
        drawn.add_row(family, *map(str, numbers))
    page.add(drawn)
    return page.text()


def _count(total: ReaskTally) -> str:
    return f"{total.cases - total.unanswered} cases, {total.mismatches} mismatches"


def _shown(each: ReaskedCase, against: str) -> Iterator[str]:
    vector = each.vector
    yield f"{vector.family.name} {errors.clipped(vector.id)}  ({vector.where})"
    for difference in each.differences[:MOST_PER_CASE]:
        yield f"  {difference.path or replays.NO_ANSWER}"
        yield f"    recorded  {replays.brief(difference.expected)}"
        yield f"    real      {replays.brief(difference.answered)}"
    if len(each.differences) > MOST_PER_CASE:
        yield f"  ... and {len(each.differences) - MOST_PER_CASE} more differences"
    yield f"  the model of {against}: {_word(each)}"


def _word(each: ReaskedCase) -> str:
    """The model's judgement of the real answer."""
    if each.model_agrees:
        return "the same as the real kubelet"
    first = each.judged.differences[0]
    return f"{each.judged.finding}, {first.path or replays.NO_ANSWER}: {replays.brief(first.answered)}"


def _listed(each: ReaskedCase) -> Iterator[ListedChange]:
    for difference in each.differences:
        yield ListedChange(
            each.vector.family.name,
            each.vector.id,
            each.vector.where,
            difference.path,
            difference.expected,
            difference.answered,
            each.judged.finding,
        )


def _by_family(asked: Iterable[ReaskedCase]) -> dict[str, ReaskTally]:
    families: dict[str, ReaskTally] = {}
    for each in asked:
        families.setdefault(each.vector.family.name, ReaskTally()).add(each)
    return families


def _tally(asked: Iterable[ReaskedCase]) -> ReaskTally:
    total = ReaskTally()
    for each in asked:
        total.add(each)
    return total
