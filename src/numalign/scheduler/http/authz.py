"""Authenticates and authorizes requests for the scheduler's pages with the API server.

`numalign scheduler run` puts it before all pages but the open ones. It sends TokenReview and SubjectAccessReview as
kube-scheduler does: answers are cached for ten seconds, unauthenticated requests run as `system:anonymous`, and
`system:masters` is always allowed (kube-scheduler spec 6.5). Tokens are kept as hashes only.

Reviews have a client and a rate limit of their own, so that clients of the pages cannot slow down the binding of pods.
Clients without a valid token share one budget, those with one another: strangers cannot use up the reviews of a
monitoring system. A request beyond the budget gets 429, and equal questions at the same time are asked once."""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, Generic, TypeVar

import msgspec
from msgspec import Struct, field

from numalign.api.decode import decode
from numalign.api.decode.structs import Wire
from numalign.api.errors import BadObject
from numalign.api.objects.meta import ObjectMeta
from numalign.kube import errors, request, resources
from numalign.kube.client import Client
from numalign.kube.resources import Resource
from numalign.kube.transport.auth import Access
from numalign.kube.transport.sender import Bucket
from numalign.kube.transport.transport import Limits
from numalign.process.serve import Guard, PageRequest, PageResponse

OPEN: Final = ("/healthz", "/livez", "/readyz")
KEPT: Final = 10.0
"""Seconds for which an answer of the API server counts."""
MOST_KEPT: Final = 4096
RECENT: Final = 3600.0
"""Seconds for which a client with a valid token is no stranger."""
PER_SECOND, AT_ONCE = 10.0, 20
"""Reviews that strangers can cause, and the same for clients with a valid token."""
LIMITS: Final = Limits(connections=4, call_seconds=5.0)
PRIVILEGED: Final = "system:masters"
JSON: Final = "application/json"
UNANSWERED: Final = (errors.KubeError, BadObject)
V = TypeVar("V")


class User(Wire, frozen=True):
    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = field(default_factory=dict)


ANONYMOUS: Final = User("system:anonymous", groups=("system:unauthenticated",))


class ReviewStatus(Wire, frozen=True):
    authenticated: bool = False
    allowed: bool = False
    user: User = User()


class Review(Wire, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    status: ReviewStatus = ReviewStatus()


TOKEN_REVIEWS: Final = resources.of("authentication.k8s.io/v1", "tokenreviews", "TokenReview", Review)
ACCESS_REVIEWS: Final = resources.of("authorization.k8s.io/v1", "subjectaccessreviews", "SubjectAccessReview", Review)


@asynccontextmanager
async def guarding(access: Access, open_to_all: Sequence[str] = OPEN) -> AsyncIterator[Guard]:
    """A guard with a client of its own."""
    async with Client(access, LIMITS) as client:
        yield guard(client, open_to_all)


def guard(client: Client, open_to_all: Sequence[str] = OPEN) -> Guard:
    """`open_to_all`: paths without authorization; one that ends in * includes everything below it."""
    return _Gate(client, open_to_all).refusal


class Throttled(Exception):
    """The budget for reviews is used up."""


class _Gate:
    def __init__(self, client: Client, open_to_all: Sequence[str]) -> None:
        self._client, self._open = client, open_to_all
        self._now = client.sender.clock.now
        self._users: _Kept[User | None] = _Kept(self._now, KEPT)
        self._permissions: _Kept[bool] = _Kept(self._now, KEPT)
        self._valid: _Kept[None] = _Kept(self._now, RECENT)
        """Hashes of tokens that were valid lately."""
        self._strangers = Bucket(PER_SECOND, AT_ONCE)
        self._known = Bucket(PER_SECOND, AT_ONCE)

    async def refusal(self, asked: PageRequest) -> PageResponse | None:
        if self._is_open(asked.path):
            return None
        try:
            user = await self._user(asked)
            if user is None:
                return _status(401, "Unauthorized", "Unauthorized")
            allowed = PRIVILEGED in user.groups or await self._may(user, asked)
        except Throttled:
            return _status(429, "TooManyRequests", "too many requests of unknown clients; try again later")
        except UNANSWERED:
            return PageResponse("Internal Server Error: the API server cannot be asked whether you may\n", 500)
        words = f'forbidden: User "{user.username}" cannot {asked.method.lower()} path "{asked.path}"'
        return None if allowed else _status(403, "Forbidden", words)

    def _is_open(self, path: str) -> bool:
        return any(path.startswith(each[:-1]) if each.endswith("*") else path == each for each in self._open)

    async def _user(self, asked: PageRequest) -> User | None:
        scheme, _, token = asked.headers.get("authorization", "").partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            return ANONYMOUS
        key = hashlib.sha256(token.encode()).digest()
        try:
            return await self._users.get(key, lambda: self._reviewed(token, key))
        except UNANSWERED:
            return None

    async def _reviewed(self, token: str, key: bytes) -> User | None:
        status = await self._review(
            TOKEN_REVIEWS, {"token": token}, self._known if key in self._valid else self._strangers
        )
        if not status.authenticated:
            return None
        self._valid.put(key, None)
        return status.user

    async def _may(self, user: User, asked: PageRequest) -> bool:
        what = {"path": asked.path, "verb": asked.method.lower()}
        who = {"user": user.username, "uid": user.uid, "groups": user.groups, "extra": user.extra}
        budget = self._strangers if user is ANONYMOUS else self._known

        async def reviewed() -> bool:
            spec: dict[str, Any] = msgspec.to_builtins(who | {"nonResourceAttributes": what})
            return (await self._review(ACCESS_REVIEWS, spec, budget)).allowed

        return await self._permissions.get((msgspec.json.encode(user), *what.values()), reviewed)

    async def _review(self, resource: Resource[Review], spec: dict[str, Any], budget: Bucket) -> ReviewStatus:
        if not budget.take_now(self._now()):
            raise Throttled
        # Reviews have no names, so that they are no objects to the client.
        answer = await self._client.sender.call(request.create(resource.everywhere(), {"spec": spec}))
        return decode.decode(Review, answer).status


class _Answered(Struct, Generic[V], frozen=True):
    until: float
    value: V


class _Kept(Generic[V]):
    """The newest answers, and the questions that are being asked."""

    def __init__(self, now: Callable[[], float], seconds: float) -> None:
        self._now, self._seconds = now, seconds
        self._answers: OrderedDict[object, _Answered[V]] = OrderedDict()
        self._asking: dict[object, asyncio.Task[V]] = {}

    async def get(self, key: object, ask: Callable[[], Coroutine[Any, Any, V]]) -> V:
        if key in self:
            return self._answers[key].value
        if key not in self._asking:
            self._asking[key] = asyncio.create_task(self._ask(key, ask))
        # Others may wait for the same answer when this client goes.
        return await asyncio.shield(self._asking[key])

    async def _ask(self, key: object, ask: Callable[[], Coroutine[Any, Any, V]]) -> V:
        try:
            value = await ask()
            self.put(key, value)
            return value
        finally:
            del self._asking[key]

    def __contains__(self, key: object) -> bool:
        known = self._answers.get(key)
        return known is not None and self._now() < known.until

    def put(self, key: object, value: V) -> None:
        self._answers.pop(key, None)
        self._answers[key] = _Answered(self._now() + self._seconds, value)
        if len(self._answers) > MOST_KEPT:
            self._answers.popitem(last=False)


def _status(code: int, reason: str, message: str) -> PageResponse:
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    body = msgspec.json.encode(status | {"message": message, "reason": reason, "code": code})
    return PageResponse(body.decode() + "\n", code, JSON)
