"""The calls of the deployer to an API server: objects as plain trees, kinds found by discovery.

`applying`, `removing` and `waiting` hold a `Server`. It knows where every kind of a set is served, so objects of any
kind can be applied, also those of definitions that are not installed on every cluster."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct

from numalign.api.decode.structs import Wire
from numalign.api.objects.meta import ObjectMeta
from numalign.deploy.apply import objects
from numalign.deploy.apply.objects import Ref, Tree
from numalign.kube import errors, request, resources
from numalign.kube.client import Client
from numalign.kube.request import EVERYTHING, Repeat, Request, Selection
from numalign.kube.resources import DeleteOptions, Preconditions, Resource, Target

MANAGER: Final = "numalign-deployer"
AT_ONCE: Final = 8
"""Calls under way at the same time."""
SSAR: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

T = TypeVar("T")
R = TypeVar("R")


class DiscoveredKind(Wire, frozen=True):
    """A kind as discovery describes it."""

    name: str = ""
    kind: str = ""
    namespaced: bool = False


class _Kinds(Wire, frozen=True):
    resources: tuple[DiscoveredKind, ...] = ()


class Plain(Wire, frozen=True):
    """Stands for any object where only its address counts."""

    metadata: ObjectMeta = ObjectMeta()


class AccessQuestion(Struct, frozen=True, order=True):
    """A question to the server: may this user do this?"""

    verb: str
    group: str
    resource: str
    namespace: str = ""

    def __str__(self) -> str:
        what = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{self.verb} {what}" + (f" in {self.namespace}" if self.namespace else "")


class Server:
    def __init__(self, client: Client, manager: str = MANAGER) -> None:
        self.client = client
        self.manager = manager
        self.clock = client.sender.clock
        self._kinds: dict[str, dict[str, DiscoveredKind]] = {}

    async def learn(self, api_versions: Iterable[str]) -> None:
        """Asks which kinds these API versions have; one that is not served has none."""
        unknown = sorted(set(api_versions) - self._kinds.keys())
        for version, found in zip(unknown, await self.all(unknown, self._discovered), strict=True):
            self._kinds[version] = found

    def forget(self, api_version: str) -> None:
        """A definition was installed, so that the next `learn` has to ask again."""
        self._kinds.pop(api_version, None)

    async def _discovered(self, api_version: str) -> dict[str, DiscoveredKind]:
        path = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        try:
            raw = await self.client.sender.call(_get(path, f"the kinds of {api_version}"))
        except errors.NotFound:
            return {}
        found = msgspec.json.decode(raw, type=_Kinds).resources
        return {each.kind: each for each in found if "/" not in each.name}

    def kind(self, which: Ref) -> DiscoveredKind | None:
        return self._kinds.get(which.api_version, {}).get(which.kind)

    def target(self, which: Ref) -> Target[Plain]:
        known = self.kind(which) or DiscoveredKind(f"{which.kind.lower()}s", which.kind, bool(which.namespace))
        group, _, version = which.api_version.rpartition("/")
        found = Resource(
            group, version, known.name, which.kind, Plain, lambda raw: msgspec.json.decode(raw, type=Plain)
        )
        return found.at(which.name, which.namespace if known.namespaced else "")

    async def get(self, which: Ref) -> Tree | None:
        """None where it does not exist, or its kind is not served."""
        await self.learn([which.api_version])
        if self.kind(which) is None:
            return None
        try:
            return await self._tree(request.get(self.target(which)))
        except errors.NotFound:
            return None

    async def every(
        self, api_version: str, kind: str, namespace: str = "", selection: Selection = EVERYTHING
    ) -> list[Tree]:
        await self.learn([api_version])
        known = self._kinds[api_version].get(kind)
        if known is None:
            return []
        items: list[Tree] = []
        token, more = "", True
        target = self.target(Ref(api_version, kind, "", namespace))
        while more:
            page = await self._tree(request.page(target, selection, token=token))
            items += page.get("items") or []
            token = objects.at(page, "metadata", "continue") or ""
            more = bool(token)
        return items

    async def apply(self, tree: Tree, *, force: bool = False, dry_run: bool = False) -> Tree:
        return await self._tree(
            request.apply(self.target(objects.ref(tree)), tree, self.manager, force, dry_run=dry_run)
        )

    async def create(self, tree: Tree) -> Tree:
        which = objects.ref(tree)
        target = self.target(which)
        return await self._tree(request.create(Target(target.resource, target.namespace), tree))

    async def update(self, tree: Tree) -> Tree:
        return await self._tree(request.update(self.target(objects.ref(tree)), tree))

    async def delete(self, which: Ref, uid: str) -> None:
        """In the foreground: the object goes after everything that it owns. Only the object of this uid."""
        options = DeleteOptions(propagation_policy="Foreground", preconditions=Preconditions(uid=uid))
        asked = request.delete(self.target(which), options)
        # With the uid, a repeated call cannot delete a new object of the same name.
        await self.client.sender.call(msgspec.structs.replace(asked, repeat=Repeat.ALWAYS))

    async def may(self, right: AccessQuestion) -> bool:
        attributes = {"verb": right.verb, "group": right.group, "resource": right.resource}
        if right.namespace:
            attributes["namespace"] = right.namespace
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes},
        }
        asked = Request(
            verb="create",
            method="POST",
            path=SSAR,
            words="SelfSubjectAccessReview",
            body=msgspec.json.encode(body),
            repeat=Repeat.ALWAYS,
        )
        return bool(objects.at(await self._tree(asked), "status", "allowed"))

    async def version(self) -> str:
        """The server's gitVersion."""
        found = await self._tree(_get("/version", "the version of the server"))
        return str(found.get("gitVersion") or "")

    async def api_versions(self) -> list[str]:
        """Every group with its versions that the cluster serves, such as apps/v1."""
        found = await self._tree(_get("/apis", "the groups of the server"))
        groups = [each for each in found.get("groups") or () if isinstance(each, dict)]
        return [str(version.get("groupVersion")) for each in groups for version in each.get("versions") or ()]

    async def all(self, things: Iterable[T], do: Callable[[T], Awaitable[R]]) -> list[R]:
        """The answers in the order of the questions, a few calls at a time; the first error is raised."""
        limit = asyncio.Semaphore(AT_ONCE)

        async def one(thing: T) -> R:
            async with limit:
                return await do(thing)

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(one(each)) for each in things]
        except BaseExceptionGroup as problems:
            raise _first(problems) from None
        return [task.result() for task in tasks]

    async def _tree(self, asked: Request) -> Tree:
        found: Any = msgspec.json.decode(await self.client.sender.call(asked))
        if not isinstance(found, dict):
            raise errors.ServerFailure(
                asked.verb, asked.words, 500, resources.Status(message="the answer is no object")
            )
        return found


def _get(path: str, words: str) -> Request:
    return Request(verb="get", method="GET", path=path, words=words, repeat=Repeat.ALWAYS)


def _first(problems: BaseExceptionGroup[BaseException]) -> BaseException:
    first = problems.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first
