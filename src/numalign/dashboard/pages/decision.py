"""*Decisions*: the latest attempts to place a pod, and one of them: its scores, its story, and the same once more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from numalign.dashboard import rendering
from numalign.dashboard.details import Score
from numalign.dashboard.moment import Decision, Moment

MOST: Final = 200
"""Decisions on one page."""
LONGEST: Final = 512
"""Of a name to look for."""
BEFORE_SCORES: Final = "a nomination, and how certain it is that the kubelet admits the pod, come before scores"


class ScoreTable(Struct, frozen=True):
    """Scores side by side: a column for each plugin that tells nodes apart, and then the others."""

    plugins: tuple[str, ...]
    same: tuple[tuple[str, int], ...]
    """Plugins that gave all nodes the same."""
    scores: tuple[Score, ...]
    most: int
    """The best total."""


def score_table(scores: Sequence[Score]) -> ScoreTable:
    names = list(dict.fromkeys(name for each in scores for name in each.plugins))
    said = {name: {each.plugins.get(name, 0) for each in scores} for name in names}
    telling = [name for name in names if len(said[name]) > 1]
    return ScoreTable(
        plugins=tuple(telling),
        same=tuple((name, min(said[name])) for name in names if len(said[name]) == 1),
        scores=tuple(scores),
        most=max((each.total for each in scores), default=0),
    )


def why(chosen: str, scores: Sequence[Score]) -> str:
    """Why this node, in one sentence; empty: nothing is known of others."""
    mine = next((each for each in scores if each.node == chosen), None)
    others = [each for each in scores if each.node != chosen]
    if mine is None:
        return ""
    if not others:
        return f"{chosen} was the only node that was scored."
    best = max(others, key=lambda each: each.total)
    if best.total > mine.total:
        return f"{best.node} scored more, {best.total} against {mine.total}, but {BEFORE_SCORES}."
    if best.total == mine.total:
        equal = sum(each.total == mine.total for each in others)
        same = f"as {equal} other node{'s' * (equal > 1)} did"
        return f"{chosen} scored {mine.total}, {same}; chance decided among equals."
    differences = {
        name: mine.plugins.get(name, 0) - best.plugins.get(name, 0) for name in {**mine.plugins, **best.plugins}
    }
    ahead = [f"{name} +{gain}" for name, gain in sorted(differences.items(), key=lambda each: -each[1]) if gain > 0][:3]
    return f"{chosen} scored {mine.total}, the next best {best.node} {best.total}: {', '.join(ahead)}."


def looked_for(shown: Moment, name: str) -> list[Decision]:
    return [each for each in shown.decisions if name in each.pod or name in each.node][:MOST]


async def _list(request: Request) -> Response:
    shown = await rendering.moment(request)
    name = request.query_params.get("name", "")[:LONGEST]
    found = looked_for(shown, name)
    return rendering.page(request, "decisions", shown, found=found, wanted=name, known=len(shown.decisions))


async def _one(request: Request) -> Response:
    shown = await rendering.moment(request)
    key, at, source = request.path_params["key"], rendering.asked_time(request), rendering.source(request)
    found = await source.decision(key, at)
    if found is None:
        raise HTTPException(404, "There is no such decision any more")
    again = await source.repeated(key, at) if "repeat" in request.query_params and found.repeats else None
    scores = again.scores if again is not None and again.scores else found.scores
    chosen = found.decision.node
    return rendering.page(
        request,
        "decision",
        shown,
        here="decisions",
        found=found,
        decision=found.decision,
        again=again,
        table=score_table(scores),
        why=why(chosen, scores) if chosen else "",
        key=key,
    )


ROUTES: Final = [Route("/decisions", _list), Route("/decisions/{key:path}", _one)]
