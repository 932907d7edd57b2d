from numalign.simulator.controllers.framework.events import (
    BURST,
    COMBINED,
    ControllerEvent,
    EventCorrelator,
    EventWrite,
)


def told(message: str, about: str = "web", reason: str = "SuccessfulCreate") -> ControllerEvent:
    return ControllerEvent("replicaset-controller", about, "Normal", reason, message)


def correlate(announcer: EventCorrelator, what: ControllerEvent, now: float) -> EventWrite | None:
    write = announcer.correlate(what, now)
    if write is not None and not write.serial:
        announcer.created(what, write.message, hash(write.message) or 1)
    return write


def test_the_same_again_is_counted() -> None:
    announcer = EventCorrelator()
    assert correlate(announcer, told("x"), 0) == EventWrite(0, 1, "x")
    assert [correlate(announcer, told("x"), 1), correlate(announcer, told("x"), 2)] == [
        EventWrite(hash("x"), 2, "x"),
        EventWrite(hash("x"), 3, "x"),
    ]


def test_after_nine_alike_the_rest_become_one() -> None:
    announcer = EventCorrelator()
    writes = [correlate(announcer, told(f"pod {number}"), number) for number in range(15)]
    messages = [write.message for write in writes if write is not None]
    assert messages[8:10] == ["pod 8", f"{COMBINED}pod 9"]
    assert [write.count for write in writes[9:] if write is not None] == [1, 2, 3, 4, 5, 6]


def test_about_one_object_only_so_many_get_through() -> None:
    announcer = EventCorrelator()
    written = [correlate(announcer, told(f"pod {number}"), 0) is not None for number in range(100)]
    assert sum(written) == BURST
    assert correlate(announcer, told("later"), 299) is None
    assert correlate(announcer, told("later still"), 301) is not None


def test_objects_do_not_share_their_limits() -> None:
    announcer = EventCorrelator()
    for number in range(100):
        correlate(announcer, told(f"pod {number}"), 0)
    assert correlate(announcer, told("x", about="other"), 0) == EventWrite(0, 1, "x")


def test_after_ten_quiet_minutes_all_is_forgotten() -> None:
    announcer = EventCorrelator()
    for number in range(12):
        correlate(announcer, told(f"pod {number}"), 0)
    assert correlate(announcer, told("fresh"), 700) == EventWrite(0, 1, "fresh")
