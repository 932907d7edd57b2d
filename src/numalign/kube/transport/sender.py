"""Sends calls: identity, rate limit, retries and metrics around the transport.

`Sender.call` returns the body of a success or raises one of `errors`; `Sender.stream` opens a watch once, as `watch`
retries by itself; `Sender.prepare` opens a connection in advance. A throttled call was not executed, so every verb is
repeated; after other failures only idempotent calls are (kube-scheduler spec 4.9 and 7.4). `Bucket` limits the rate of
calls; it is off unless a client gets one."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final

from numalign.api.errors import BadObject
from numalign.kube import errors
from numalign.kube.backoff import Exponential
from numalign.kube.clock import Clock
from numalign.kube.outage import SharedOutage
from numalign.kube.request import Repeat, Request
from numalign.kube.transport.auth import Access, Identity
from numalign.kube.transport.connection import Broken, IncomingResponse, Response
from numalign.kube.transport.dial import CannotConnect
from numalign.kube.transport.transport import DEFAULT_LIMITS, Limits, Metrics, Transport, Unwanted, Wanted, always

MOST_THROTTLED: Final = 10
MOST_FAILED: Final = 4
JITTER: Final = 0.1
DEFAULT_THROTTLE: Final = 1.0
"""Seconds to wait where a throttling server sends no Retry-After."""
LONGEST_PAUSE: Final = 60.0
BACKOFF: Final = Exponential(first=0.01, longest=LONGEST_PAUSE, factor=5.0)


def retry_pause(request: Request, problem: errors.KubeError, tries: int, chance: float) -> float | None:
    """Seconds before the next attempt, or None to give up; `tries` counts the attempts made."""
    if isinstance(problem, errors.TooManyRequests):
        blocked = problem.has_cause(errors.DISRUPTION)
        return (
            None if blocked or tries >= MOST_THROTTLED else min(problem.retry_after or DEFAULT_THROTTLE, LONGEST_PAUSE)
        )
    if tries >= MOST_FAILED or not _may_repeat(request, problem):
        return None
    if isinstance(problem, errors.Refusal) and problem.retry_after:
        return min(problem.retry_after, LONGEST_PAUSE)
    return BACKOFF.pause(tries) * (1 + JITTER * chance)


def _may_repeat(request: Request, problem: errors.KubeError) -> bool:
    if isinstance(problem, errors.Unreachable):
        harmless = request.repeat is Repeat.ALWAYS and not isinstance(problem, errors.TimedOut)
        return harmless or not problem.sent
    if isinstance(problem, errors.ServerFailure):
        return request.repeat is Repeat.ALWAYS or problem.retry_after is not None
    return False


@dataclass
class Bucket:
    rate: float
    burst: int
    _free_at: float = float("-inf")

    def take(self, now: float) -> float:
        """Takes a token; returns the seconds to wait before the call may be sent."""
        # The time at which the bucket runs empty moves on by one interval per call.
        self._free_at = max(self._free_at, now - (self.burst - 1) / self.rate)
        wait = max(0.0, self._free_at - now)
        self._free_at += 1 / self.rate
        return wait

    def take_now(self, now: float) -> bool:
        """Takes a token if there is one; returns whether there was."""
        if self._free_at > now:
            return False
        self.take(now)
        return True


NO_ANSWER: Final = "<error>"
CONTEXT_HOLDS: Final = 1.0
"""Seconds for which a TLS context is reused without checking the authority's file, which is expensive per call."""
NETWORK: Final = (CannotConnect, Broken, Unwanted, TimeoutError)
"""Failures without an answer."""


