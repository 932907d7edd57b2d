"""Records the history of each pod, in memory and in the log.

Every component that acts on a pod calls `record`; `dump` shows the history and `numalign scheduler state --pod` prints
it. The log has the same entries with the pod's name and uid, subject to verbosity. The histories that were extended
least recently are dropped first; of a long history the middle is dropped."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct

from numalign.api.objects.meta import ObjectMeta
from numalign.process.log import about

LOG: Final = logging.getLogger(__name__)
MOST_PODS: Final = 4096
FIRST_LINES: Final = 8
LAST_LINES: Final = 56
MOST_LINES: Final = FIRST_LINES + LAST_LINES
QUEUED: Final = "queued"
SELECTED: Final = "node selected"
BOUND: Final = "bound"
DROPPED: Final = "binding dropped: pod deleted, or bound by another scheduler"
FAILED: Final = "binding failed"
CONFIRMED: Final = "binding confirmed"
STARTED: Final = "started by the kubelet"
REJECTED: Final = "rejected by the kubelet"
DELETED: Final = "deleted"
NOMINATED: Final = "nominated"

Observer = Callable[[ObjectMeta, float, str, Mapping[str, object]], None]
"""Is called with each entry: the pod, the time on the scheduler's clock, what happened, and its fields."""


class HistoryEntry(Struct, frozen=True, gc=False):
    """One entry of a history. Thousands are kept, so it has no fields that the garbage collector tracks."""

    at: float
    what: str
    about: Mapping[str, object]


class PodHistory:
    """The first and the latest entries of one pod's history."""

    __slots__ = ("_pod", "left_out", "lines", "uid")

    def __init__(self, pod: ObjectMeta) -> None:
        self.uid, self._pod = pod.uid, pod
        self.left_out = 0
        self.lines: list[HistoryEntry] = []

    @property
    def name(self) -> str:
        return self._pod.full_name


class PodHistories:
    def __init__(self, now: Callable[[], float], most_pods: int = MOST_PODS, observer: Observer | None = None) -> None:
        self._now = now
        self._most = most_pods
        self._observer = observer
        self._histories: OrderedDict[str, PodHistory] = OrderedDict()

    def record(self, pod: ObjectMeta, what: str, **fields: object) -> None:
        self._keep(pod, what, fields)
        if LOG.isEnabledFor(logging.DEBUG):
            _log(logging.DEBUG, pod, what, fields)

    def warn(self, pod: ObjectMeta, what: str, **fields: object) -> None:
        """Adds an entry and logs it as a warning."""
        self._keep(pod, what, fields)
        _log(logging.WARNING, pod, what, fields)

    def of(self, name: str) -> list[PodHistory]:
        """The histories of pods that have or had this name (namespace/name) or uid; the latest last."""
        return [story for story in self._histories.values() if name in (story.name, story.uid)]

    def __contains__(self, uid: str) -> bool:
        return uid in self._histories

    def __len__(self) -> int:
        return len(self._histories)

    def _keep(self, pod: ObjectMeta, what: str, fields: Mapping[str, object]) -> None:
        uid, histories = pod.uid, self._histories
        story = histories.get(uid)
        if story is not None:
            histories.move_to_end(uid)
        elif not self._most:
            return
        else:
            if len(histories) >= self._most:
                histories.popitem(last=False)
            story = histories[uid] = PodHistory(pod)
        lines = story.lines
        if len(lines) == MOST_LINES:
            del lines[FIRST_LINES]
            story.left_out += 1
        entry = HistoryEntry(self._now(), what, fields)
        lines.append(entry)
        if self._observer is not None:
            self._observer(pod, entry.at, what, fields)


def _log(level: int, pod: ObjectMeta, what: str, fields: Mapping[str, object]) -> None:
    LOG.log(level, what, extra=about(pod=pod.full_name, uid=pod.uid, **fields))


SILENT: Final = PodHistories(lambda: 0.0, most_pods=0)
"""Records nothing; for callers that run a part of the scheduler alone."""
