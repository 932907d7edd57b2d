"""Which failures are worth another try, and how a limit spreads calls."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.kube import errors, request
from numalign.kube.request import Request
from numalign.kube.resources import PODS, Cause, Details, Status
from numalign.kube.transport import sender
from numalign.kube.transport.sender import Bucket

WEB = PODS.at("web", "default")
READ = request.get(WEB)
WRITE = request.create(PODS.within("default"), {})


def answer(code: int, retry_after: str = "", cause: str = "") -> errors.KubeError:
    status = Status(details=Details(causes=(Cause(reason=cause),)))
    return errors.refused(READ, code, status, retry_after)


RESET = errors.Unreachable("get", "x", "reset")
NEVER_SENT = errors.Unreachable("get", "x", "refused", sent=False)
LATE = errors.TimedOut("get", "x", "late")

CASES: dict[str, tuple[Request, errors.KubeError, int, float | None]] = {
    "throttled with a time": (WRITE, answer(429, "3"), 1, 3.0),
    "throttled without one": (WRITE, answer(429), 1, 1.0),
    "throttled for an hour": (WRITE, answer(429, "3600"), 1, 60.0),
    "throttled too often": (WRITE, answer(429, "3"), 10, None),
    "held by a disruption budget": (WRITE, answer(429, "10", errors.DISRUPTION), 1, None),
    "read, internal error": (READ, answer(500), 1, 0.01),
    "read, internal error, again": (READ, answer(500), 3, 0.25),
    "read, internal error, too often": (READ, answer(500), 4, None),
    "write, internal error": (WRITE, answer(500), 1, None),
    "write, unavailable for a while": (WRITE, answer(503, "2"), 1, 2.0),
    "read, reset": (READ, RESET, 1, 0.01),
    "write, reset": (WRITE, RESET, 1, None),
    "write, never sent": (WRITE, NEVER_SENT, 1, 0.01),
    "read, too late": (READ, LATE, 1, None),
    "conflict": (READ, answer(409), 1, None),
    "not found": (READ, answer(404), 1, None),
    "forbidden": (READ, answer(403), 1, None),
}


@pytest.mark.parametrize("asked, problem, tries, wait", CASES.values(), ids=CASES)
def test_the_pause_after(asked: Request, problem: errors.KubeError, tries: int, wait: float | None) -> None:
    pause = sender.retry_pause(asked, problem, tries, chance=0.0)
    assert pause == (wait if wait is None else pytest.approx(wait))


def test_jitter_lengthens_a_pause_by_a_tenth_at_most() -> None:
    pause = sender.retry_pause(READ, answer(500), 1, chance=1.0)
    assert pause == pytest.approx(0.011)


@given(st.floats(1, 1000), st.integers(1, 50), st.lists(st.floats(0, 1), max_size=200))
def test_a_bucket_never_exceeds_its_rate(rate: float, burst: int, gaps: list[float]) -> None:
    bucket, now, sent = Bucket(rate, burst), 0.0, list[float]()
    for gap in gaps:
        now += gap
        sent.append(now + bucket.take(now))
    for first, one in enumerate(sent):
        assert len([each for each in sent[first:] if each < one + 1 - 1e-6]) <= burst + rate


def test_a_bucket_that_was_left_alone_is_full_again() -> None:
    bucket = Bucket(rate=10, burst=2)
    assert [bucket.take(0.0) for _ in range(3)] == pytest.approx([0.0, 0.0, 0.1])
    assert [bucket.take(60.0) for _ in range(3)] == pytest.approx([0.0, 0.0, 0.1])
