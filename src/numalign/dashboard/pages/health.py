"""*Health*: what is wrong, and what the scheduler counts about itself.

Reports are judged on every cluster; counts are a scheduler's own. The rate of bindings is that of the time during which
the page was looked at, because a moment has only totals."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

from markupsafe import Markup
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from numalign.dashboard import rendering
from numalign.dashboard.drawing import charts
from numalign.dashboard.moment import Moment, Node, ReportState

MOST_SAMPLES: Final = 300
MOST_LISTED: Final = 50
AGES: Final = ((60, "up to 1m"), (600, "up to 10m"), (3600, "up to 1h"), (float("inf"), "older"))
UNKNOWN: Final = "unknown"
STATES: Final = {
    ReportState.GOOD: "complete",
    ReportState.ASSUMED: "incomplete: some things are assumed",
    ReportState.MISSING: "missing",
    ReportState.STALE: "not renewed",
    ReportState.DIVERGED: "contradicts the predictions",
}


class Sample(Struct, frozen=True):
    at: float
    bound: float


class Line(Struct, frozen=True):
    """A number with its bar."""

    name: str
    number: float
    drawing: Markup


def lines(counts: Mapping[str, float]) -> list[Line]:
    most = max(counts.values(), default=0)
    return [Line(name, number, charts.bar(number, most)) for name, number in counts.items()]


def _states(shown: Moment) -> dict[str, float]:
    found = Counter(node.report.state for node in shown.nodes.values())
    return {text: found[state] for state, text in STATES.items() if found[state]}


def _ages(shown: Moment) -> dict[str, float]:
    found = Counter(_age(node, shown.at) for node in shown.nodes.values() if node.report.state != ReportState.MISSING)
    return {text: found[text] for text in (*(text for _, text in AGES), UNKNOWN) if found[text]}


def _age(node: Node, at: float) -> str:
    if node.report.written is None:
        return UNKNOWN
    age = at - node.report.written
    return next(text for most, text in AGES if age <= most)


def _doubtful(shown: Moment) -> list[Node]:
    """The worst first."""
    order = list(ReportState)
    found = [node for node in shown.nodes.values() if node.report.state != ReportState.GOOD]
    return sorted(found, key=lambda node: (order.index(node.report.state), node.name))


def _rate(samples: Sequence[Sample]) -> tuple[float, Markup] | None:
    """Bindings per second, and how they went, empty if there were none; None: it is too early to say."""
    points = [(after.at, (after.bound - before.bound) / (after.at - before.at)) for before, after in pairwise(samples)]
    if not points:
        return None
    whole = (samples[-1].bound - samples[0].bound) / (samples[-1].at - samples[0].at)
    most = max(rate for _, rate in points)
    return whole, charts.line(points, f"bindings per second, at most {most:.3g}") if most > 0 else Markup("")


def _samples(request: Request, shown: Moment) -> Sequence[Sample]:
    """What was seen so far; a scheduler that was restarted counts from 0 again."""
    kept: deque[Sample] | None = getattr(request.app.state, "samples", None)
    if kept is None:
        kept = request.app.state.samples = deque(maxlen=MOST_SAMPLES)
    if shown.health is not None and (not kept or shown.at > kept[-1].at):
        if kept and shown.health.bound < kept[-1].bound:
            kept.clear()
        kept.append(Sample(shown.at, shown.health.bound))
    return kept


async def _page(request: Request) -> Response:
    shown = await rendering.moment(request)
    health = shown.health
    queue = dict(health.queue) if health is not None else Counter(pod.queue or "waiting" for pod in shown.waiting)
    doubtful = _doubtful(shown)
    return rendering.page(
        request,
        "health",
        shown,
        queue=lines(queue),
        states=lines(_states(shown)),
        ages=lines(_ages(shown)),
        rejections=lines(health.rejections) if health is not None else [],
        divergences=lines(health.divergences) if health is not None else [],
        skipped=lines(health.skipped) if health is not None else [],
        rate=_rate(_samples(request, shown)),
        doubtful=doubtful[:MOST_LISTED],
        more=len(doubtful) - MOST_LISTED,
    )


ROUTES: Final = [Route("/health", _page)]
