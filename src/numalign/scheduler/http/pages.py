"""The scheduler's HTTP pages: health, metrics, configuration and debug pages, under kube-scheduler's paths.

`numalign scheduler run` serves them through `process.serve`, behind `authz` unless they are bound to loopback.
Health checks are kube-scheduler's (kube-scheduler spec 6.5)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final, TypeVar

import msgspec

from numalign.api.schedulerconfig.configuration import Configuration
from numalign.kube.leader.lease import Election
from numalign.kube.resources import PODS
from numalign.process import log, metrics
from numalign.process.serve import Health, Page, PageRequest, PageResponse
from numalign.scheduler import settings
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
        "/debug/state": lambda asked: _state(scheduler, asked),
        "/debug/decisions": lambda asked: _json(dump.decisions(scheduler, asked.query.get("pod", ""))),
        "/debug/dump": lambda _: _dump(scheduler),
        "/debug/flags/v": _verbosity,
    }
    for path, checks in (("/healthz", watchdog), ("/livez", {"ping": lambda: True}), ("/readyz", ready)):
        pages |= health.pages(path, checks)
    return pages


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
    text = asked.body.decode("ascii", "replace").strip()
    if asked.method != "PUT" or not text.isdecimal() or len(text) > MOST_DIGITS:
        return PageResponse("PUT a number: 4 and more is debugging\n", 400)
    log.set_verbosity(int(text))
    return PageResponse(f"successfully set verbosity to {text}\n")


def _json(thing: object) -> PageResponse:
    return PageResponse(msgspec.json.encode(thing, enc_hook=str).decode(), content_type=JSON)
