"""What an event means for a pod, by the plugins that refused it.

`queue` asks `Wakeups.strategy` for a pod that waits or comes back; what plugins wait for is a table, such as the stock
scheduler's in `interests`. One plugin that says yes is enough; a plugin that lists nothing is woken by everything; a
hint that fails counts as yes (kube-scheduler spec 3.6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from enum import IntEnum

from msgspec import Struct

from numalign.scheduler.intake.clusterevents import Action, ClusterEvent, ObjectChange, Resource
from numalign.scheduler.queue.queued import QueuedPod


class QueueingStrategy(IntEnum):
    """What an event means for a pod; of several the highest counts."""

    SKIP = 0
    AFTER_BACKOFF = 1
    IMMEDIATELY = 2


Hint = Callable[[QueuedPod, ObjectChange], bool]


class Interest(Struct, frozen=True):
    """Events that may help, all of them or, with a hint, those that it says yes to."""

    resource: Resource
    actions: Action
    hint: Hint | None = None

    def covers(self, event: ClusterEvent) -> bool:
        return self.resource is event.resource and event.action & self.actions == event.action


Table = Mapping[str, tuple[Interest, ...]]


class Wakeups:
    """One profile's table, with counts of what its hints said."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._covering: dict[tuple[str, ClusterEvent], tuple[Interest, ...]] = {}
        self._answers: Counter[tuple[str, ClusterEvent, str]] = Counter()

    @property
    def answers(self) -> Counter[tuple[str, str, str]]:
        """How often a hint was asked, by plugin, event and what it said."""
        return Counter({(plugin, event.label, told): count for (plugin, event, told), count in self._answers.items()})

    def concerns(self, plugin: str, event: ClusterEvent) -> bool:
        """Whether the plugin may change its mind on such an event."""
        return event.is_anything or plugin not in self._table or bool(self._covered(plugin, event))

    def strategy(self, queued: QueuedPod, happening: ObjectChange) -> QueueingStrategy:
        rejecting, pending = queued.rejecting, queued.rejection.pending
        if not rejecting or happening.event.is_anything:
            return QueueingStrategy.AFTER_BACKOFF
        found = QueueingStrategy.SKIP
        for plugin in rejecting:
            if self._helps(plugin, queued, happening):
                found = max(
                    found, QueueingStrategy.IMMEDIATELY if plugin in pending else QueueingStrategy.AFTER_BACKOFF
                )
                if found is QueueingStrategy.IMMEDIATELY or not pending:
                    return found
        return found

    def _helps(self, plugin: str, queued: QueuedPod, happening: ObjectChange) -> bool:
        if plugin not in self._table:
            return True
        covered = self._covered(plugin, happening.event)
        return any(each.hint is None or self._asked(plugin, each.hint, queued, happening) for each in covered)

    def _covered(self, plugin: str, event: ClusterEvent) -> tuple[Interest, ...]:
        if (plugin, event) not in self._covering:
            self._covering[plugin, event] = tuple(each for each in self._table[plugin] if each.covers(event))
        return self._covering[plugin, event]

    def _asked(self, plugin: str, hint: Hint, queued: QueuedPod, happening: ObjectChange) -> bool:
        try:
            answer = hint(queued, happening)
            told = "Queue" if answer else "QueueSkip"
        except Exception:
            # A mistake of ours must not leave a pod waiting for what has already come.
            answer, told = True, "Error"
        self._answers[plugin, happening.event, told] += 1
        return answer
