"""Runs one controller: changes note keys, a task looks at them one after the other and does what is wanted.

`manager` makes one `Runner` per controller. A key is looked at a moment after it was noted, about as long as a watch
and a write take: changes that come together are looked at once, and a storm of rejected pods moves on in time."""

import asyncio
import logging
from collections.abc import Iterable
from typing import Final, Protocol

from numalign.simulator.apiserver.storage.errors import StatusError
from numalign.simulator.apiserver.verbs.api import Api
from numalign.simulator.controllers.framework.actions import Action
from numalign.simulator.controllers.framework.events import Recorder
from numalign.simulator.controllers.framework.performing import Performer
from numalign.simulator.controllers.framework.views import Key, Views
from numalign.simulator.controllers.framework.workqueue import WorkQueue

LOG: Final = logging.getLogger(__name__)
UNFORESEEN: Final = (LookupError, TypeError, ValueError, AttributeError)
LATENCY: Final = 0.01
"""Seconds from a change to the look at it."""


class Desk:
    """Where a controller sits: what it sees, and the pile of keys that it is to look at."""

    def __init__(self, api: Api, views: Views, component: str) -> None:
        self.api = api
        self.views = views
        self.recorder = Recorder(api, component)
        self.performer = Performer(api, self.recorder)
        self.queue: WorkQueue[Key] = WorkQueue()
        self.wake = asyncio.Event()

    def note(self, key: Key, after: float = LATENCY) -> None:
        self.queue.add(key, self.api.clock.now() + after)
        self.wake.set()


class Controller(Protocol):
    name: str
    """As it signs its events."""

    def sit(self, desk: Desk) -> None:
        """Before anything else: keep the desk, and watch what matters."""

    def look(self, key: Key) -> Iterable[Action]:
        """What is wanted for this object now, by what the views show."""


class Runner:
    def __init__(self, controller: Controller, api: Api, views: Views) -> None:
        self.controller = controller
        self.desk = Desk(api, views, controller.name)
        controller.sit(self.desk)

    async def run(self) -> None:
        while True:
            await self._something_due()
            key = self.desk.queue.take(self.desk.api.clock.now())
            if key is not None:
                self.step(key)
            # Others get their turn between any two looks.
            await asyncio.sleep(0)

    def step(self, key: Key) -> None:
        queue = self.desk.queue
        try:
            again = self.desk.performer.perform(self.controller.look(key))
        except StatusError:
            queue.retry(key, self.desk.api.clock.now())
            return
        except UNFORESEEN:
            # Status can be written by anybody, and says what it likes; one strange object must not stop the others.
            LOG.exception("%s cannot make sense of %s", self.controller.name, "/".join(filter(None, key)))
            queue.retry(key, self.desk.api.clock.now())
            return
        queue.forget(key)
        if again is not None:
            self.desk.note(key, max(again, LATENCY))

    async def _something_due(self) -> None:
        loop, desk = asyncio.get_running_loop(), self.desk
        while (due := desk.queue.next_due()) is None or due > desk.api.clock.now():
            desk.wake.clear()
            timer = loop.call_later(due - desk.api.clock.now(), desk.wake.set) if due is not None else None
            await desk.wake.wait()
            if timer is not None:
                timer.cancel()
