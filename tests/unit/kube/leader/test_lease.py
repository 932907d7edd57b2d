"""Leadership: never two at once, never without a leader for long."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import strategies as st

from numalign.api.objects.meta import ObjectMeta
from numalign.kube.leader.lease import Election, Terms
from numalign.kube.resources import Lease, LeaseSpec
from tests.campaigns import holds_for
from tests.unit.kube.clocks import START

PLACE = ObjectMeta(name="numalign", namespace="kube-system")


def lease(holder: str, version: int = 1, duration: int | None = 15, renew: str = "t0") -> Lease:
    spec = LeaseSpec(holder, duration, acquire_time="t0", renew_time=renew, lease_transitions=4)
    return Lease(msgspec.structs.replace(PLACE, resource_version=str(version)), spec)


def test_where_there_is_no_lease_one_is_made() -> None:
    me = Election("me", PLACE)
    me.saw(None, 0.0)
    wanted = me.wanted(0.0, START)
    assert wanted is not None
    assert wanted.metadata == PLACE
    assert wanted.spec == LeaseSpec("me", 15, "2026-11-16T00:00:00.000000Z", "2026-11-16T00:00:00.000000Z", 0)


@pytest.mark.parametrize("seconds, written", [(15.0, 15), (1.0, 1), (1.5, 2), (15.9, 16)])
def test_the_duration_in_the_record_is_never_shorter_than_the_lease(seconds: float, written: int) -> None:
    me = Election("me", PLACE, Terms(lease=seconds, renew=0.9 * seconds, retry=0.5 * seconds))
    wanted = me.wanted(0.0, START)
    assert wanted is not None
    assert wanted.spec.lease_duration_seconds == written


WAITS = {
    "until it has run out by our clock": (lease("other"), 15.0),
    "as long as they were promised": (lease("other", duration=60), 60.0),
}
WAITS |= {"as long as ours where nothing is said": (lease("other", duration=None), 15.0)}


@pytest.mark.parametrize("seen, wait", WAITS.values(), ids=WAITS)
def test_a_lease_of_another_candidate_is_not_written(seen: Lease, wait: float) -> None:
    me = Election("me", PLACE)
    me.saw(seen, 100.0)
    assert me.wanted(100.0 + wait - 0.1, START) is None
    taken = me.wanted(100.0 + wait, START)
    assert taken is not None
    assert (taken.spec.lease_transitions, taken.metadata.resource_version) == (5, "1")


def test_a_renewed_lease_restarts_the_wait() -> None:
    me = Election("me", PLACE)
    me.saw(lease("other"), 0.0)
    me.saw(lease("other", 2, renew="t1"), 14.0)
    assert me.wanted(28.9, START) is None


def test_looking_again_at_the_same_lease_does_not_prolong_it() -> None:
    me = Election("me", PLACE)
    for moment in (0.0, 7.0, 14.0):
        me.saw(lease("other"), moment)
    assert me.wanted(15.0, START) is not None


def test_a_lease_that_was_given_back_is_taken_at_once() -> None:
    me = Election("me", PLACE)
    me.saw(lease("", duration=1), 0.0)
    assert me.wanted(0.0, START) is not None


@pytest.mark.parametrize(
    "seen, follows", [(None, False), (lease("me"), False), (lease("other"), True), (lease(""), True)]
)
def test_a_new_leader_knows_that_there_was_another_holder(seen: Lease | None, follows: bool) -> None:
    me = Election("me", PLACE)
    me.saw(seen, 0.0)
    me.saw(lease("me", version=2), 20.0)
    assert me.follows_another is follows


def test_a_renewal_keeps_when_it_was_acquired() -> None:
    me = Election("me", PLACE)
    me.wrote(lease("me"), 0.0, 0.0)
    renewed = me.wanted(2.0, START)
    assert renewed is not None
    assert (renewed.spec.acquire_time, renewed.spec.lease_transitions) == ("t0", 4)
    assert renewed.spec.renew_time != "t0"


def test_leadership_ends_at_the_deadline_counted_from_before_the_write() -> None:
    me = Election("me", PLACE)
    me.wrote(lease("me"), sent_at=3.0, now=7.0)
    assert me.leads(12.9)
    assert not me.leads(13.0)


def test_a_leader_looks_only_when_in_doubt() -> None:
    me = Election("me", PLACE)
    assert me.must_read
    me.wrote(lease("me"), 0.0, 0.0)
    assert not me.must_read
    me.doubts()
    assert me.must_read


def test_a_released_lease_has_no_holder_and_ends_leadership() -> None:
    me = Election("me", PLACE)
    me.wrote(lease("me"), 0.0, 0.0)
    given = me.released(START)
    assert given is not None
    assert (given.spec.holder_identity, given.spec.lease_duration_seconds) == ("", 1)
    assert not me.leads(0.1)


def test_what_belongs_to_others_is_not_given_back() -> None:
    me = Election("me", PLACE)
    me.saw(lease("other"), 0.0)
    assert me.released(START) is None


@pytest.mark.parametrize("terms", [(10, 10, 2), (15, 2, 2), (15, 10, 0), (0.9, 0.5, 0.1)])
def test_terms_that_cannot_keep_leaders_apart_are_refused(terms: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match="must be"):
        Terms(lease=terms[0], renew=terms[1], retry=terms[2])


class Record:
    """The lease on a server: writes with an old version are refused."""

    def __init__(self) -> None:
        self.lease: Lease | None = None
        self.version = 0

    def write(self, wanted: Lease) -> Lease | None:
        current = self.lease.metadata.resource_version if self.lease else ""
        if wanted.metadata.resource_version != current:
            return None
        self.version += 1
        meta = msgspec.structs.replace(wanted.metadata, resource_version=str(self.version))
        self.lease = msgspec.structs.replace(wanted, metadata=meta)
        return self.lease


def life(me: Election, record: Record, draw: Any) -> Iterator[float]:
    """One candidate: yields how long each of its steps takes, over a network that is slow and loses things."""
    now = yield from _takes(0.0)
    while True:
        if me.must_read:
            seen = record.lease
            now = yield from _takes(draw.draw(DELAYS))
            me.saw(seen, now)
        wanted, sent_at = me.wanted(now, START.replace(microsecond=int(now * 10) % 10**6)), now
        if wanted is not None:
            now = yield from _takes(draw.draw(DELAYS))
            written = record.write(wanted)
            now = yield from _takes(draw.draw(DELAYS))
            if written is not None and draw.draw(st.integers(0, 3)):
                me.wrote(written, sent_at, now)
            else:
                me.doubts()
        now = yield from _takes(me.terms.retry)


DELAYS = st.sampled_from([0.0, 0.1, 1.0, 4.0, 9.0, 20.0])


def _takes(seconds: float) -> Any:
    now = yield seconds
    return now


@holds_for(st.data(), examples=60)
def test_two_never_lead_at_once(draw: st.DataObject) -> None:
    record = Record()
    all_of_us = [Election(name, PLACE) for name in ("a", "b", "c")]
    lives: list[Any] = [life(each, record, draw) for each in all_of_us]
    due = [next(each) + draw.draw(DELAYS) for each in lives]
    for _ in range(60):
        number = due.index(min(due))
        now = due[number]
        due[number] = now + lives[number].send(now)
        assert sum(each.leads(now) for each in all_of_us) <= 1
