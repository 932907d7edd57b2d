"""The verbs of the Kubernetes API, typed.

Everything that talks to a cluster holds one `Client`. A target names an object or a collection (`PODS.at("web",
"default")`, `NODES.everywhere()`), and its `sub("status")` a subresource. Failures are raised as `errors`. Watches are
`watch.informer`; binding is `binding`."""

from collections.abc import AsyncIterator
from typing import TypeVar

from numalign.api.decode import decode, structs
from numalign.kube import lists, request
from numalign.kube.clock import Clock, SystemClock
from numalign.kube.request import EVERYTHING, PAGE, PatchKind, Selection
from numalign.kube.resources import PLAIN_DELETION, DeleteOptions, Document, Named, Scale, Target
from numalign.kube.transport.auth import Access
from numalign.kube.transport.sender import Bucket, Sender
from numalign.kube.transport.transport import DEFAULT_LIMITS, Limits

T = TypeVar("T", bound=Named)


class Client:
    def __init__(
        self,
        access: Access,
        limits: Limits = DEFAULT_LIMITS,
        *,
        bucket: Bucket | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.namespace = access.namespace
        self.sender = Sender(access, clock or SystemClock(), limits, bucket)

    async def __aenter__(self) -> "Client":
        return self

    async def __aexit__(self, *_: object) -> None:
        self.sender.close()

    async def get(self, target: Target[T]) -> T:
        return await self._object(target, request.get(target))

    async def pages(
        self, target: Target[T], selection: Selection = EVERYTHING, limit: int = PAGE
    ) -> AsyncIterator[lists.Page[T]]:
        """All objects, `limit` per page; an object that cannot be decoded is returned as `lists.Unreadable`."""
        token, more = "", True
        while more:
            page = lists.page(target.resource, await self.sender.call(request.page(target, selection, limit, token)))
            yield page
            token = page.metadata.continue_
            more = bool(token)

    async def every(self, target: Target[T], selection: Selection = EVERYTHING) -> list[T | lists.Unreadable]:
        return [item async for page in self.pages(target, selection) for item in page.items]

    async def create(self, target: Target[T], thing: structs.Wire | Document) -> T:
        return await self._object(target, request.create(target, thing))

    async def update(self, target: Target[T], thing: structs.Wire | Document) -> T:
        """Replaces the object if its resourceVersion is still current. Fields that `thing` omits are removed: the
        structs of pods and nodes hold only part of their fields, so change those by `patch` or `apply`."""
        return await self._object(target, request.update(target, thing))

    async def patch(self, target: Target[T], kind: PatchKind, changes: Document | list[Document]) -> T:
        return await self._object(target, request.patch(target, kind, changes))

    async def apply(self, target: Target[T], wanted: Document, *, manager: str, force: bool = False) -> T:
        """Server-side apply: `wanted` holds all fields that `manager` owns; Conflict names fields that others own."""
        return await self._object(target, request.apply(target, wanted, manager, force))

    async def delete(self, target: Target[T], options: DeleteOptions = PLAIN_DELETION) -> None:
        """Requests deletion; finalizers and the grace period may delay it. NotFound where the object is already
        gone."""
        await self.sender.call(request.delete(target, options))

    async def scale_of(self, target: Target[T]) -> Scale:
        return decode.decode(Scale, await self.sender.call(request.get(target.sub("scale"))))

    async def scale(self, target: Target[T], replicas: int) -> Scale:
        asked = request.patch(target.sub("scale"), "merge", {"spec": {"replicas": replicas}})
        return decode.decode(Scale, await self.sender.call(asked))

    async def _object(self, target: Target[T], asked: request.Request) -> T:
        found = lists.one(target.resource, await self.sender.call(asked))
        if isinstance(found, lists.Unreadable):
            raise found.problem
        return found
