"""Whether a failed call is sent again, and after how long.

`sending` asks after every failure; nothing here waits. A throttled call was not acted on, so that any verb may repeat
it; after anything else only calls that do no harm twice are repeated (kube-scheduler spec 4.9 and 7.4)."""

from typing import Final

from numalign.kube import errors
from numalign.kube.backoff import Exponential
from numalign.kube.request import Repeat, Request

MOST_THROTTLED: Final = 10
MOST_FAILED: Final = 4
JITTER: Final = 0.1
UNTOLD: Final = 1.0
"""Seconds to wait where a throttling server sends no Retry-After."""
LONGEST_PAUSE: Final = 60.0
BACKOFF: Final = Exponential(first=0.01, longest=LONGEST_PAUSE, factor=5.0)


def pause(request: Request, problem: errors.KubeError, tries: int, chance: float) -> float | None:
    """Seconds before the next attempt, or None to give up; `tries` counts the attempts made."""
    if isinstance(problem, errors.TooManyRequests):
        blocked = problem.has_cause(errors.DISRUPTION)
        return None if blocked or tries >= MOST_THROTTLED else min(problem.retry_after or UNTOLD, LONGEST_PAUSE)
    if tries >= MOST_FAILED or not _may_repeat(request, problem):
        return None
    if isinstance(problem, errors.Refusal) and problem.retry_after:
        return min(problem.retry_after, LONGEST_PAUSE)
    return BACKOFF.pause(tries) * (1 + JITTER * chance)


def _may_repeat(request: Request, problem: errors.KubeError) -> bool:
    if isinstance(problem, errors.Unreachable):
        harmless = request.repeat is Repeat.ALWAYS and not isinstance(problem, errors.TimedOut)
        return harmless or not problem.sent
    if isinstance(problem, errors.ServerFailure):
        return request.repeat is Repeat.ALWAYS or problem.retry_after is not None
    return False
