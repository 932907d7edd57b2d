"""Authenticates and authorizes requests for the scheduler's pages with the API server.

`pages` puts it before all pages but the open ones. It sends TokenReview and SubjectAccessReview as kube-scheduler
does: answers are cached for ten seconds, unauthenticated requests run as `system:anonymous`, and `system:masters` is
always allowed (kube-scheduler spec 6.5). Tokens are kept as hashes only."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
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
from numalign.process.serve import Guard, PageRequest, PageResponse

OPEN: Final = ("/healthz", "/livez", "/readyz")
KEPT: Final = 10.0
"""Seconds for which an answer of the API server counts."""
MOST_KEPT: Final = 4096
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


def guard(client: Client, open_to_all: Sequence[str] = OPEN) -> Guard:
    """`open_to_all`: paths without authorization; one that ends in * includes everything below it."""
    return _Gate(client, open_to_all).refusal


class _Gate:
    def __init__(self, client: Client, open_to_all: Sequence[str]) -> None:
        self._client, self._open = client, open_to_all
        now = client.sender.clock.now
        self._users: _Kept[User | None] = _Kept(now)
        self._permissions: _Kept[bool] = _Kept(now)

    async def refusal(self, asked: PageRequest) -> PageResponse | None:
        if self._is_open(asked.path):
            return None
        try:
            user = await self._user(asked)
        except UNANSWERED:
            user = None
        if user is None:
            return _status(401, "Unauthorized", "Unauthorized")
        try:
            allowed = PRIVILEGED in user.groups or await self._may(user, asked)
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
        return await self._users.get(hashlib.sha256(token.encode()).digest(), lambda: self._reviewed(token))

    async def _reviewed(self, token: str) -> User | None:
        status = await self._review(TOKEN_REVIEWS, {"token": token})
        return status.user if status.authenticated else None

    async def _may(self, user: User, asked: PageRequest) -> bool:
        what = {"path": asked.path, "verb": asked.method.lower()}
        who = {"user": user.username, "uid": user.uid, "groups": user.groups, "extra": user.extra}

        async def reviewed() -> bool:
            spec: dict[str, Any] = msgspec.to_builtins(who | {"nonResourceAttributes": what})
            return (await self._review(ACCESS_REVIEWS, spec)).allowed

        return await self._permissions.get((msgspec.json.encode(user), *what.values()), reviewed)

    async def _review(self, resource: Resource[Review], spec: dict[str, Any]) -> ReviewStatus:
        # Reviews have no names, so the client cannot handle them as objects.
        answer = await self._client.sender.call(request.create(resource.everywhere(), {"spec": spec}))
        return decode.decode(Review, answer).status


class _Answered(Struct, Generic[V], frozen=True):
    until: float
    value: V


class _Kept(Generic[V]):
    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._answers: OrderedDict[object, _Answered[V]] = OrderedDict()

    async def get(self, key: object, ask: Callable[[], Awaitable[V]]) -> V:
        known = self._answers.get(key)
        if known is not None and self._now() < known.until:
            return known.value
        value = await ask()
        self._answers.pop(key, None)
        self._answers[key] = _Answered(self._now() + KEPT, value)
        if len(self._answers) > MOST_KEPT:
            self._answers.popitem(last=False)
        return value


def _status(code: int, reason: str, message: str) -> PageResponse:
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    body = msgspec.json.encode(status | {"message": message, "reason": reason, "code": code})
    return PageResponse(body.decode() + "\n", code, JSON)
