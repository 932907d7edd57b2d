"""Every stall of the reference that is mended: what happens with the repair, and that without it the stall is there."""

from collections.abc import Callable

import pytest
from msgspec import structs

from numalign.api.nrt import fingerprint
from numalign.api.nrt.wire import NodeResourceTopology
from numalign.api.objects.pod import Pod
from numalign.placement.reference.caches import podgroups
from numalign.placement.reference.caches.overreserve import Desynced, OverReserve
from numalign.placement.reference.caches.repairs import ALL, Repair
from numalign.placement.reference.caches.rules import Rules
from numalign.placement.referenceargs import InformerMode
from tests.unit.placement.reference.caches import made

EXCLUSIVE = fingerprint.Method.EXCLUSIVE.value
RUNNING, STARTING, ENDED = made.pod("r"), made.pod("s", phase="Pending"), made.pod("e", phase="Failed")
NEW = made.report(zones=[{"cpu": "7"}])

Trial = Callable[[OverReserve], object]


def refused(report: NodeResourceTopology, *pods: Pod) -> Trial:
    """Is a refused node refreshed with this report?"""

    def trial(cache: OverReserve) -> object:
        cache.rejected("n")
        return made.round_of(cache, [report], pods) == ("n",)

    return trial


def late_report(cache: OverReserve) -> object:
    cache.nrt_added(made.report("m"))
    return made.free(cache, node="m")


def late_report_in_a_round(cache: OverReserve) -> object:
    made.round_of(cache, [made.report("m")], [])
    return made.free(cache, node="m")


def late_report_under_foreign_pods(cache: OverReserve) -> object:
    cache.pod_seen(made.pod(node="m", scheduler="another"))
    cache.nrt_changed(made.report("m"))
    return cache.look_up("m").fresh


def report_gone(cache: OverReserve) -> object:
    cache.reserve("n", RUNNING)
    cache.rejected("n")
    cache.nrt_changed(made.report(attributes={made.SCOPE: "pod"}))
    cache.nrt_gone("n")
    return made.free(cache), cache.desynced()


def missed_settings(cache: OverReserve) -> object:
    return made.round_of(cache, [made.report(attributes={made.SCOPE: "pod"})], [])


def unreported_pod(cache: OverReserve) -> object:
    cache.reserve("n", structs.replace(STARTING, spec=structs.replace(STARTING.spec, node_name="")))
    refused(made.signed(NEW, [RUNNING]), RUNNING, STARTING)(cache)
    return made.free(cache)


def reservation_in_the_window(cache: OverReserve) -> object:
    cache.rejected("n")
    prepared = cache.prepare({"n": made.signed(NEW, [RUNNING])}, [RUNNING])
    cache.reserve("n", made.pod("later"))
    cache.commit(prepared)
    return made.free(cache)


def mark_in_the_window(cache: OverReserve) -> object:
    cache.rejected("n")
    prepared = cache.prepare({"n": made.signed(NEW, [RUNNING])}, [RUNNING])
    cache.nrt_changed(made.report(attributes={made.SCOPE: "pod"}))
    cache.commit(prepared)
    return cache.desynced()


FRACTION = made.pod("f", requests={"cpu": "500m", "memory": "1Gi"})
NO_MEMORY = made.report(zones=[{"cpu": "7"}])
NO_STATIC_CPUS = made.report(zones=[{"cpu": "0", made.NIC: "1"}])
NIC_USER = made.pod("u", requests={made.NIC: "1"}, guaranteed=False)

TRIALS: dict[str, tuple[Repair, Trial, object, object]] = {
    "late report": (Repair.LATE_REPORT, late_report, ["10", "10"], []),
    "late report, found by a round": (Repair.LATE_REPORT, late_report_in_a_round, ["10", "10"], []),
    "late report, foreign pods": (Repair.LATE_REPORT, late_report_under_foreign_pods, False, True),
    "report gone": (Repair.REPORT_GONE, report_gone, ([], Desynced()), (["8", "8"], Desynced(("n",), ("n",)))),
    "missed settings": (Repair.MISSED_SETTINGS, missed_settings, ("n",), ()),
    "no pods": (Repair.EMPTY_NODE, refused(made.signed(NEW, [])), True, False),
    "ended pod left out": (Repair.ENDED_PODS, refused(made.signed(NEW, [RUNNING]), RUNNING, ENDED), True, False),
    "Pending pod signed": (
        Repair.STARTING_PODS,
        refused(made.signed(NEW, [RUNNING, STARTING]), RUNNING, STARTING),
        True,
        False,
    ),
    "no memory to pin": (
        Repair.PINNED_PODS,
        refused(made.signed(NO_MEMORY, [RUNNING], EXCLUSIVE), RUNNING, FRACTION),
        True,
        False,
    ),
    "no cpus to pin": (
        Repair.PINNED_PODS,
        refused(made.signed(NO_STATIC_CPUS, [NIC_USER], EXCLUSIVE), RUNNING, NIC_USER),
        True,
        False,
    ),
    "device that is new to the cache": (
        Repair.PINNED_PODS,
        refused(made.signed(made.report(zones=[{made.NIC: "1"}]), [NIC_USER], EXCLUSIVE), NIC_USER),
        True,
        False,
    ),
    "unreported pod": (Repair.UNREPORTED_POD, unreported_pod, ["5"], ["7"]),
    "reservation in the window": (Repair.RESYNC_WINDOW, reservation_in_the_window, ["5"], ["7"]),
    "mark in the window": (Repair.RESYNC_WINDOW, mark_in_the_window, Desynced((), ("n",)), Desynced()),
}


