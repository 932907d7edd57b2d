"""One pod's whole story by one key: every turn it took, in order, in memory and in the log.

Whoever decides or does something about a pod calls `tell`; `dumping` shows a story, `numalign scheduler state --pod`
prints it. The log has the same lines with the pod's name and uid in each, as far as the verbosity lets them through.
Of many pods the ones not heard of for longest are forgotten, of a long story its middle."""

from __future__ import annotations

import logging
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct

from numalign.api.meta import ObjectMeta
from numalign.process.log import about

LOG: Final = logging.getLogger(__name__)
MOST_PODS: Final = 4096
FIRST_LINES: Final = 8
LAST_LINES: Final = 56


class Line(Struct, frozen=True):
    at: float
    what: str
    about: Mapping[str, object]


class Story:
    """How it began, and how it went on."""

    __slots__ = ("_first", "_last", "_pod", "left_out", "uid")

    def __init__(self, pod: ObjectMeta) -> None:
        self.uid, self._pod = pod.uid, pod
        self.left_out = 0
        self._first: list[Line] = []
        self._last: deque[Line] | None = None
        """None: nothing to put there; most stories are short."""

    def add(self, line: Line) -> None:
        if len(self._first) < FIRST_LINES:
            self._first.append(line)
            return
        if self._last is None:
            self._last = deque(maxlen=LAST_LINES)
        self.left_out += len(self._last) == LAST_LINES
        self._last.append(line)

    @property
    def name(self) -> str:
        return self._pod.full_name

    @property
    def lines(self) -> list[Line]:
        return [*self._first, *(self._last or ())]


class Stories:
    def __init__(self, now: Callable[[], float], most_pods: int = MOST_PODS) -> None:
        self._now = now
        self._most = most_pods
        self._stories: OrderedDict[str, Story] = OrderedDict()

    def tell(self, pod: ObjectMeta, what: str, **fields: object) -> None:
        if self._most:
            self._keep(pod, Line(self._now(), what, fields))
        if LOG.isEnabledFor(logging.DEBUG):
            _log(logging.DEBUG, pod, what, fields)

    def warn(self, pod: ObjectMeta, what: str, **fields: object) -> None:
        """The same, where somebody should know without having to ask."""
        if self._most:
            self._keep(pod, Line(self._now(), what, fields))
        _log(logging.WARNING, pod, what, fields)

    def of(self, name: str) -> list[Story]:
        """Of pods that have or had this name (namespace/name), or this uid; the latest last."""
        return [story for story in self._stories.values() if name in (story.name, story.uid)]

    def __len__(self) -> int:
        return len(self._stories)

    def _keep(self, pod: ObjectMeta, line: Line) -> None:
        story = self._stories.get(pod.uid)
        if story is None:
            story = self._begun(pod)
        else:
            self._stories.move_to_end(pod.uid)
        story.add(line)

    def _begun(self, pod: ObjectMeta) -> Story:
        if len(self._stories) >= self._most:
            self._stories.popitem(last=False)
        story = self._stories[pod.uid] = Story(pod)
        return story


def _log(level: int, pod: ObjectMeta, what: str, fields: Mapping[str, object]) -> None:
    LOG.log(level, what, extra=about(pod=pod.full_name, uid=pod.uid, **fields))


SILENT: Final = Stories(lambda: 0.0, most_pods=0)
"""Keeps nothing; for whoever runs a part of the scheduler alone."""
