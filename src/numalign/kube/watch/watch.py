"""The state machine of a watch: the next step, and what an event or a failure means.

`informer` performs the steps and reports back; this module has no socket and no clock. It resumes where the last stream
ended, takes bookmarks, relists only if the server has expired the version, and abandons a stream that is silent for too
long (kube-scheduler spec 7.2 and 7.3)."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from msgspec import Struct

from numalign.kube import errors
from numalign.kube.backoff import BackoffManager
from numalign.kube.lists import BOOKMARK
from numalign.kube.request import Since

INITIAL_END: Final = "k8s.io/initial-events-end"
SHORTEST_STREAM: Final = 300
SPREAD: Final = 300
"""Streams last from `SHORTEST_STREAM` to the sum of both, in seconds, so that watchers do not all reconnect at once."""
MARGIN: Final = 15.0
"""Seconds past its end after which a silent stream is abandoned."""
INITIAL_QUIET: Final = 30.0
"""Seconds of silence after which a server is assumed not to support WatchList."""
TOO_SHORT: Final = 1.0
"""Seconds; a stream that ends sooner without an event counts as a failure."""


class Wait(Struct, frozen=True):
    seconds: float


class ListAll(Struct, frozen=True):
    """List every object, page by page."""


class Follow(Struct, frozen=True):
    since: Since
    quiet: float
    """Seconds after which the server ends the stream."""


Step = Wait | ListAll | Follow


class Meaning(enum.Enum):
    COLLECT = "an object of the initial state; collect it until the state is complete"
    COMPLETE = "the initial state is complete"
    DELIVER = "news"
    NOTHING = "a bookmark"
    DUPLICATE = "seen before"


@dataclass
class Watch:
    version: str = ""
    """The version up to which the state is known; empty: unknown."""
    offers_initial: bool = True
    """Whether the server is assumed to send the initial state in the stream (WatchList)."""
    resync: float | None = None
    """Seconds between relists."""
    _backoff: BackoffManager = field(default_factory=BackoffManager)
    _not_before: float = float("-inf")
    _opened: float = 0.0
    _news: int = 0
    _initial: bool = False
    _progress: bool = True
    _looked: float = 0.0

    def step(self, now: float, chance: float) -> Step:
        if now < self._not_before:
            return Wait(self._not_before - now)
        if self._until_resync(now) <= 0:
            self.version = ""
        self._initial = not self.version and self.offers_initial
        if not self.version and not self._initial:
            return ListAll()
        # For a resync, the stream's timeout is shortened: the server ends it in order, and no event is cut.
        seconds = max(1, int(min(SHORTEST_STREAM + chance * SPREAD, self._until_resync(now))))
        since = Since(version=self.version, seconds=seconds, initial=self._initial)
        return Follow(since, seconds + MARGIN)

    @property
    def is_collecting(self) -> bool:
        """Whether the stream still sends the initial state."""
        return self._initial

    def patience(self, step: Follow) -> float:
        """Seconds without a byte after which the stream counts as stalled. While it sends the initial state, a pause is
        not expected; later there may be no events for long."""
        return INITIAL_QUIET if self._initial else step.quiet

    def opened(self, now: float) -> None:
        self._opened, self._news = now, 0

    def forget(self) -> None:
        """Drops the known version: the next step is a relist."""
        self.version = ""

    def hurry(self) -> None:
        """The next step skips the back-off; the steps after it do not."""
        self._not_before = float("-inf")

    def listed(self, version: str, now: float) -> None:
        self.version, self._looked = version, now

    def saw(self, kind: str, version: str, annotations: Mapping[str, str]) -> Meaning:
        self._news += 1
        if kind == BOOKMARK:
            return self._bookmark(version, annotations)
        if self._initial:
            # Objects of the initial state have old versions: only its end marks the current one (7.2, rule 5).
            return Meaning.COLLECT
        if is_old(version, self.version):
            return Meaning.DUPLICATE
        self.version, self._progress = version or self.version, True
        return Meaning.DELIVER

    def ended(self, now: float, chance: float) -> None:
        """The server closed the stream in order, as it does at its timeout."""
        if self._initial or (not self._news and now - self._opened < TOO_SHORT):
            self._wait(now, chance)

    def failed(self, problem: errors.KubeError, now: float, chance: float) -> None:
        if isinstance(problem, errors.TooManyRequests):
            self._not_before = now + (problem.retry_after or 1.0)
        elif self._initial and self._is_unsupported(problem):
            self.offers_initial = False
        elif is_expired(problem):
            # At once, unless the server expired the version that it has just sent: then it needs time.
            if not self.version or not self._progress:
                self._wait(now, chance)
            self.version, self._progress = "", False
        else:
            self._wait(now, chance)

    def _bookmark(self, version: str, annotations: Mapping[str, str]) -> Meaning:
        if self._initial and annotations.get(INITIAL_END) != "true":
            return Meaning.NOTHING
        complete, self._initial = self._initial, False
        if not is_old(version, self.version):
            self.version = version or self.version
        if complete:
            self._looked = self._opened
        return Meaning.COMPLETE if complete else Meaning.NOTHING

    def _until_resync(self, now: float) -> float:
        return float("inf") if self.resync is None or not self.version else self._looked + self.resync - now

    def _is_unsupported(self, problem: errors.KubeError) -> bool:
        # Servers that know WatchList refuse it where it is disabled; older ones ignore it and never mark the end.
        return isinstance(problem, errors.BadRequest | errors.Invalid | errors.TimedOut)

    def _wait(self, now: float, chance: float) -> None:
        self._not_before = now + self._backoff.failed(now, chance)


def is_old(version: str, known: str) -> bool:
    """Whether an event of this version was already seen. Versions grow; versions that are not numbers are only compared
    for equality."""
    if version.isdecimal() and known.isdecimal():
        return int(version) <= int(known)
    return bool(version) and version == known


def is_expired(problem: errors.KubeError) -> bool:
    """The server cannot resume from the known version: it is too old, or the server was restored to an earlier
    state."""
    return isinstance(problem, errors.Gone) or (
        isinstance(problem, errors.Refusal) and problem.has_cause(errors.TOO_NEW)
    )
