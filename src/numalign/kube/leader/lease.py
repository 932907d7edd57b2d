"""The state machine of leader election: which Lease to write, and whether this candidate leads now.

`leading` performs the writes. The rules are kube-scheduler's (kube-scheduler spec 6.7): a changed record is timed by
the local clock from when it was seen, never by the times in it. `leads(now)` is False from the renew deadline on,
counted from before the last successful renewal was sent. Other candidates wait for the longer lease duration, counted
from after they saw the record. So two candidates never lead at the same time."""

import math
from datetime import datetime
from typing import Final

import msgspec
from msgspec import Struct

from numalign.api.objects.meta import ObjectMeta
from numalign.kube.clock import microtime
from numalign.kube.outage import Outage
from numalign.kube.resources import Lease, LeaseSpec

JITTER: Final = 1.2


class Terms(Struct, frozen=True, kw_only=True):
    """The durations, in seconds. ValueError where two candidates could lead at once."""

    lease: float = 15.0
    renew: float = 10.0
    retry: float = 2.0

    def __post_init__(self) -> None:
        if not self.lease > self.renew:
            raise ValueError("the lease duration must be longer than the renew deadline")
        if not self.renew > JITTER * self.retry:
            raise ValueError(f"the renew deadline must be longer than {JITTER} retry periods")
        if not (self.retry > 0 and self.lease >= 1):
            raise ValueError("the retry period must be above 0 s, and the lease duration at least 1 s")


USUAL: Final = Terms()


class Election:
    """One candidate. The caller reports the record (`saw`), gets the record to write (`wanted`), and reports success
    (`wrote`)."""

    def __init__(self, identity: str, place: ObjectMeta, terms: Terms = USUAL) -> None:
        self.identity = identity
        self.terms = terms
        self.place = place
        self._seen: Lease | None = None
        self._seen_at = float("-inf")
        self._renewed_at = float("-inf")
        self._may_skip_look = False
        self.outage = Outage()
        """Of the writes to the lease."""
        self.follows_another = False
        """Whether another candidate was seen to hold the lease."""

    def leads(self, now: float) -> bool:
        """Whether this candidate leads now; check it before every action that only a leader may take."""
        return self.left(now) > 0

    def left(self, now: float) -> float:
        """Seconds until leadership ends if no further renewal succeeds."""
        return self._renewed_at + self.terms.renew - now

    @property
    def holder(self) -> str:
        return (self._seen.spec.holder_identity or "") if self._seen else ""

    @property
    def uid(self) -> str:
        """The uid of the record; empty if unknown."""
        return self._seen.metadata.uid if self._seen else ""

    @property
    def must_read(self) -> bool:
        """Whether to read the record first. A leader renews from its last write, except after a failure."""
        return not self._may_skip_look

    def saw(self, lease: Lease | None, now: float) -> None:
        """Takes the record as read; None: it does not exist."""
        if lease is None or self._seen is None or lease.spec != self._seen.spec:
            self._seen_at = now
        self._seen = lease
        self.follows_another = self.follows_another or (lease is not None and self.holder != self.identity)

    def wanted(self, now: float, wall: datetime) -> Lease | None:
        """The record to write, or None while another candidate holds it."""
        if self._is_held_by_another(now):
            return None
        old = self._seen.spec if self._seen else LeaseSpec()
        keeps = self.holder == self.identity
        moment = microtime(wall)
        transitions = old.lease_transitions or 0
        spec = LeaseSpec(
            holder_identity=self.identity,
            # Rounded up: others wait for this duration, which must be longer than this candidate may act.
            lease_duration_seconds=math.ceil(self.terms.lease),
            acquire_time=old.acquire_time if keeps else moment,
            renew_time=moment,
            lease_transitions=transitions if keeps or self._seen is None else transitions + 1,
        )
        return Lease(self._metadata(), spec)

    def wrote(self, lease: Lease, sent_at: float, now: float) -> None:
        """The server accepted the record."""
        self._seen, self._seen_at = lease, now
        self._renewed_at = sent_at
        self._may_skip_look = True

    def doubts(self) -> None:
        """A write failed or got no answer: the record must be read before the next one."""
        self._may_skip_look = False

    def released(self, wall: datetime) -> Lease | None:
        """The record that releases leadership, or None where this candidate does not hold it."""
        if self.holder != self.identity or self._seen is None:
            return None
        moment = microtime(wall)
        spec = msgspec.structs.replace(
            self._seen.spec, holder_identity="", lease_duration_seconds=1, acquire_time=moment, renew_time=moment
        )
        self._renewed_at = float("-inf")
        return Lease(self._metadata(), spec)

    def pause(self, chance: float) -> float:
        """Seconds until the next attempt of a follower; a leader renews every `terms.retry`."""
        return self.terms.retry * (1 + JITTER * chance)

    def _is_held_by_another(self, now: float) -> bool:
        # The holder's duration counts; this candidate's where the record has none.
        spec = self._seen.spec if self._seen else LeaseSpec()
        promised = self.terms.lease if spec.lease_duration_seconds is None else spec.lease_duration_seconds
        return self.holder not in ("", self.identity) and now < self._seen_at + promised

    def _metadata(self) -> ObjectMeta:
        """With the last known resourceVersion, so that the server refuses the write if another candidate wrote
        first."""
        return self._seen.metadata if self._seen else self.place