@pytest.mark.parametrize("repair, trial, mended, stalled", TRIALS.values(), ids=TRIALS)
def test_it_is_mended(repair: Repair, trial: Trial, mended: object, stalled: object) -> None:
    assert trial(made.over_reserve()) == mended
    assert trial(made.over_reserve(mended=ALL - {repair})) == stalled


def test_every_repair_is_shown() -> None:
    assert {repair for repair, *_ in TRIALS.values()} == set(Repair)


SETS = {
    "the reference's": ([RUNNING, ENDED], True),
    "without the ended": ([RUNNING], True),
    "with the starting": ([RUNNING, ENDED, STARTING], True),
    "with the starting, without the ended": ([RUNNING, STARTING], True),
    "without the running": ([ENDED, STARTING], False),
    "none": ([], False),
    "a pod too many": ([RUNNING, made.pod("unheard-of")], False),
}


@pytest.mark.parametrize("pods, taken", SETS.values(), ids=SETS)
def test_any_set_that_a_publisher_may_see_confirms_a_report(pods: list[Pod], taken: bool) -> None:
    assert refused(made.signed(NEW, pods), RUNNING, ENDED, STARTING)(made.over_reserve()) == taken


def test_a_shared_informer_never_sees_pods_that_have_ended() -> None:
    rules = Rules(is_relevant=podgroups.relevance(InformerMode.SHARED))
    assert not refused(made.signed(NEW, [RUNNING, ENDED]), RUNNING, ENDED)(made.over_reserve(rules=rules))


WAITING = {
    "Pending on the node": (STARTING, ["5"]),
    "not bound yet": (made.pod("s", node="", phase="Pending"), ["5"]),
    "bound elsewhere": (made.pod("s", node="m", phase="Pending"), ["7"]),
    "made again under its name": (made.pod("s", phase="Pending", uid="another"), ["7"]),
    "ended before it ran": (made.pod("s", phase="Failed"), ["7"]),
    "deleted": (None, ["7"]),
}


@pytest.mark.parametrize("listed, cpus", WAITING.values(), ids=WAITING)
def test_a_reservation_outlives_a_refresh_while_its_pod_is_on_its_way(listed: Pod | None, cpus: list[str]) -> None:
    cache = made.over_reserve()
    cache.reserve("n", STARTING)
    refused(made.signed(NEW, [RUNNING]), RUNNING, *([listed] if listed else []))(cache)
    assert made.free(cache) == cpus


def test_a_stale_report_is_not_taken_for_one_of_a_node_that_pins_no_memory() -> None:
    pins_memory = made.report(zones=[made.ZONE])
    trial = refused(made.signed(pins_memory, [RUNNING], EXCLUSIVE), RUNNING, FRACTION)
    assert not trial(made.over_reserve())


def test_a_report_that_vanishes_during_a_round_stays_forgotten() -> None:
    cache, late = made.over_reserve(), made.report("m")
    cache.rejected("n")
    prepared = cache.prepare({"n": made.signed(NEW, [RUNNING]), "m": late}, [RUNNING])
    cache.nrt_gone("n")
    cache.nrt_gone("m")
    assert cache.commit(prepared) == ()
    assert (made.free(cache), made.free(cache, node="m"), cache.generation) == ([], [], 0)


def test_a_foreign_mark_outlives_the_report_while_there_are_pods() -> None:
    cache, foreign = made.over_reserve(), made.pod(scheduler="another")
    cache.pod_seen(foreign)
    cache.nrt_gone("n")
    cache.resync({}, [foreign], now=0.0)
    cache.nrt_added(made.report())
    assert not cache.look_up("n").fresh


def test_a_foreign_mark_does_not_outlive_report_and_pods() -> None:
    cache = made.over_reserve()
    cache.pod_seen(made.pod(scheduler="another"))
    cache.nrt_gone("n")
    cache.resync({}, [], now=0.0)
    cache.nrt_added(made.report())
    assert cache.look_up("n").fresh