class Sender:
    def __init__(
        self, access: Access, clock: Clock, limits: Limits = DEFAULT_LIMITS, bucket: Bucket | None = None
    ) -> None:
        self.metrics = Metrics()
        self.outage = SharedOutage()
        self.clock = clock
        self._access = access
        self._bucket = bucket
        self._seconds = limits.call_seconds
        self._transport = Transport(access, limits, clock.now, self.metrics)
        self._context_of: tuple[Identity, ssl.SSLContext, float] | None = None
        """The identity it belongs to, and since when."""

    async def call(self, request: Request, wanted: Wanted = always) -> bytes:
        """The body of the answer; repeats the call as `retry_pause` allows, and while `wanted` returns True."""
        tries, refused_login = 0, False
        while True:
            tries += 1
            try:
                return await self._sent(request, wanted)
            except errors.Unauthorized:
                # The token may have been rotated: obtain the identity again (kube-scheduler spec 7.5).
                if refused_login:
                    raise
                refused_login = True
            except errors.KubeError as problem:
                pause = retry_pause(request, problem, tries, self.clock.chance())
                if pause is None:
                    raise
                await self.clock.sleep(pause)
            self.metrics.retries[request.verb] += 1

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[IncomingResponse]:
        """An answer to be read in pieces. Failures while it is read are raised as errors of this call."""
        identity = await self._admitted(request)
        started, code = self.clock.now(), NO_ANSWER
        try:
            async with self._transport.stream(request, identity.headers, self._context(identity)) as answer:
                code = str(answer.status)
                if answer.status != 200:
                    async with asyncio.timeout(self._seconds):
                        raise self._refusal(request, identity, await answer.whole())
                yield answer
        except NETWORK as problem:
            raise _in_our_words(request, problem) from None
        finally:
            self.metrics.answered(request.verb, code, self.clock.now() - started)

    async def prepare(self) -> None:
        """Opens one more connection, so that the next call need not wait for a handshake. Failures are left to that
        call."""
        with suppress(CannotConnect, BadObject):
            await self._transport.prepare(self._context(await self._access.login.identity()))

    def close(self) -> None:
        self._transport.close()

    async def _sent(self, request: Request, wanted: Wanted) -> bytes:
        identity = await self._admitted(request)
        started, code = self.clock.now(), NO_ANSWER
        try:
            response = await self._transport.send(request, identity.headers, self._context(identity), wanted)
            code = str(response.status)
        except NETWORK as problem:
            raise _in_our_words(request, problem) from None
        finally:
            self.metrics.answered(request.verb, code, self.clock.now() - started)
        if not 200 <= response.status < 300:
            raise self._refusal(request, identity, response)
        return response.body

    async def _admitted(self, request: Request) -> Identity:
        wait = self._bucket.take(self.clock.now()) if self._bucket else 0.0
        if wait:
            self.metrics.limited_seconds += wait
            await self.clock.sleep(wait)
        login = self._access.login
        try:
            return await login.identity()
        except BadObject as problem:
            if not login.has_worked:
                raise
            # An unavailable credential source is treated as an unreachable server, not as a configuration error.
            raise errors.Unreachable(request.verb, request.words, str(problem), sent=False) from None

    def _context(self, identity: Identity) -> ssl.SSLContext | None:
        if self._access.contexts is None:
            return None
        now, known = self.clock.now(), self._context_of
        if known is None or known[0] is not identity or now - known[2] >= CONTEXT_HOLDS:
            self._context_of = known = identity, self._access.contexts.context(identity.certificate), now
        return known[1]

    def _refusal(self, request: Request, identity: Identity, response: Response) -> errors.Refusal:
        if response.status == 401:
            self._access.login.refuse(identity)
        return errors.refusal(request, response.status, response.body, response.headers.get("retry-after", ""))


def _in_our_words(request: Request, problem: Exception) -> errors.KubeError:
    if isinstance(problem, CannotConnect):
        return errors.Unreachable(request.verb, request.words, str(problem), sent=False)
    if isinstance(problem, Broken):
        return errors.Unreachable(request.verb, request.words, str(problem))
    if isinstance(problem, Unwanted):
        return errors.Withdrawn(request.verb, request.words)
    return errors.TimedOut(request.verb, request.words, "no answer in time")
