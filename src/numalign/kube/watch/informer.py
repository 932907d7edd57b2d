"""Keeps a store in sync with one resource, and delivers every change once and in order per object.

The scheduler and the agent run one informer per resource as a task. `watch` decides the next step and `store` computes
the changes; this module performs both. It ends only when it is cancelled or its handler raises: no answer of the server
ends it. Failures are logged as `kube.outage` limits them; those of a server that cannot be reached are logged once for
all informers of a client."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Any, Final, Generic, NoReturn, TypeVar, cast

from msgspec import Struct

from numalign.api.errors import BadObject
from numalign.kube import errors, lists, request
from numalign.kube.client import Client
from numalign.kube.lists import Unreadable
from numalign.kube.outage import Outage
from numalign.kube.resources import Named, Status, Target
from numalign.kube.transport.connection import IncomingResponse
from numalign.kube.watch.store import Change, ListedObjects, Store
from numalign.kube.watch.watch import Follow, ListAll, Meaning, Wait, Watch

T = TypeVar("T", bound=Named)

LOG: Final = logging.getLogger(__name__)
DELETED: Final = "DELETED"
AT_ONCE: Final = 100
"""Changes that are delivered in a row before other tasks run."""


class Options(Struct, frozen=True, kw_only=True):
    selection: request.Selection = request.EVERYTHING
    page: int = request.PAGE
    resync: float | None = None
    """Seconds between relists; off, as no known failure needs it."""
    share: Callable[[Any], Any] | None = None
    """Applied to every object before it is stored: shares equal parts of objects."""
    initial_events: bool = True
    """Request the initial state as a stream (WatchList) where the server offers it; otherwise list."""


DEFAULTS: Final = Options()


class Informer(Generic[T]):
    def __init__(
        self,
        client: Client,
        target: Target[T],
        handler: Callable[[Change[T]], None],
        options: Options = DEFAULTS,
    ) -> None:
        self.store: Store[T] = Store()
        self._sender = client.sender
        self._target = target
        self._handler = handler
        self._options = options
        self._watch = Watch(offers_initial=options.initial_events, resync=options.resync)
        self._outage = Outage()
        self._finding: ListedObjects[T] = ListedObjects(self.store)
        self._synced = asyncio.Event()
        self._stream: IncomingResponse | None = None
        self._left = False
        """Whether this informer ended the last stream."""
        self._requested = self._covered = 0
        """The number of requested relists, and how many of them the last relist covers."""
        self._request_made, self._relisted = asyncio.Event(), asyncio.Event()

    @property
    def has_synced(self) -> bool:
        """The store holds a complete state since the start, and the handler has received it."""
        return self._synced.is_set()

    async def synced(self) -> None:
        await self._synced.wait()

    async def relisted(self) -> None:
        """Relists; returns once the store holds the state of this moment or later, and the handler has received it."""
        self._requested += 1
        self._relisted.clear()
        # The caller has a reason to think that the server answers: one attempt skips the back-off.
        self._watch.hurry()
        self._request_made.set()
        self._leave_stream()
        await self._relisted.wait()

    async def run(self) -> NoReturn:
        while True:
            try:
                await self._perform()
            except errors.KubeError as problem:
                self._note(problem)

    async def _perform(self) -> None:
        clock = self._sender.clock
        self._left = False
        if self._covered < self._requested:
            self._watch.forget()
        match self._watch.step(clock.now(), clock.chance()):
            case Wait(seconds):
                await self._pause(seconds)
            case ListAll():
                await self._list_all()
            case Follow() as step:
                await self._follow(step)

    async def _pause(self, seconds: float) -> None:
        """Sleeps, unless a relist is requested."""
        self._request_made.clear()
        turns = [
            asyncio.ensure_future(self._sender.clock.sleep(seconds)),
            asyncio.ensure_future(self._request_made.wait()),
        ]
        try:
            await asyncio.wait(turns, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in turns:
                each.cancel()

    def _note(self, problem: errors.KubeError) -> None:
        if self._left:
            return  # not a failure, after which a relist would back off
        now = self._sender.clock.now()
        if isinstance(problem, errors.Unreachable):
            lasted = self._sender.outage.failed(self._target.words, now)
        else:
            lasted = self._outage.failed(now)
        if lasted is not None:
            LOG.warning("%s%s", problem, f"; failing for {lasted:.0f} s" if lasted else "")
        self._watch.failed(problem, now, self._sender.clock.chance())

    def _worked(self) -> None:
        now = self._sender.clock.now()
        lasted = self._sender.outage.worked(self._target.words, now)
        lasted = max(filter(None, (lasted, self._outage.worked(now))), default=None)
        if lasted is not None:
            LOG.info("%s: the API server answers again after %.0f s", self._target.words, lasted)

    async def _list_all(self) -> None:
        self._begin_finding()
        token = ""
        while True:
            asked = request.page(self._target, self._options.selection, self._options.page, token)
            page = self._page(await self._sender.call(asked))
            self._finding.add(map(self._reported, page.items))
            token = page.metadata.continue_
            if not token:
                break
        self._watch.listed(page.metadata.resource_version, self._sender.clock.now())
        self._worked()
        await self._finish_finding()

    async def _follow(self, step: Follow) -> None:
        clock, asked = self._sender.clock, request.watch(self._target, self._options.selection, step.since)
        if step.since.initial:
            self._begin_finding()
        self._sender.metrics.watches[self._target.resource.plural] += 1
        async with self._sender.stream(asked) as answer:
            self._watch.opened(clock.now())
            self._worked()
            self._stream = answer
            if self._covered < self._requested:
                # Requested while the stream was being opened: it resumes from a version before the request.
                self._leave_stream()
            try:
                await self._read(asked, answer, step)
            finally:
                self._stream = None
        if not self._left:
            self._watch.ended(clock.now(), clock.chance())

    async def _read(self, asked: request.Request, answer: IncomingResponse, step: Follow) -> None:
        split = lists.Lines()
        while self._watch.is_collecting:
            piece = await self._piece(answer, self._watch.patience(step))
            if not piece:
                return
            for event in self._events(split, piece):
                if self._take(asked, event):
                    await self._finish_finding()
        await self._follow_events(asked, answer, split, self._watch.patience(step))

    async def _follow_events(
        self, asked: request.Request, answer: IncomingResponse, split: lists.Lines, quiet: float
    ) -> None:
        """Handles events until the stream ends; TimeoutError after `quiet` seconds of silence."""
        clock, left = self._sender.clock, quiet
        while True:
            received: float | None = None
            try:
                # A timer for each piece would cost more than reading it. One timer runs for many pieces, and compares
                # the time of the last one when it fires.
                async with clock.timeout(left):
                    while piece := await answer.read():
                        received = clock.now()
                        for event in self._events(split, piece):
                            self._take(asked, event)
                    return
            except TimeoutError:
                if received is None:
                    raise
                left = received + quiet - clock.now()

    def _leave_stream(self) -> None:
        if self._stream is not None:
            self._left = True
            self._stream.abandon()

    def _page(self, body: bytes) -> lists.Page[T]:
        try:
            return lists.page(self._target.resource, body)
        except BadObject as problem:
            raise errors.Unreachable("list", self._target.words, str(problem)) from None

    def _events(self, split: lists.Lines, piece: bytes) -> Iterator[lists.WatchEvent[T]]:
        try:
            for line in split.feed(piece):
                yield lists.watch_event(self._target.resource, line)
        except (BadObject, lists.LineTooLong) as problem:
            raise errors.Unreachable("watch", self._target.words, str(problem)) from None

    async def _piece(self, answer: IncomingResponse, quiet: float) -> bytes:
        async with self._sender.clock.timeout(quiet):
            return await answer.read()

    def _take(self, asked: request.Request, event: lists.WatchEvent[T]) -> bool:
        """True if the event completes the initial state."""
        thing = event.object
        if isinstance(thing, Status):
            raise errors.refused(asked, thing.code, thing)
        meta = thing.metadata
        meaning = self._watch.saw(event.type, meta.resource_version, meta.annotations)
        self._count(event.type, meaning)
        if meaning is not Meaning.COMPLETE and not isinstance(thing, lists.Bookmark):
            self._use(thing, meaning, gone=event.type == DELETED)
        return meaning is Meaning.COMPLETE

    def _use(self, thing: T | Unreadable, meaning: Meaning, gone: bool) -> None:
        if meaning is Meaning.DELIVER:
            self._deliver(self.store.remove(thing) if gone else self.store.put(self._reported(thing)))
        elif meaning is Meaning.COLLECT and gone:
            self._finding.discard(thing)
        elif meaning is Meaning.COLLECT:
            self._finding.add([self._reported(thing)])

    def _begin_finding(self) -> None:
        self._sender.metrics.relists[self._target.resource.plural] += 1
        self._finding = ListedObjects(self.store)
        self._covered = self._requested

    async def _finish_finding(self) -> None:
        """Delivers the changes, and yields to other tasks: there may be all pods of a large cluster."""
        found, self._finding = self._finding, ListedObjects(self.store)
        changes = self.store.replace(found)
        for first in range(0, len(changes), AT_ONCE):
            self._deliver(changes[first : first + AT_ONCE])
            await asyncio.sleep(0)
        self._synced.set()
        if self._covered == self._requested:
            self._relisted.set()
        else:
            self._leave_stream()

    def _deliver(self, changes: list[Change[T]]) -> None:
        for change in changes:
            self._handler(change)

    def _reported(self, thing: T | Unreadable) -> T | Unreadable:
        if isinstance(thing, Unreadable):
            LOG.warning("Skipped an object: %s", thing.problem)
            self._sender.metrics.unreadable[self._target.resource.plural] += 1
            return thing
        share = self._options.share
        return thing if share is None else cast(T, share(thing))

    def _count(self, kind: str, meaning: Meaning) -> None:
        counted = meaning.name if meaning is Meaning.DUPLICATE else kind
        self._sender.metrics.watch_events[self._target.resource.plural, counted] += 1
