"""The scheduler's HTTP pages: health, metrics, configuration and debug pages, under kube-scheduler's paths.

`numalign scheduler run` serves them through `process.serve`, behind `authz` unless they are bound to loopback.
Health checks are kube-scheduler's (kube-scheduler spec 6.5)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import Final, TypeVar

import msgspec

from numalign import __version__
from numalign.api.errors import echo
from numalign.api.schedulerconfig.configuration import Configuration
from numalign.kube.leader.lease import Election
from numalign.kube.resources import PODS
from numalign.process import log, metrics
from numalign.process.serve import Health, Page, PageRequest, PageResponse
from numalign.scheduler import settings
from numalign.scheduler.capacity.service import SERVED, CapacityService
from numalign.scheduler.http import capacitypage
from numalign.scheduler.main import Scheduler
from numalign.scheduler.metrics import resource_lines
from numalign.scheduler.snapshot import dump, files

GRACE: Final = 20.0
"""Seconds past a lease's end for which a leader that does not renew counts as healthy."""
JSON: Final = "application/json"
PIECES: Final = 64
"""Objects or lines that are written before the event loop runs other tasks."""
AT_ONCE: Final = 16
"""Nodes written at a time before the event loop runs other tasks."""
SYNCED: Final = ("sched-handler-sync", "informer-sync")
"""The checks are the same here: an informer is synced once its handler has processed every object."""
MOST_DIGITS: Final = 4
RULE_FIELDS: Final = ("component", "pod", "node")
RULE_SECONDS: Final = 600
MOST_RULE_SECONDS: Final = 86400
LONGEST_FIELD: Final = 600
"""A namespace and a name, each of at most 253 characters, and some."""
T = TypeVar("T")


def pages(scheduler: Scheduler, config: Configuration, election: Election | None) -> dict[str, Page]:
    now = scheduler.now
    watchdog = {"leaderElection": lambda: election is None or _is_renewing(election, now())}
    ready = watchdog | dict.fromkeys(SYNCED, lambda: scheduler.watched.has_synced)
    health = Health()
    metrics.register_start_time(health.registry)
    pages: dict[str, Page] = {
        "/metrics": lambda _: PageResponse(scheduler.metrics.registry.text(), content_type=metrics.CONTENT_TYPE),
        "/metrics/slis": lambda _: PageResponse(health.registry.text(), content_type=metrics.CONTENT_TYPE),
        "/metrics/resources": lambda _: _resources(scheduler),
        "/configz": lambda _: _json({"kubescheduler.config.k8s.io": settings.plain(config)}),
        "/version": lambda _: _json({"version": __version__}),
        "/debug/state": lambda asked: _state(scheduler, asked),
        "/debug/decisions": lambda asked: _json(dump.decisions(scheduler, asked.query.get("pod", ""))),
        "/debug/dump": lambda _: _dump(scheduler),
        "/debug/flags/v": _verbosity,
    }
    for path, checks in (("/healthz", watchdog), ("/livez", {"ping": lambda: True}), ("/readyz", ready)):
        pages |= health.pages(path, checks)
    return pages


def posts(scheduler: Scheduler) -> dict[str, Page]:
    """The pages that answer POST requests."""
    service = CapacityService(scheduler.cluster, scheduler.profiles, scheduler.config, SERVED)

    async def capacity(asked: PageRequest) -> PageResponse:
        if not scheduler.watched.has_synced:
            return PageResponse("the caches of the scheduler are not synced yet\n", 503)
        return await capacitypage.answered(service, asked.body)

    return {capacitypage.PATH: capacity}


async def _state(scheduler: Scheduler, asked: PageRequest) -> PageResponse:
    """The state page. The query `nodes` includes all nodes; scheduling continues while they are collected."""
    state = dump.state(scheduler, asked.query.get("pod", ""), asked.query.get("node", ""))
    if "nodes" not in asked.query:
        return _json(state)
    nodes = []
    for place, name in enumerate(dump.names_of_nodes(scheduler)):
        nodes.append(dump.of_node(scheduler, name))
        if place % AT_ONCE == 0:
            await asyncio.sleep(0)
    return _json(state | {"nodes": nodes})


