"""Answers ProvisioningRequests in their status: whether all pods of a request find room at the same time.

`http.serving` runs a `Provisioner` beside the scheduler while that leads. Every turn looks at all requests of the
class, the oldest first: bookings that still hold, then requests that wait. Room is counted together with the pods of
all bookings that have no node yet, so that two requests are not promised the same room. Pods that belong to no request
are not held back: the scheduler places them as ever."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct, structs

from numalign.api.decode.structs import ENCODER
from numalign.api.errors import BadObject
from numalign.api.objects import statusconditions
from numalign.api.objects.pod import Pod
from numalign.api.objects.statusconditions import Condition
from numalign.kube import errors
from numalign.kube.client import Client
from numalign.kube.watch.informer import Informer
from numalign.kube.watch.store import Change
from numalign.placement.rules.clusterstate import ClusterState
from numalign.process import tasks
from numalign.process.log import about
from numalign.scheduler.capacity import service
from numalign.scheduler.capacity.messages import ShapeRequest
from numalign.scheduler.capacity.service import AskedShape, CapacityService
from numalign.scheduler.provisioning import answers, kinds
from numalign.scheduler.provisioning.answers import State, Terms
from numalign.scheduler.provisioning.kinds import PodTemplate, ProvisioningRequest

LOG: Final = logging.getLogger(__name__)
TURN: Final = 5.0
"""Seconds between two turns, unless a request or a template changes."""
FIRST_PAUSE, LONGEST_PAUSE = 10.0, 60.0
"""Seconds until a request that found no room is counted again; the pause doubles."""
Name = tuple[str, str]
"""Namespace and name of a request."""


class Attempts(Struct):
    """How often a waiting request is counted."""

    due: float = 0.0
    pause: float = FIRST_PAUSE


class Provisioner:
    def __init__(
        self,
        client: Client,
        counting: CapacityService,
        world: ClusterState,
        synced: Callable[[], Any],
        leads: Callable[[], bool],
        terms: Terms,
    ) -> None:
        """`synced`: awaits that the scheduler knows the cluster; `leads`: checked right before every write."""
        self._client, self._counting, self._world = client, counting, world
        self._synced, self._leads, self._terms = synced, leads, terms
        self._clock = client.sender.clock
        self._requests = Informer(client, kinds.REQUESTS.everywhere(), self._changed)
        self._templates = Informer(client, kinds.TEMPLATES.everywhere(), self._changed)
        self._news = asyncio.Event()
        self._written: dict[str, tuple[str, ProvisioningRequest]] = {}
        """By uid: the version that a write was based on, and the answer; the watch may lag behind."""
        self._attempts: dict[str, Attempts] = {}
        """By uid, of waiting requests."""
        self._doubtful: dict[str, float] = {}
        """By uid, since when the room of a booking is gone."""

    async def run(self) -> None:
        beside = {"provisioningrequests": self._requests.run(), "podtemplates": self._templates.run()}
        await tasks.together(self._turns(), beside)

    def _changed(self, change: Change[Any]) -> None:
        if isinstance(change.new, PodTemplate):
            self._look_again(change.new)
        self._news.set()

    def _look_again(self, template: PodTemplate) -> None:
        """Requests that name the template may have waited for it."""
        for request in self._requests.store:
            names = {each.pod_template_ref.name for each in request.spec.pod_sets}
            if request.metadata.namespace == template.metadata.namespace and template.metadata.name in names:
                self._attempts.pop(request.metadata.uid, None)

    async def _turns(self) -> None:
        await self._synced()
        await self._requests.synced()
        await self._templates.synced()
        while True:
            self._news.clear()
            await self.turn()
            with contextlib.suppress(TimeoutError):
                async with self._clock.timeout(TURN):
                    await self._news.wait()

    async def turn(self) -> None:
        """Looks at every request once."""
        requests = list(self._current())
        self._forget(requests)
        bound = self._bound() if requests else {}
        promised, waiting = list[ProvisioningRequest](), list[ProvisioningRequest]()
        for request in requests:
            match self._state(request):
                case State.BOOKED:
                    promised.append(request)
                case State.LAPSED:
                    await self._write(request, answers.lapsed())
                case State.OVERDUE:
                    await self._write(request, answers.overdue())
                case State.WAITING:
                    waiting.append(request)
                case State.DONE:
                    pass
                case BadObject() as problem:
                    await self._write(request, answers.failed("InvalidParameters", str(problem)))
        booked, now = await self._bookings(promised, bound), self._clock.now()
        for request in waiting:
            if self._attempts.setdefault(request.metadata.uid, Attempts()).due <= now:
                booked = await self._counted(request, booked, bound.get(_name(request), []))
                # Counting takes milliseconds in large clusters; the scheduler has its turn in between.
                await asyncio.sleep(0)

    def _current(self) -> Iterator[ProvisioningRequest]:
        """Requests of the class, the oldest first, as they are after our own writes."""
        mine = [each for each in self._requests.store if each.spec.provisioning_class_name == self._terms.class_name]
        for each in sorted(mine, key=lambda each: (each.metadata.creation_timestamp or "", _name(each))):
            base, answer = self._written.get(each.metadata.uid, ("", each))
            request = answer if base == each.metadata.resource_version else each
            if request.metadata.deletion_timestamp is None:
                yield request

    def _forget(self, requests: Iterable[ProvisioningRequest]) -> None:
        there = {each.metadata.uid for each in requests}
        for table in (self._written, self._attempts, self._doubtful):
            for uid in table.keys() - there:
                del table[uid]

    def _state(self, request: ProvisioningRequest) -> State | BadObject:
        try:
            answers.retries(request)
            return answers.state(request, self._terms, self._clock.wall())
        except BadObject as problem:
            return problem

    def _bound(self) -> dict[Name, list[Pod]]:
        """By request, its pods that have a node."""
        found: dict[Name, list[Pod]] = {}
        for assigned in self._world.pods.values():
            name = assigned.pod.metadata.annotations.get(kinds.CONSUMES)
            if name is not None:
                found.setdefault((assigned.pod.metadata.namespace, name), []).append(assigned.pod)
        return found

    # Bookings

    async def _bookings(
        self, promised: Iterable[ProvisioningRequest], bound: Mapping[Name, list[Pod]]
    ) -> list[AskedShape]:
        """The pods of bookings that still hold and have no node yet."""
        wanted = [
            (request, pods, shapes)
            for request in promised
            for pods in (bound.get(_name(request), []),)
            if (shapes := self._still_open(request, pods)) is not None
        ]
        together = merged(each for _, _, shapes in wanted for each in shapes)
        if not together or (await self._counting.room(together)).fits != "no":
            self._doubtful.clear()
            return together
        booked: list[AskedShape] = []
        for request, pods, shapes in wanted:
            booked = await self._kept(request, booked, pods, shapes)
            await asyncio.sleep(0)
        return booked

    def _still_open(self, request: ProvisioningRequest, bound: Iterable[Pod]) -> list[AskedShape] | None:
        """None where a template was deleted, as Kueue does with those of workloads that run."""
        try:
            return self._open(request, bound)
        except BadObject:
            return None

    async def _kept(
        self, request: ProvisioningRequest, booked: list[AskedShape], bound: list[Pod], shapes: list[AskedShape]
    ) -> list[AskedShape]:
        """The bookings with this one, if there is still room for it."""
        uid, together = request.metadata.uid, merged([*booked, *shapes])
        if (await self._counting.room(together)).fits != "no":
            self._doubtful.pop(uid, None)
            return together
        since = self._doubtful.setdefault(uid, self._clock.now())
        # The room of a request whose pods arrive is taken by these, and its owner would lose pods that run.
        if not bound and self._clock.now() - since >= self._terms.doubt:
            await self._write(request, answers.revoked("other pods or the loss of nodes took the room of these pods"))
        return booked

    def _open(self, request: ProvisioningRequest, bound: Iterable[Pod]) -> list[AskedShape]:
        """The pods of the request that have no node yet. BadObject where a template is missing or makes no sense."""
        shapes = list(self._shapes(request))
        numbers = [self._counting.number(each.pod) for each in shapes]
        there = Counter(self._numbers(bound))
        left = []
        for shape, number in zip(shapes, numbers, strict=True):
            gone = min(shape.replicas, there[number])
            there[number] -= gone
            left.append(structs.replace(shape, replicas=shape.replicas - gone))
        return [each for each in left if each.replicas]

    def _numbers(self, pods: Iterable[Pod]) -> Iterator[int]:
        """Pods that cannot be read use up no booking."""
        for pod in pods:
            with contextlib.suppress(BadObject):
                yield self._counting.number(pod)

    def _shapes(self, request: ProvisioningRequest) -> Iterator[AskedShape]:
        asked = [self._shape(request, number) for number in range(len(request.spec.pod_sets))]
        if not asked:
            raise BadObject("ProvisioningRequest", request.metadata.full_name, "spec.podSets", "is empty")
        yield from service.asked_shapes(asked)

    def _shape(self, request: ProvisioningRequest, number: int) -> ShapeRequest:
        wanted, namespace = request.spec.pod_sets[number], request.metadata.namespace
        name = wanted.pod_template_ref.name
        template = self._templates.store.get(name, namespace)
        if template is None:
            raise Missing("PodTemplate", f"{namespace}/{name}", "", "not found")
        metadata = structs.replace(template.template.metadata, name=name, namespace=namespace)
        pod = Pod(metadata=metadata, spec=template.template.spec)
        return ShapeRequest(name=f"{name} ({request.metadata.full_name})", pod=pod, replicas=wanted.count)

    # Requests that wait

    async def _counted(
        self, request: ProvisioningRequest, booked: list[AskedShape], bound: list[Pod]
    ) -> list[AskedShape]:
        """The bookings with this one, if there is room for it now."""
        try:
            wanted = self._open(request, bound)
            together = merged([*booked, *wanted])
            answer = await self._counting.room(together)
        except Missing as problem:
            await self._answer(request, answers.undecided("PodTemplateNotFound", str(problem)))
            return booked
        except BadObject as problem:
            await self._answer(request, answers.undecided("PodTemplateNotUsable", str(problem)))
            return booked
        if answer.fits == "yes" or answer.placed:
            pods = sum(each.replicas for each in wanted)
            nodes = len({each.node for each in answer.placed})
            message = f"{pods:,} pods find room, on {nodes:,} nodes together with those of requests booked before"
            limited = f"; {answer.message}" if answer.message else ""
            is_written = await self._answer(request, answers.found(message + limited))
            return together if is_written else booked
        short = self._counting.shortfall(wanted)
        message = "; ".join((answer.message, *short)) if short else f"{answer.message}, with the requests booked before"
        await self._answer(request, answers.not_found(message, retries=answers.retries(request)))
        return booked

    async def _answer(self, request: ProvisioningRequest, wanted: list[Condition]) -> bool:
        attempts = self._attempts.setdefault(request.metadata.uid, Attempts())
        attempts.due = self._clock.now() + attempts.pause
        attempts.pause = min(2 * attempts.pause, LONGEST_PAUSE)
        return await self._write(request, wanted)

    async def _write(self, request: ProvisioningRequest, wanted: list[Condition]) -> bool:
        """Whether the API server has these conditions now."""
        now = statusconditions.stamp(self._clock.wall())
        conditions = answers.written(request, wanted, now)
        if conditions == request.status.conditions:
            return True
        if not self._leads():
            return False
        place, base = request.metadata, request.metadata.resource_version
        # The version makes the API server refuse the write where the request has changed meanwhile.
        changes = {"metadata": {"resourceVersion": base}, "status": {"conditions": [*conditions]}}
        target = kinds.REQUESTS.at(place.name, place.namespace).sub("status")
        try:
            answer = await self._client.patch(target, "merge", changes)
        except errors.KubeError as problem:
            LOG.warning("%s", problem)
            return False
        known = self._requests.store.get(place.name, place.namespace)
        if known is not None:
            self._written[place.uid] = known.metadata.resource_version, answer
        last = wanted[-1]
        said = about(condition=last.type, status=last.status, reason=last.reason, message=last.message)
        LOG.info("Answered ProvisioningRequest %s", place.full_name, extra=said)
        return True


class Missing(BadObject):
    """An object that the request names and that may be created yet."""


def merged(shapes: Iterable[AskedShape]) -> list[AskedShape]:
    """Equal pods as one entry: the count of equal pods is exact, and a search for several kinds is not."""
    found: dict[bytes, AskedShape] = {}
    for each in shapes:
        kind = structs.replace(each.pod.metadata, name="", uid="")
        key = ENCODER.encode((kind, each.pod.spec))
        known = found.get(key)
        found[key] = each if known is None else structs.replace(known, replicas=known.replicas + each.replicas)
    return list(found.values())


def _name(request: ProvisioningRequest) -> Name:
    return request.metadata.namespace, request.metadata.name
