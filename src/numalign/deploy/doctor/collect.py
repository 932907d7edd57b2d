"""Reads a cluster once for the doctor, with whatever rights there are.

Lists are read page by page, several at a time. What the API server refuses is recorded as unread, with the reason;
an object that cannot be decoded is recorded and skipped. Only the first call, for the version, must succeed: without it
there is no API server to ask. Configuration of kubelets comes from the reports of our agent; a kubelet without such a
report is asked for /configz through the API server, which needs the right to get nodes/proxy. Nothing is written,
except for a SelfSubjectReview, which is answered and not stored: it tells the API server's time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Final, TypeVar

import msgspec
from msgspec import structs

from numalign.api.decode.structs import Wire
from numalign.api.errors import BadObject
from numalign.api.nrt import publishers
from numalign.api.objects.meta import ObjectMeta
from numalign.api.schedulerconfig import configuration as schedulerconfig
from numalign.deploy.doctor import observed as kinds
from numalign.deploy.doctor import programs
from numalign.deploy.doctor.observed import Observed
from numalign.deploy.doctor.view import View
from numalign.kube import errors, lists, request, resources
from numalign.kube.client import Client
from numalign.kube.lists import Unreadable
from numalign.kube.request import Repeat, Request
from numalign.kube.resources import Named, Target
from numalign.kubelet import configuration

T = TypeVar("T", bound=Named)

Progress = Callable[[str, int], None]
"""Called after each page: what is read, and how many objects so far."""
ASKED_AT_ONCE: Final = 16
ASKING: Final = 10.0
"""Seconds for a kubelet to answer."""
OUR_LEASE: Final = ("kube-system", schedulerconfig.NAME)
"""Where a scheduler outside the cluster leads by default."""
MANAGERS: Final = "numalign.io/managers"
"""The attribute with which our agent describes a kubelet."""
WHOLE: Final = 0
"""A list in one piece, where its pages grew too old."""


class _Version(Wire, frozen=True):
    git_version: str = ""


class _Review(Wire, frozen=True):
    metadata: ObjectMeta = ObjectMeta()


REVIEWS: Final = resources.of("authentication.k8s.io/v1", "selfsubjectreviews", "SelfSubjectReview", _Review)


def quiet(what: str, count: int) -> None:
    """Shows no progress."""


class Collector:
    def __init__(self, client: Client, progress: Progress = quiet) -> None:
        self._client = client
        self._progress = progress
        self._unread: dict[str, str] = {}
        self._odd: list[str] = []
        self._unknown: errors.Unauthorized | None = None

    async def observe(self) -> Observed:
        """KubeError where the API server cannot be asked at all, or does not know the user."""
        version = await self._version()
        now, here = await self._time()
        listed, reports, definition, node_leases = await asyncio.gather(
            self._lists(), self._reports(), self._definition(), self._every(kinds.LEASES.within(kinds.NODE_LEASES))
        )
        self._raise_if_unknown()
        seen = Observed(
            version=version,
            now=now,
            here=here,
            reports=reports,
            definition=definition,
            node_leases=node_leases,
            **{FIELDS[plural]: found for plural, found in listed.items()},
        )
        config_maps = await self._config_maps(seen)
        seen = structs.replace(seen, config_maps=config_maps)
        leases, configz = await asyncio.gather(self._leases(seen), self._configz(seen))
        self._raise_if_unknown()
        return structs.replace(
            seen, leases=leases, configz=configz, unread=dict(sorted(self._unread.items())), odd=tuple(self._odd)
        )

    def _raise_if_unknown(self) -> None:
        """For moments when no call is under way; a token may end between two of them."""
        if self._unknown is not None:
            raise self._unknown

    async def _version(self) -> str:
        asked = Request(verb="get", method="GET", path="/version", words="version", repeat=Repeat.ALWAYS)
        try:
            raw = await self._client.sender.call(asked)
            return msgspec.json.decode(raw, type=_Version).git_version
        except errors.Forbidden as problem:
            self._missed(kinds.VERSION, problem)
        except (ValueError, RecursionError):
            self._unread[kinds.VERSION] = "the answer is no version"
        return ""

    async def _time(self) -> tuple[datetime | None, datetime]:
        clock = self._client.sender.clock
        try:
            review = await self._client.create(REVIEWS.everywhere(), {})
            answered = publishers.moment(review.metadata.creation_timestamp)
        except (errors.KubeError, BadObject):
            answered = None
        return answered or clock.wall(), clock.wall()

    async def _lists(self) -> dict[str, tuple[Any, ...]]:
        found = await asyncio.gather(*(self._every(each.everywhere()) for each in kinds.LISTED))
        return {resource.plural: things for resource, things in zip(kinds.LISTED, found, strict=True)}

    async def _reports(self) -> tuple[kinds.PublishedReport, ...]:
        """In the newest version that is served; none where the kind is not defined."""
        for resource in kinds.REPORTS:
            try:
                return await self._listed(resource.everywhere())
            except errors.NotFound:
                continue
            except errors.KubeError as problem:
                self._missed(resource.plural, problem)
                return ()
        return ()

    async def _definition(self) -> kinds.Definition | None:
        return await self._one(kinds.DEFINITIONS.at(kinds.DEFINITION))

    async def _every(self, target: Target[T]) -> tuple[T, ...]:
        try:
            return await self._listed(target)
        except errors.KubeError as problem:
            self._missed(target.words, problem)
            return ()

    async def _listed(self, target: Target[T]) -> tuple[T, ...]:
        try:
            return await self._read(target, request.PAGE)
        except errors.Gone:
            return await self._read(target, WHOLE)

    async def _read(self, target: Target[T], limit: int) -> tuple[T, ...]:
        found: list[T] = []
        odd: list[str] = []
        pages: AsyncIterator[lists.Page[T]] = self._client.pages(target, limit=limit)
        async for page in pages:
            for each in page.items:
                if isinstance(each, Unreadable):
                    odd.append(str(each.problem))
                else:
                    found.append(each)
            self._progress(target.words, len(found))
        self._odd += odd
        return tuple(found)

    async def _one(self, target: Target[T]) -> T | None:
        try:
            return await self._client.get(target)
        except errors.NotFound:
            return None
        except errors.KubeError as problem:
            self._missed(target.resource.plural, problem)
        except BadObject as problem:
            self._odd.append(str(problem))
        return None

    async def _some(self, targets: Iterable[Target[T]]) -> tuple[T, ...]:
        found = await asyncio.gather(*map(self._one, dict.fromkeys(targets)))
        return tuple(each for each in found if each is not None)

    async def _config_maps(self, seen: Observed) -> tuple[kinds.ConfigMap, ...]:
        named = (place for each in programs.schedulers_of(seen) for place in programs.config_maps(each))
        return await self._some(kinds.CONFIG_MAPS.at(name, namespace) for namespace, name in named)

    async def _leases(self, seen: Observed) -> tuple[kinds.RenewedLease, ...]:
        served = (programs.serving(each, seen) for each in programs.schedulers_of(seen))
        places = [OUR_LEASE, *(each.lease for each in served if each.election.leader_elect)]
        return await self._some(kinds.LEASES.at(name, namespace) for namespace, name in places)

    async def _configz(self, seen: Observed) -> Mapping[str, Mapping[str, object]]:
        """Of the kubelets in scope that no report of our agent describes."""
        view = View(seen)
        silent = [name for name in view.nodes if not self._is_described(view, name)]
        found: dict[str, Mapping[str, object]] = {}
        turns = asyncio.Semaphore(ASKED_AT_ONCE)

        async def ask(name: str) -> None:
            async with turns:
                # One refusal stands for all: the right is not given node by node.
                if kinds.CONFIGZ in self._unread:
                    return
                config = await self._kubelet(name)
                if config is not None:
                    found[name] = config
                    self._progress("kubelets", len(found))

        await asyncio.gather(*map(ask, silent))
        return {name: found[name] for name in silent if name in found}

    @staticmethod
    def _is_described(view: View, name: str) -> bool:
        report = view.reports.get(name)
        # Not read here: reading 5,000 reports takes a second, and `View` does it once.
        return report is not None and any(each.name == MANAGERS for each in report.attributes)

    async def _kubelet(self, name: str) -> Mapping[str, object] | None:
        target = resources.NODES.at(name).sub("proxy")
        asked = structs.replace(request.get(target), path=f"{target.path}/configz", repeat=Repeat.REFUSED)
        try:
            async with self._client.sender.clock.timeout(ASKING):
                return configuration.from_configz(await self._client.sender.call(asked))
        except errors.Forbidden as problem:
            self._missed(kinds.CONFIGZ, problem)
        except BadObject as problem:
            self._odd.append(f"Node {name}, /configz: {problem.why}")
        except (errors.KubeError, TimeoutError):
            # The check says which kubelets did not answer.
            return None
        return None

    def _missed(self, what: str, problem: errors.KubeError) -> None:
        if isinstance(problem, errors.Unauthorized):
            # Not a right that is missing: this user may not ask at all.
            self._unknown = problem
        elif isinstance(problem, errors.Forbidden):
            self._unread[what] = f"not allowed ({errors.on_one_line(problem.status.message)})"
        elif isinstance(problem, errors.NotFound):
            self._unread[what] = "the cluster has no such resource"
        else:
            self._unread[what] = str(problem)


FIELDS: Final = {
    kinds.NODES.plural: "nodes",
    kinds.PODS.plural: "pods",
    kinds.DAEMON_SETS.plural: "daemon_sets",
    kinds.DEPLOYMENTS.plural: "deployments",
    kinds.CLUSTER_ROLES.plural: "cluster_roles",
    kinds.CLUSTER_ROLE_BINDINGS.plural: "cluster_role_bindings",
    kinds.ROLES.plural: "roles",
    kinds.ROLE_BINDINGS.plural: "role_bindings",
}
"""Fields of `Observed` by plural name."""


async def observe(client: Client, progress: Progress = quiet) -> Observed:
    return await Collector(client, progress).observe()