async def _dump(scheduler: Scheduler) -> PageResponse:
    """The dump. It is taken at one moment and written while scheduling continues."""
    pieces = await _unhurried(files.pieces(dump.taken(scheduler)))
    return PageResponse(b"".join(pieces), content_type=JSON)


async def _resources(scheduler: Scheduler) -> PageResponse:
    """The resource metrics of pods. Only the leader serves them, because standby replicas know the same pods."""
    pods = tuple(scheduler.watched.informers[PODS.plural].store) if scheduler.leads() else ()
    lines = await _unhurried(resource_lines(pods)) if pods else []
    return PageResponse("".join(f"{line}\n" for line in lines), content_type=metrics.CONTENT_TYPE)


async def _unhurried(pieces: Iterable[T]) -> list[T]:
    """Yields the pieces and lets the event loop run other tasks in between."""
    found = list[T]()
    for place, piece in enumerate(pieces):
        found.append(piece)
        if place % PIECES == 0:
            await asyncio.sleep(0)
    return found


def _is_renewing(election: Election, now: float) -> bool:
    """Whether the leader renews its lease. A leader that neither renews nor ends is stuck."""
    leads_for = election.left(now)
    return leads_for == float("-inf") or leads_for > -(election.terms.lease - election.terms.renew + GRACE)


def _verbosity(asked: PageRequest) -> PageResponse:
    """GET shows the verbosity and its rules. PUT sets it: the body is a number, the query says for what, for how long.

    Without `pod`, `node`, `component` and `seconds`, it is that of the process, as kube-scheduler's page sets it."""
    if asked.method != "PUT":
        return _json(_verbosity_state())
    text, query = asked.body.decode("ascii", "replace").strip(), asked.query
    if not text.isdecimal() or len(text) > MOST_DIGITS:
        return PageResponse("PUT a number: 4 and more is debugging\n", 400)
    unknown = [name for name in query if name not in (*RULE_FIELDS, "seconds")]
    if unknown or any(len(value) > LONGEST_FIELD for value in query.values()):
        return PageResponse(f"the query may have {', '.join(RULE_FIELDS)} and seconds\n", 400)
    if not query:
        log.set_verbosity(int(text))
        return PageResponse(f"successfully set verbosity to {text}\n")
    component = query.get("component", "")
    if component and not log.is_component(component):
        why = "is no package or module of numalign, such as scheduler.bind; the log names those that write lines"
        return PageResponse(f"component {echo(component)} {why}\n", 400)
    seconds = query.get("seconds", str(RULE_SECONDS))
    if not seconds.isdecimal() or len(seconds) > MOST_DIGITS + 1 or not 0 <= int(seconds) <= MOST_RULE_SECONDS:
        return PageResponse(f"seconds is a whole number from 0, which ends a rule, to {MOST_RULE_SECONDS}\n", 400)
    return _verbosity_rule(int(text), {name: query.get(name, "") for name in RULE_FIELDS}, int(seconds))


def _verbosity_rule(verbosity: int, fields: dict[str, str], seconds: int) -> PageResponse:
    rule = log.VERBOSITY.rule(verbosity, seconds, **fields)
    words = " ".join(f"{name}={value}" for name, value in fields.items() if value) or "everything"
    if not seconds:
        found = log.VERBOSITY.remove(rule.selector)
        return PageResponse(f"{'ended' if found else 'no'} rule for {words}\n", 200 if found else 404)
    try:
        log.VERBOSITY.add(rule)
    except log.TooManyRules as problem:
        return PageResponse(f"{problem}\n", 429)
    return PageResponse(f"successfully set verbosity to {verbosity} for {words} for {seconds} s\n")


def _verbosity_state() -> dict[str, object]:
    now = time.monotonic()
    rules = [
        {"verbosity": each.verbosity, **dict(zip(RULE_FIELDS, each.selector, strict=True))}
        | {"secondsLeft": round(each.until - now)}
        for each in log.VERBOSITY.rules()
    ]
    return {"verbosity": log.VERBOSITY.base, "rules": rules}


def _json(thing: object) -> PageResponse:
    return PageResponse(msgspec.json.encode(thing, enc_hook=str).decode(), content_type=JSON)
