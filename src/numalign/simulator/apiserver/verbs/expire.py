"""Events go by themselves, an hour after they were last written, as they do in a real cluster.

Long stories would drown in them otherwise. `state` keeps one `Expiry`, which listens to the store; `creating` sweeps
when the next event is made, so that no timer is needed and virtual time costs nothing."""

from collections import deque
from typing import Final

from numalign.simulator.apiserver.storage.ring import Event, EventKind
from numalign.simulator.clock import Clock
from numalign.simulator.trees import Tree

SECONDS: Final = 3600.0


class Expiry:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._deadlines: dict[str, float] = {}
        self._queue: deque[tuple[float, str]] = deque()

    def note(self, kind: EventKind, event: Event, tree: Tree, before: Tree | None) -> None:
        key = event.entry.key
        if kind == "DELETED":
            self._deadlines.pop(key, None)
            return
        deadline = self._clock.now() + SECONDS
        self._deadlines[key] = deadline
        self._queue.append((deadline, key))

    def due(self) -> list[str]:
        """The keys of what has been left alone for long enough, each once."""
        now, found = self._clock.now(), []
        while self._queue and self._queue[0][0] <= now:
            deadline, key = self._queue.popleft()
            # One that was written again stands further back in the queue once more, or twice for the same moment.
            if self._deadlines.get(key) == deadline:
                del self._deadlines[key]
                found.append(key)
        return found
