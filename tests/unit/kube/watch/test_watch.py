"""What following a resource means, step by step and without a server."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.kube import backoff, errors
from numalign.kube.request import Since
from numalign.kube.resources import Cause, Details, Status
from numalign.kube.watch import watch
from numalign.kube.watch.watch import Follow, ListAll, Meaning, Wait, Watch

END = {watch.INITIAL_END: "true"}


def refusal(kind: type[errors.Refusal], code: int, retry_after: float | None = None, cause: str = "") -> errors.Refusal:
    status = Status(details=Details(causes=(Cause(reason=cause),)))
    return kind("watch", "pods", code, status, retry_after)


GONE = refusal(errors.Gone, 410)
RESET = errors.Unreachable("watch", "pods", "reset")
SILENT = errors.TimedOut("watch", "pods", "no answer in time")


def synced(version: str = "10") -> Watch:
    state = Watch(offers_initial=False)
    state.listed(version, 0.0)
    state.step(0.0, 0.0)
    state.opened(0.0)
    return state


def test_it_asks_for_what_is_there_as_a_stream_first() -> None:
    assert Watch().step(0.0, 0.0) == Follow(Since(version="", seconds=300, initial=True), 300 + watch.MARGIN)


def test_silence_is_a_stall_before_all_was_sent_and_normal_afterwards() -> None:
    state = Watch()
    step = state.step(0.0, 0.0)
    assert isinstance(step, Follow)
    assert state.patience(step) == watch.INITIAL_QUIET
    state.saw("BOOKMARK", "10", END)
    assert state.patience(step) == 300 + watch.MARGIN


UNSUPPORTED = {
    "refused as invalid": refusal(errors.Invalid, 422),
    "refused as bad": refusal(errors.BadRequest, 400),
    "never finished": SILENT,
}


@pytest.mark.parametrize("problem", UNSUPPORTED.values(), ids=UNSUPPORTED)
def test_a_server_that_does_not_offer_it_is_asked_for_a_list_at_once(problem: errors.KubeError) -> None:
    state = Watch()
    state.step(0.0, 0.0)
    state.failed(problem, 0.0, 0.0)
    assert state.step(0.0, 0.0) == ListAll()


def test_after_a_list_it_follows_from_the_version_of_the_list() -> None:
    state = Watch(offers_initial=False)
    assert state.step(0.0, 0.0) == ListAll()
    state.listed("10", 0.0)
    assert state.step(0.0, 0.5) == Follow(Since(version="10", seconds=450), 450 + watch.MARGIN)


def test_versions_of_initial_events_do_not_count() -> None:
    state = Watch()
    state.step(0.0, 0.0)
    assert state.saw("ADDED", "7", {}) is Meaning.COLLECT
    assert state.saw("BOOKMARK", "8", {}) is Meaning.NOTHING
    assert state.version == ""
    assert state.saw("BOOKMARK", "10", END) is Meaning.COMPLETE
    assert state.version == "10"


EVENTS = {
    "a newer version": ("MODIFIED", "11", Meaning.DELIVER, "11"),
    "a newer one with more digits": ("ADDED", "100", Meaning.DELIVER, "100"),
    "a deletion": ("DELETED", "12", Meaning.DELIVER, "12"),
    "the version of the list": ("ADDED", "10", Meaning.DUPLICATE, "10"),
    "an older one": ("DELETED", "9", Meaning.DUPLICATE, "10"),
    "a bookmark": ("BOOKMARK", "15", Meaning.NOTHING, "15"),
    "an old bookmark": ("BOOKMARK", "5", Meaning.NOTHING, "10"),
    "no version": ("ADDED", "", Meaning.DELIVER, "10"),
    "no number": ("ADDED", "x", Meaning.DELIVER, "x"),
}


@pytest.mark.parametrize("kind, version, meaning, then", EVENTS.values(), ids=EVENTS)
def test_what_an_event_means(kind: str, version: str, meaning: Meaning, then: str) -> None:
    state = synced("10")
    assert state.saw(kind, version, {}) is meaning
    assert state.version == then


def test_versions_that_are_no_numbers_are_only_compared_for_being_the_same() -> None:
    assert watch.is_old("b", "b")
    assert not watch.is_old("a", "b")


def test_a_stream_whose_time_is_up_is_resumed_at_once() -> None:
    state = synced()
    state.ended(300.0, 0.0)
    assert state.step(300.0, 0.0) == Follow(Since(version="10", seconds=300), 300 + watch.MARGIN)


def test_a_stream_that_ends_at_once_and_brought_nothing_is_a_failure() -> None:
    state = synced()
    state.ended(0.5, 0.0)
    assert state.step(0.5, 0.0) == Wait(backoff.REFLECTOR.first)


def test_a_forgotten_version_is_looked_up_at_once() -> None:
    state = synced()
    state.failed(GONE, 1.0, 0.0)
    assert state.step(1.0, 0.0) == ListAll()


def test_a_version_that_is_forgotten_again_and_again_is_looked_up_with_patience() -> None:
    state = synced()
    state.failed(GONE, 1.0, 0.0)
    state.listed("11", 1.0)
    state.failed(GONE, 1.0, 0.0)
    assert isinstance(state.step(1.0, 0.0), Wait)


RESUMED = {
    "a reset": (RESET, backoff.REFLECTOR.first),
    "silence": (SILENT, backoff.REFLECTOR.first),
    "an internal error": (refusal(errors.ServerFailure, 500), backoff.REFLECTOR.first),
    "throttling": (refusal(errors.TooManyRequests, 429, 7.0), 7.0),
    "throttling without a time": (refusal(errors.TooManyRequests, 429), 1.0),
}


@pytest.mark.parametrize("problem, wait", RESUMED.values(), ids=RESUMED)
def test_after_a_failure_it_resumes_where_it_was(problem: errors.KubeError, wait: float) -> None:
    state = synced()
    state.failed(problem, 1.0, 0.0)
    assert state.step(1.0, 0.0) == Wait(wait)
    assert state.step(1.0 + wait, 0.0) == Follow(Since(version="10", seconds=300), 300 + watch.MARGIN)


def test_a_version_from_the_future_is_looked_up_again() -> None:
    state = synced()
    state.failed(refusal(errors.ServerFailure, 504, cause=errors.TOO_NEW), 1.0, 0.0)
    assert state.version == ""


def test_a_list_that_is_never_answered_is_asked_for_with_patience() -> None:
    state = Watch()
    state.step(0.0, 0.0)
    state.failed(SILENT, 0.0, 0.0)
    assert state.step(0.0, 0.0) == ListAll()
    state.failed(SILENT, 0.0, 0.0)
    assert isinstance(state.step(0.0, 0.0), Wait)


def test_a_resync_ends_the_stream_in_order_and_looks_at_everything() -> None:
    state = Watch(offers_initial=False, resync=60.0)
    state.listed("10", 0.0)
    assert state.step(20.0, 0.0) == Follow(Since(version="10", seconds=40), 40 + watch.MARGIN)
    assert state.step(60.0, 0.0) == ListAll()


PROBLEMS = st.sampled_from(
    [GONE, RESET, SILENT, refusal(errors.Invalid, 422), refusal(errors.TooManyRequests, 429, 2.0)]
)


@given(st.lists(st.tuples(PROBLEMS, st.floats(0, 1))))
def test_failures_never_make_a_tight_loop(problems: list[tuple[errors.KubeError, float]]) -> None:
    state, now, in_a_row = Watch(), 0.0, 0
    for problem, chance in problems:
        step = state.step(now, chance)
        if isinstance(step, Wait):
            now, in_a_row = now + step.seconds, 0
            continue
        in_a_row += 1
        state.failed(problem, now, chance)
        assert in_a_row <= 3


@given(st.lists(st.floats(0, 1), min_size=1))
def test_backoff_grows_to_its_limit_and_stays_there(chances: list[float]) -> None:
    count, now, waits = backoff.BackoffManager(), 0.0, list[float]()
    for chance in chances:
        waits.append(count.failed(now, chance))
        now += waits[-1]
    expected = [backoff.REFLECTOR.pause(n + 1) * (1 + chance) for n, chance in enumerate(chances)]
    assert waits == pytest.approx(expected)


def test_the_back_off_is_reset_after_a_healthy_period() -> None:
    count = backoff.BackoffManager()
    waited = count.failed(0.0, 0.0) + count.failed(1.0, 0.0)
    assert waited == pytest.approx(3 * backoff.REFLECTOR.first)
    assert count.failed(1.0 + waited + backoff.HEALTHY + 1, 0.0) == backoff.REFLECTOR.first
