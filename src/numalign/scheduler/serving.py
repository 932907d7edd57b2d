"""The scheduler's pages: health, metrics, configuration, and a look inside, under the stock scheduler's paths.

`numalign scheduler run` hands them to `process.serve`. Health is open to all; everything else is only for those whom
the API server knows and allows, asked by TokenReview and SubjectAccessReview (kube-scheduler spec 6.5), or for anybody
where the server listens on the loopback alone and is told so."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from numalign.api.meta import ObjectMeta
from numalign.api.schedulerconfig.configuration import Configuration
from numalign.api.wire import Wire
from numalign.kube import errors, resources
from numalign.kube.client import Client
from numalign.kube.lease import Election
from numalign.process import log, metrics
from numalign.process.serve import Answer, Asked, Guard, Page
from numalign.scheduler import dumping
from numalign.scheduler.main import Scheduler

GRACE: Final = 20.0
"""Seconds past a lease's end for which a leader that does not renew counts as healthy."""
JSON: Final = "application/json"
OPEN: Final = ("/healthz", "/livez", "/readyz")
Check = Callable[[], bool]


class ReviewStatus(Wire, frozen=True):
    authenticated: bool = False
    allowed: bool = False
    user: dict[str, Any] = msgspec.field(default_factory=dict)


class Review(Wire, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    status: ReviewStatus = ReviewStatus()


TOKEN_REVIEWS: Final = resources.of("authentication.k8s.io/v1", "tokenreviews", "TokenReview", Review)
ACCESS_REVIEWS: Final = resources.of("authorization.k8s.io/v1", "subjectaccessreviews", "SubjectAccessReview", Review)


def pages(scheduler: Scheduler, config: Configuration, election: Election | None) -> dict[str, Page]:
    now = scheduler.now
    watchdog = {"leaderElection": lambda: election is None or _is_renewing(election, now())}
    ready = watchdog | {"informer-sync": lambda: scheduler.watched.has_synced}
    told: dict[str, Page] = {
        "/metrics": lambda _: Answer(scheduler.metrics.registry.text(), content_type=metrics.CONTENT_TYPE),
        "/configz": lambda _: _json({"kubescheduler.config.k8s.io": msgspec.to_builtins(config, enc_hook=str)}),
        "/debug/state": lambda asked: _json(dumping.state(scheduler, asked.query.get("pod", ""))),
        "/debug/flags/v": _verbosity,
    }
    for path, checks in (("/healthz", watchdog), ("/livez", {"ping": lambda: True}), ("/readyz", ready)):
        told[path] = told[f"{path}/"] = _health(path, checks)
    return told


def guard(client: Client) -> Guard:
    """Asks the API server who it is, and whether they may."""

    async def asked_server(asked: Asked) -> Answer | None:
        if asked.path.startswith(OPEN):
            return None
        scheme, _, token = asked.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            return Answer("Unauthorized\n", 401)
        try:
            user = await _user(client, token)
            if user is None:
                return Answer("Unauthorized\n", 401)
            allowed = await _is_allowed(client, user, asked)
        except errors.KubeError:
            return Answer("the API server cannot be asked who you are\n", 500)
        return None if allowed else Answer(f'Forbidden: cannot {_verb(asked)} path "{asked.path}"\n', 403)

    return asked_server


async def _user(client: Client, token: str) -> Mapping[str, Any] | None:
    review = await client.create(TOKEN_REVIEWS.everywhere(), {"spec": {"token": token.strip()}})
    return review.status.user if review.status.authenticated else None


async def _is_allowed(client: Client, user: Mapping[str, Any], asked: Asked) -> bool:
    who = {"user": user.get("username", ""), "groups": user.get("groups") or [], "uid": user.get("uid", "")}
    what = {"nonResourceAttributes": {"path": asked.path, "verb": _verb(asked)}}
    return (await client.create(ACCESS_REVIEWS.everywhere(), {"spec": who | what})).status.allowed


def _verb(asked: Asked) -> str:
    return "get" if asked.method == "HEAD" else asked.method.lower()


def _health(path: str, checks: Mapping[str, Check]) -> Page:
    def page(asked: Asked) -> Answer:
        name = asked.path.removeprefix(path).strip("/")
        if name and name not in checks:
            return Answer(f"404 check {name} is not known\n", 404)
        left_out = asked.query.get("exclude", "")
        results = {each: checks[each]() for each in checks if each != left_out and (not name or each == name)}
        lines = [f"[+]{each} ok" if ok else f"[-]{each} failed: reason withheld" for each, ok in results.items()]
        if not all(results.values()):
            return Answer("\n".join([*lines, f"{path[1:]} check failed", ""]), 500)
        return Answer("\n".join([*lines, f"{path[1:]} check passed", ""]) if "verbose" in asked.query else "ok")

    return page


def _is_renewing(election: Election, now: float) -> bool:
    """A leader that has not renewed for long and has not ended either hangs."""
    leads_for = election.left(now)
    return leads_for == float("-inf") or leads_for > -(election.terms.lease - election.terms.renew + GRACE)


def _verbosity(asked: Asked) -> Answer:
    text = asked.body.decode("ascii", "replace").strip()
    if asked.method != "PUT" or not text.isdecimal():
        return Answer("PUT a number: 4 and more is debugging\n", 400)
    log.set_verbosity(int(text))
    return Answer(f"successfully set verbosity to {text}\n")


def _json(thing: object) -> Answer:
    return Answer(msgspec.json.encode(thing, enc_hook=str).decode(), content_type=JSON)
