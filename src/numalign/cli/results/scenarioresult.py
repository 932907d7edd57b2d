"""The result of `numalign scenario run`, as JSON and as text: the numbers, what was expected, and what failed.

`of` is called with the history of a run. `text` draws the result; the JSON form has the same content."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from numalign.cli.display import formats
from numalign.simulator.scenarios import durations, judge
from numalign.simulator.scenarios.judge import MEASURES, SECONDS
from numalign.simulator.scenarios.play import PlayResult
from numalign.simulator.scenarios.scenario import ANY_SCHEDULER, Scenario


class ExpectationResult(Struct, frozen=True):
    expected: str
    found: float
    held: bool


class ScenarioResult(Struct, frozen=True, kw_only=True):
    scenario: str
    scheduler: str
    measures: dict[str, float]
    longest_wait: judge.LongestWait | None
    expectations: list[ExpectationResult]
    violations: list[str]
    """Expectations that failed, and everything else that makes the run fail."""


def of(story: Scenario, scheduler: str, played: PlayResult) -> ScenarioResult:
    measures = judge.measures(played.lines, scheduler)
    expected = judge.expected(story, scheduler)
    return ScenarioResult(
        scenario=story.name,
        scheduler=scheduler,
        measures=measures,
        longest_wait=judge.longest_wait(played.lines),
        expectations=[
            ExpectationResult(str(each), measures[each.measure], not judge.missed([each], measures))
            for each in expected
        ],
        violations=[str(each) for each in judge.failures(story, scheduler, played.lines, played.refused)],
    )


def text(story: Scenario, result: ScenarioResult) -> str:
    nodes = f"{len(story.nodes)} node{'s' if len(story.nodes) > 1 else ''}"
    head = f"{story.name}: {story.title}", f"{nodes}, {durations.text(story.lasts)}, by {result.scheduler}", ""
    page = formats.Page()
    for line in (*head, *_measures(result.measures), "", *_notes(story, result), *_verdict(result)):
        page.add(line)
    return page.text()


def _measures(measures: dict[str, float]) -> Iterator[str]:
    numbers = {name: f"{value:,.1f}" if name in SECONDS else f"{value:,.0f}" for name, value in measures.items()}
    name_width, width = max(map(len, numbers)), max(map(len, numbers.values()))
    for name, number in numbers.items():
        unit = "s" if name in SECONDS else " "
        yield f"{name:<{name_width}}  {number:>{width}} {unit}  {MEASURES[name]}"


def _notes(story: Scenario, result: ScenarioResult) -> Iterator[str]:
    """Why a pod waited, and what the scenario's author says about the numbers."""
    longest = result.longest_wait
    if longest is not None and longest.reason:
        yield f"{longest.pod} waited {longest.seconds:,.1f} s; last reason: {longest.reason}"
    for name in (ANY_SCHEDULER, result.scheduler):
        if name in story.notes:
            yield f"note: {' '.join(story.notes[name].split())}"
    if (longest is not None and longest.reason) or {ANY_SCHEDULER, result.scheduler} & story.notes.keys():
        yield ""


def _verdict(result: ScenarioResult) -> Iterator[str]:
    yield from (f"held: {each.expected}" for each in result.expectations if each.held)
    yield from (f"FAILED: {each}" for each in result.violations)
    if not result.violations:
        yield "all expectations hold"
