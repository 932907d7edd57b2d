"""What carrying a plan out asks of an API server: the cluster as it is, evictions, and rooms that Nodes hold.

`execution` calls it. A call that the server did not answer is made again; `Stuck` says that it cannot be made."""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial
from typing import Final, TypeVar

from numalign.api.attributes import heldrooms
from numalign.api.attributes.heldrooms import HeldRoom
from numalign.api.decode.structs import Wire
from numalign.api.errors import BadObject
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.node import Node
from numalign.api.objects.pod import Pod
from numalign.api.schedulerconfig.configuration import Configuration
from numalign.kube import errors, lists, request
from numalign.kube.backoff import Exponential
from numalign.kube.client import Client
from numalign.kube.clock import Clock
from numalign.kube.resources import NODES, PODS, DeleteOptions, Preconditions
from numalign.scheduler.snapshot import snapshot
from numalign.scheduler.snapshot.snapshot import Snapshot

T = TypeVar("T")
PAUSES: Final = Exponential(first=0.5, longest=15.0)
MOST_FAILURES: Final = 40
"""In a row, about ten minutes."""


class Stuck(Exception):
    """The API server does not do what is asked; the text says what."""


class Evicted(enum.Enum):
    DONE = "done"
    GONE = "the pod is gone"
    HELD_BACK = "a PodDisruptionBudget does not allow it now"


class Eviction(Wire, frozen=True, omit_defaults=False):
    metadata: ObjectMeta
    delete_options: DeleteOptions
    kind: str = "Eviction"
    api_version: str = "policy/v1"


class ClusterHand:
    def __init__(self, client: Client, config: Configuration | None = None) -> None:
        self._client, self._config = client, config

    @property
    def clock(self) -> Clock:
        return self._client.sender.clock

    async def look(self) -> Snapshot:
        return await self._insist(lambda: snapshot.taken(self._client, self._config))

    async def pods(self, namespaces: Collection[str]) -> list[Pod]:
        found: list[Pod] = []
        for namespace in sorted(namespaces):
            target = PODS.within(namespace)
            found += lists.readable(await self._insist(partial(self._client.every, target)))
        return found

    async def rooms(self) -> dict[str, tuple[HeldRoom, ...]]:
        """By node."""
        nodes = lists.readable(await self._insist(lambda: self._client.every(NODES.everywhere())))
        return {node.metadata.name: held for node in nodes if (held := _rooms(node))}

    async def hold(self, node: str, rooms: Sequence[HeldRoom]) -> None:
        """Adds rooms to those of the node, or replaces those of the same pods."""
        uids = {each.uid for each in rooms}
        await self._insist(lambda: self._annotate(node, lambda held: [*_without(held, uids), *rooms]))

    async def release(self, node: str, uids: Collection[str]) -> None:
        try:
            await self._insist(lambda: self._annotate(node, lambda held: _without(held, uids)))
        except _Missing:
            return

    async def evict(self, pod: Pod) -> Evicted:
        meta = pod.metadata
        options = DeleteOptions(preconditions=Preconditions(uid=meta.uid))
        eviction = Eviction(ObjectMeta(name=meta.name, namespace=meta.namespace), options)
        asked = request.post("evict", PODS.at(meta.name, meta.namespace).sub("eviction"), eviction)
        try:
            await self._insist(lambda: self._client.sender.call(asked))
        except _Missing:
            return Evicted.GONE
        except _HeldBack:
            return Evicted.HELD_BACK
        return Evicted.DONE

    async def _annotate(self, name: str, change: Callable[[tuple[HeldRoom, ...]], Sequence[HeldRoom]]) -> None:
        node = await self._client.get(NODES.at(name))
        held = _rooms(node)
        wanted = change(held)
        if tuple(wanted) == held:
            return
        # The version makes the call fail if another program wrote meanwhile.
        metadata = {
            "resourceVersion": node.metadata.resource_version,
            "annotations": {heldrooms.NAME: heldrooms.written(wanted)},
        }
        await self._client.patch(NODES.at(name), "merge", {"metadata": metadata})

    async def _insist(self, call: Callable[[], Awaitable[T]]) -> T:
        failures = 0
        while True:
            try:
                return await call()
            except errors.NotFound as problem:
                raise _Missing(str(problem)) from None
            except errors.Conflict as problem:
                if problem.verb == "evict":
                    # Another pod has the name.
                    raise _Missing(str(problem)) from None
                failures = self._failed(problem, failures)
            except errors.TooManyRequests as problem:
                if problem.has_cause(errors.DISRUPTION):
                    raise _HeldBack(str(problem)) from None
                failures = self._failed(problem, failures)
            except (errors.ServerFailure, errors.Unreachable, errors.Gone) as problem:
                failures = self._failed(problem, failures)
            except errors.KubeError as problem:
                raise Stuck(str(problem)) from None
            await self.clock.sleep(PAUSES.pause(failures) * (1 + 0.1 * self.clock.chance()))

    def _failed(self, problem: errors.KubeError, failures: int) -> int:
        if failures + 1 >= MOST_FAILURES:
            raise Stuck(str(problem)) from None
        return failures + 1


class _Missing(Stuck):
    """What the call is about is not there."""


class _HeldBack(Stuck):
    """A budget does not allow it."""


def _rooms(node: Node) -> tuple[HeldRoom, ...]:
    """A broken annotation holds nothing, and is written anew."""
    try:
        return heldrooms.of_node(node)
    except BadObject:
        return ()


def _without(held: Sequence[HeldRoom], uids: Collection[str]) -> tuple[HeldRoom, ...]:
    return tuple(each for each in held if each.uid not in uids)
