"""Runs leader election: acquires the lease, runs the leader's work, renews the lease, and releases it.

The scheduler's main calls `lead`. The work is cancelled as soon as leadership cannot be proven, and `Election.leads`
returns False from then on. Use a client of its own, so that a burst of bindings cannot delay a renewal (kube-scheduler
spec 6.7)."""

import asyncio
import logging
import math
import socket
import uuid
from collections.abc import Awaitable, Callable
from typing import Final

from numalign.api.objects.meta import ObjectMeta
from numalign.kube import errors
from numalign.kube.client import Client
from numalign.kube.events import events
from numalign.kube.events.events import Occurrence, Reporter
from numalign.kube.leader.lease import USUAL, Election, Terms
from numalign.kube.resources import EVENTS, LEASES, Lease, ObjectReference, Target

LOG: Final = logging.getLogger(__name__)
REASON: Final = "LeaderElection"
PATIENCE: Final = 2.0
"""Seconds that writing an event about the lease may take."""


class LeadershipLost(Exception):
    """The lease was not renewed in time: the process must exit, and start again as a candidate."""


def own_identity() -> str:
    return f"{socket.gethostname()}_{uuid.uuid4()}"


def election(name: str, namespace: str, terms: Terms = USUAL, identity: str = "") -> Election:
    return Election(identity or own_identity(), ObjectMeta(name=name, namespace=namespace), terms)


async def lead(
    client: Client, candidate: Election, work: Callable[[], Awaitable[None]], reporter: Reporter | None = None
) -> None:
    """Waits for leadership, then runs `work`. LeadershipLost if it is lost before `work` ends.

    `reporter`: the identity of events about the lease; None: no events."""
    await acquire(client, candidate)
    LOG.info("%s became leader of lease %s", candidate.identity, candidate.place.full_name)
    writing = asyncio.ensure_future(_write_event(client, candidate, reporter, "became leader"))
    working = asyncio.ensure_future(work())
    renewing = asyncio.ensure_future(_renew_until_lost(client, candidate))
    try:
        await asyncio.wait((working, renewing), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise LeadershipLost(
                f"{candidate.identity} stopped leading: not renewed within {candidate.terms.renew:g} s"
            )
        await working
    finally:
        await _cancelled(working, renewing, writing)
        await release(client, candidate)
        await _write_event(client, candidate, reporter, "stopped leading")


async def acquire(client: Client, candidate: Election) -> None:
    clock, awaited = client.sender.clock, None
    while not await attempt(client, candidate):
        if candidate.holder and candidate.holder != awaited:
            awaited = candidate.holder
            LOG.info("Waiting for lease %s, which %s holds", candidate.place.full_name, awaited)
        await clock.sleep(candidate.pause(clock.chance()))


async def attempt(client: Client, candidate: Election, seconds: float = math.inf) -> bool:
    """Makes one attempt to acquire or renew the lease, within `seconds`; False: another candidate holds it."""
    clock = client.sender.clock
    try:
        async with clock.timeout(min(seconds, max(1.0, candidate.terms.renew / 2))):
            found = await _attempted(client, candidate)
    except errors.Conflict as problem:
        # Another candidate was faster, which is how an election goes.
        LOG.info("Failed to update lease: %s", problem)
        candidate.doubts()
        return False
    except (errors.KubeError, TimeoutError) as problem:
        if (lasted := candidate.outage.failed(clock.now())) is not None:
            words, since = str(problem) or "no answer in time", f"; failing for {lasted:.0f} s" if lasted else ""
            LOG.warning("Failed to update lease: %s%s%s", words, _hint(problem, candidate), since)
        candidate.doubts()
        return False
    if (lasted := candidate.outage.worked(clock.now())) is not None:
        LOG.info("Lease %s can be written again after %.0f s", candidate.place.full_name, lasted)
    return found


def _hint(problem: errors.KubeError | TimeoutError, candidate: Election) -> str:
    if isinstance(problem, errors.NotFound):
        return f"; create the namespace {candidate.place.namespace}, or set leaderElection.resourceNamespace"
    if isinstance(problem, errors.Forbidden):
        return "; the service account needs get, create and update of leases there"
    return ""


async def release(client: Client, candidate: Election) -> None:
    """Releases the lease, best effort: otherwise another candidate takes over when it expires."""
    lease = candidate.released(client.sender.clock.wall())
    if lease is None:
        return
    try:
        async with client.sender.clock.timeout(candidate.terms.renew):
            await client.update(_target(lease), lease)
    except (errors.KubeError, TimeoutError) as problem:
        LOG.warning("Failed to release lease: %s", str(problem) or "no answer in time")


async def _write_event(client: Client, candidate: Election, reporter: Reporter | None, what: str) -> None:
    """Writes an event about the lease, as kube-scheduler does; best effort, within `PATIENCE`."""
    if reporter is None:
        return
    clock, lease = client.sender.clock, candidate.place
    regarding = ObjectReference(
        api_version=LEASES.api_version, kind=LEASES.kind, namespace=lease.namespace, name=lease.name, uid=candidate.uid
    )
    note = f"{candidate.identity} {what}"
    event = events.event(
        Occurrence(regarding=regarding, reason=REASON, action=REASON, note=note), reporter, clock.wall()
    )
    try:
        async with clock.timeout(PATIENCE):
            await client.create(EVENTS.within(lease.namespace), event)
    except (errors.KubeError, TimeoutError) as problem:
        LOG.info("Failed to write event: %s", str(problem) or "no answer in time")


async def _renew_until_lost(client: Client, candidate: Election) -> None:
    clock = client.sender.clock
    while (left := candidate.left(clock.now())) > 0:
        await clock.sleep(min(candidate.terms.retry, left))
        # Bounded by the remaining time, so that a silent server cannot delay past the deadline.
        await attempt(client, candidate, candidate.left(clock.now()))


async def _attempted(client: Client, candidate: Election) -> bool:
    clock = client.sender.clock
    if candidate.must_read:
        candidate.saw(await _read(client, candidate), clock.now())
    sent_at = clock.now()
    wanted = candidate.wanted(sent_at, clock.wall())
    if wanted is None:
        return False
    exists = bool(wanted.metadata.resource_version)
    written = await (client.update(_target(wanted), wanted) if exists else _created(client, wanted))
    candidate.wrote(written, sent_at, clock.now())
    return True


async def _read(client: Client, candidate: Election) -> Lease | None:
    try:
        return await client.get(LEASES.at(candidate.place.name, candidate.place.namespace))
    except errors.NotFound:
        return None


async def _created(client: Client, lease: Lease) -> Lease:
    return await client.create(LEASES.within(lease.metadata.namespace), lease)


def _target(lease: Lease) -> Target[Lease]:
    return LEASES.at(lease.metadata.name, lease.metadata.namespace)


async def _cancelled(*tasks: asyncio.Future[None]) -> None:
    """Cancels the tasks and waits for them; their errors are ignored.

    All are cancelled before the first wait: if the caller is cancelled once more meanwhile, none of them goes on."""
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled():
            task.exception()
