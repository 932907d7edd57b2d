"""The verdict on a campaign, on histories written by hand: every promise can be broken, every excuse has its limits."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from numalign.lab.campaign import history, judge, report
from numalign.lab.campaign.history import HistoryLine, Holding, PodHistory
from numalign.lab.campaign.report import CampaignRun
from tests import histories

DEVICES = {"example.com/gpu": 1}
NO_GPU = "no healthy devices present; cannot allocate unhealthy devices example.com/gpu"
RUN = CampaignRun(seed=1, minutes=1, nodes=("n",))


def line(at: float, what: history.What, uid: str = "", **told: Any) -> HistoryLine:
    return HistoryLine(at=at, what=what, uid=uid, name=told.pop("name", uid), **told)


def placed(uid: str = "a", at: float = 10.0, zones: tuple[int, ...] = (0,), **told: Any) -> list[HistoryLine]:
    """A pod that was made, bound with a forecast, and is where its kubelet says."""
    sits = told.pop("sits", zones)
    return [
        line(at, "created", uid, **told),
        line(at + 1, "bound", uid, node="n", predicted={"main": (zones,)}),
        line(at + 2, "holds", uid, node="n", holds={"main": Holding(cpus=sits, memory=sits)}),
        line(at + 2, "started", uid, node="n"),
    ]


def turned_away(why: str = "TopologyAffinityError", words: str = "no", **told: Any) -> list[HistoryLine]:
    return [
        line(10.0, "created", "a", **told),
        line(11.0, "bound", "a", node="n"),
        line(12.0, "ended", "a", node="n", phase="Failed", why=why, words=words),
    ]


def test_a_pod_where_it_was_foretold_is_all_right() -> None:
    assert judge.judge(placed()).good


def test_a_pod_that_its_kubelet_turned_away_was_rejected() -> None:
    (found,) = judge.judge(turned_away()).rejected
    assert (found.pod, found.node, found.why) == ("a", "n", "TopologyAffinityError: no")


OFFER = line(1.0, "offers", node="n", why="Node", devices=DEVICES)
AWAY, BACK = line(8.0, "down", name="n/kubelet", why="kill"), line(9.0, "up", name="n/kubelet")
EXCUSES = {
    "the kubelet had just been away, and the node offered the device": ([OFFER, AWAY, BACK], DEVICES, True),
    "the plugin is away": ([OFFER, line(10.5, "down", name="n/device-plugin")], DEVICES, True),
    "nothing was away": ([OFFER], DEVICES, False),
    "another node's kubelet was": ([OFFER, line(8.0, "down", name="m/kubelet")], DEVICES, False),
    "it was away long before": (
        [OFFER, line(-20, "down", name="n/kubelet"), line(-10, "up", name="n/kubelet")],
        DEVICES,
        False,
    ),
    "the pod wants no device": ([OFFER, AWAY, BACK], {}, False),
    "the node had said that it has none": (
        [OFFER, AWAY, BACK, line(8.5, "offers", node="n", why="Node", devices={})],
        DEVICES,
        False,
    ),
    "the report had said so": (
        [OFFER, AWAY, BACK, line(8.5, "offers", node="n", why="report", devices={})],
        DEVICES,
        False,
    ),
    "the report had said so, and a later one offered the device": (
        [
            OFFER,
            AWAY,
            BACK,
            line(8.5, "offers", node="n", why="report", devices={}),
            line(9.5, "offers", node="n", why="report", devices=DEVICES),
        ],
        DEVICES,
        True,
    ),
}


@pytest.mark.parametrize("before, devices, excused", EXCUSES.values(), ids=EXCUSES)
def test_devices_that_nobody_could_know_to_be_gone(
    before: list[HistoryLine], devices: dict[str, int], excused: bool
) -> None:
    verdict = judge.judge([*before, *turned_away("UnexpectedAdmissionError", NO_GPU, devices=devices)])
    assert (len(verdict.unforeseeable), len(verdict.rejected)) == ((1, 0) if excused else (0, 1))


LOG = line(14.0, "lacks", name="a", node="n", words="requests 1 example.com/gpu, 0 available")
REASONS = {
    "the message names the device": ("UnexpectedAdmissionError", NO_GPU, [], True),
    "the plugin ended during the call": ("UnexpectedAdmissionError", "Allocate failed due to rpc error: x", [], True),
    "the message names CPUs": ("UnexpectedAdmissionError", "not enough cpus available", [], False),
    "the kubelet's log names the device": ("TopologyAffinityError", "no", [LOG], True),
    "the log does not": ("TopologyAffinityError", "no", [], False),
    "the log names the device for another pod": (
        "TopologyAffinityError",
        "no",
        [structs.replace(LOG, name="b")],
        False,
    ),
}


@pytest.mark.parametrize("why, words, logged, excused", REASONS.values(), ids=REASONS)
def test_the_kubelet_must_say_that_devices_were_missing(
    why: str, words: str, logged: list[HistoryLine], excused: bool
) -> None:
    verdict = judge.judge([OFFER, AWAY, BACK, *turned_away(why, words, devices=DEVICES), *logged])
    assert (len(verdict.unforeseeable), len(verdict.rejected)) == ((1, 0) if excused else (0, 1))


AWAY_THEN = [line(9.0, "down", name="n/kubelet"), line(11.5, "up", name="n/kubelet")]
LEFTOVERS = {
    "of a pod that was gone when the kubelet started": ([*AWAY_THEN, line(8.0, "gone", "b")], True),
    "which the kubelet had collected before": (
        [*AWAY_THEN, line(8.0, "gone", "b"), line(9.0, "freed", "b", node="n")],
        False,
    ),
    "of a pod that is still there": (AWAY_THEN, False),
    "of a kubelet that was there all the time": ([line(8.0, "gone", "b")], False),
}


@pytest.mark.parametrize("before, excused", LEFTOVERS.values(), ids=LEFTOVERS)
def test_leftovers_that_a_kubelet_counts_when_it_starts(before: list[HistoryLine], excused: bool) -> None:
    there = [*placed("b", at=1.0, zones=(1,)), line(7.0, "deletion-requested", "b")]
    refused = [structs.replace(each, predicted={"main": ((1,),)}) for each in turned_away()]
    verdict = judge.judge([*there, *before, *refused])
    assert (len(verdict.unforeseeable), len(verdict.rejected)) == ((1, 0) if excused else (0, 1))


REPORT = line(8.0, "reported", node="n", uids=("b",))
DEPARTURES = {
    "a pod left other zones after the binding": (0, 11.8, ("main", "beside"), True),
    "it left the predicted zones": (1, 11.8, ("main", "beside"), False),
    "it left long before": (0, 5.0, ("main", "beside"), False),
    "it is still there": (0, None, ("main", "beside"), False),
    "the pod has one container": (0, 11.8, ("main",), False),
}


@pytest.mark.parametrize("zone, left, containers, excused", DEPARTURES.values(), ids=DEPARTURES)
def test_a_pod_of_several_containers_is_rejected_because_another_left(
    zone: int, left: float | None, containers: tuple[str, ...], excused: bool
) -> None:
    there = [*placed("b", at=1.0, zones=(zone,)), REPORT]
    gone = [line(left, "ended", "b", node="n", phase="Succeeded")] if left is not None else []
    refused = [structs.replace(each, predicted=dict.fromkeys(containers, ((1,),))) for each in turned_away()]
    verdict = judge.judge([*there, *gone, *refused])
    assert (len(verdict.unforeseeable), len(verdict.rejected)) == ((1, 0) if excused else (0, 1))
    assert not verdict.unproven


CPUS_LEFT = {
    "the last pod to leave still had CPUs there": ([], "c"),
    "it had only devices or memory there": ([line(8.7, "cpus-freed", "c", node="n")], "b"),
    "no pod had CPUs there": ([line(8.7, "cpus-freed", each, node="n") for each in ("b", "c")], ""),
}


@pytest.mark.parametrize("freed, who", CPUS_LEFT.values(), ids=CPUS_LEFT)
def test_a_pod_that_lacked_cpus_is_explained_by_a_pod_that_still_had_some(freed: list[HistoryLine], who: str) -> None:
    there = [*placed("b", at=1.0, zones=(1,)), *placed("c", at=1.5, zones=(1,))]
    left = [line(7.0, "deletion-requested", each) for each in ("b", "c")]
    left += [line(8.0, "gone", "b"), line(8.5, "gone", "c"), *freed]
    refused = turned_away("UnexpectedAdmissionError", "not enough cpus available")
    refused = [structs.replace(each, predicted={"main": ((1,),)}) for each in refused]
    verdict = judge.judge([*there, *left, *AWAY_THEN, *refused])
    assert [each.evidence.why for each in verdict.unforeseeable] == (
        [f"the kubelet still held resources of {who}"] if who else []
    )
    assert len(verdict.rejected) == (0 if who else 1)


def test_the_evidence_of_a_rejection_shows_it_also_if_a_container_was_in_the_checkpoint_before() -> None:
    held = line(11.6, "holds", "a", node="n", holds={"sidecar": Holding(cpus=(1,))})
    *before, ended = rejected_for_leftovers(REPORT)
    (found,) = judge.judge([*before, held, structs.replace(ended, at=20.0)]).unforeseeable
    assert [each.what for each in found.evidence.pod] == ["bound", "holds", "ended"]


def rejected_for_leftovers(*more: HistoryLine) -> list[HistoryLine]:
    there = [*placed("b", at=1.0, zones=(1,)), line(7.0, "deletion-requested", "b"), line(8.0, "gone", "b")]
    refused = [structs.replace(each, predicted={"main": ((1,),)}) for each in turned_away()]
    return [*there, *AWAY_THEN, *more, *refused]


def overtaken(*more: HistoryLine) -> list[HistoryLine]:
    left = [*placed("b", at=1.0, zones=(0,)), *more, line(20.9, "freed", "b", node="n")]
    later = [line(30.0, "deletion-requested", "b"), line(30.0, "gone", "b")]
    return [*left, *later, *placed("a", at=20.0, zones=(2,), sits=(0,))]


EVIDENCE = {
    "devices": (
        [OFFER, AWAY, BACK, *turned_away("UnexpectedAdmissionError", NO_GPU, devices=DEVICES)],
        ["offers"],
        ["bound", "ended"],
        [("down", "n/kubelet"), ("up", "n/kubelet")],
    ),
    "leftovers": (
        rejected_for_leftovers(REPORT),
        ["reported"],
        ["bound", "ended"],
        [
            *((what, "b") for what in ("bound", "holds", "deletion-requested", "gone")),
            ("down", "n/kubelet"),
            ("up", "n/kubelet"),
        ],
    ),
    "order": (
        overtaken(REPORT, line(9.0, "behind", node="n")),
        ["reported"],
        ["bound", "holds"],
        [(what, "b") for what in ("bound", "holds", "freed")],
    ),
    "order, and the report was deleted": (
        overtaken(REPORT, line(9.0, "report-deleted", node="n")),
        ["reported", "report-deleted"],
        ["bound", "holds"],
        [(what, "b") for what in ("bound", "holds", "freed")],
    ),
    "order, and no report is in the record": (
        overtaken(line(9.0, "behind", node="n")),
        [],
        ["bound", "holds"],
        [(what, "b") for what in ("bound", "holds", "freed")],
    ),
}


@pytest.mark.parametrize("lines, known, own, happened", EVIDENCE.values(), ids=EVIDENCE)
def test_an_explained_pod_comes_with_what_was_known_and_what_happened_until_its_admission(
    lines: list[HistoryLine], known: list[str], own: list[str], happened: list[tuple[str, str]]
) -> None:
    verdict = judge.judge(lines)
    (found,) = (*verdict.unforeseeable, *verdict.overtaken)
    assert [each.what for each in found.evidence.known] == known
    assert [each.what for each in found.evidence.pod] == own
    assert [(each.what, each.name) for each in found.evidence.happened] == happened
    assert [each.pod for each in verdict.unproven] == ([] if known else ["a"])


@pytest.mark.parametrize("others, good", [(98, True), (97, False)], ids=["one in 100", "one in 99"])
def test_at_most_one_placed_pod_in_a_hundred_may_be_explained(others: int, good: bool) -> None:
    """Of the pods that are placed, `a` is overtaken by `b`."""
    beside = [each for n in range(others) for each in placed(f"c-{n}", at=40.0, zones=(7,))]
    assert judge.judge([*overtaken(REPORT), *beside]).good is good


def test_an_explanation_without_evidence_is_not_good() -> None:
    beside = [each for n in range(200) for each in placed(f"c-{n}", at=40.0, zones=(7,))]
    verdict = judge.judge([*overtaken(line(9.0, "behind", node="n")), *beside])
    assert (verdict.good, len(verdict.overtaken)) == (False, 1)


def test_the_report_shows_the_evidence_and_the_share() -> None:
    told = report.of(RUN, overtaken(REPORT))
    text = report.text(told)
    assert not told.good
    assert "explained      50.0% of placed pods are unforeseeable or overtaken, at most 1% may be" in text
    assert "known     8.0 s  report of n with 1 pods names b" in text
    assert "pod       21.0 s  a bound to n, predicted: main in {2}" in text
    assert "happened  20.9 s  b no longer in the checkpoint of n" in text
    assert "30.0 s" not in text.split("OVERTAKEN", 1)[1]


def test_a_pod_in_other_zones_than_foretold_was_mispredicted() -> None:
    (found,) = judge.judge(placed(zones=(2,), sits=(0,))).mispredicted
    assert found.why == "main: predicted {2}; CPUs in {0}, memory in {0}, devices: none"


PLACES = {
    "one of several": (((0,), (1,)), Holding(cpus=(1,)), True),
    "part of a set": (((0, 1),), Holding(cpus=(0,), memory=(0, 1)), True),
    "half in one and half in the other": (((0,), (1,)), Holding(cpus=(0,), memory=(1,)), False),
    "a device elsewhere": (((0,),), Holding(cpus=(0,), devices=((1,),)), False),
    "a device in both zones": (((0,),), Holding(cpus=(0,), devices=((0, 1),)), True),
    "nothing was predicted": ((), Holding(cpus=(0,)), False),
    "nothing is held": ((), Holding(), True),
}


@pytest.mark.parametrize("choices, holding, right", PLACES.values(), ids=PLACES)
def test_a_place_is_compared_with_every_set_that_was_possible(
    choices: tuple[tuple[int, ...], ...], holding: Holding, right: bool
) -> None:
    pod = PodHistory("a", "a", 0.0, bound=1.0, predicted={"main": choices}, holds={"main": holding})
    assert (list(judge.misplaced(pod)) == []) is right


LEFT = {
    "it left before the pod came, and no report said so": ([line(20.9, "freed", "b", node="n")], True),
    "the report had said so long before": (
        [line(17.0, "reported", node="n", uids=()), line(17.0, "freed", "b", node="n")],
        False,
    ),
    "the report was behind": (
        [line(17.0, "reported", node="n", uids=()), line(17.1, "behind", node="n"), line(20.9, "freed", "b", node="n")],
        True,
    ),
    "it was gone, and the kubelet's checkpoint had it until the pod came": (
        [line(17.0, "gone", "b"), line(17.0, "reported", node="n", uids=()), line(20.9, "freed", "b", node="n")],
        True,
    ),
    "its CPUs were free, and its devices in the checkpoint for longer": (
        [line(20.9, "cpus-freed", "b", node="n"), line(30.0, "freed", "b", node="n")],
        True,
    ),
    "it is still there": ([], False),
    "it left later": ([line(30.0, "freed", "b", node="n")], False),
}


@pytest.mark.parametrize("leaving, excused", LEFT.values(), ids=LEFT)
def test_a_pod_that_took_the_place_of_one_that_had_just_left(leaving: list[HistoryLine], excused: bool) -> None:
    there = [*placed("b", at=1.0, zones=(0,)), line(4.0, "reported", node="n", uids=("b",))]
    verdict = judge.judge([*there, *leaving, *placed("a", at=20.0, zones=(2,), sits=(0,))])
    assert (len(verdict.overtaken), len(verdict.mispredicted)) == ((1, 0) if excused else (0, 1))


def test_a_pod_that_another_one_came_before_which_was_bound_about_then() -> None:
    late = placed("b", at=20.5, zones=(0,))
    early = placed("a", at=20.8, zones=(0,), sits=(1,))
    (found,) = judge.judge([*late, *early]).overtaken
    assert found.why.endswith("; b came first")


def test_a_pod_that_came_first_explains_more_than_one_that_had_left() -> None:
    left = [*placed("c", at=1.0, zones=(1,)), line(4.0, "reported", node="n", uids=("c",))]
    left += [line(20.9, "freed", "c", node="n")]
    early = placed("a", at=20.8, zones=(0,), sits=(1,))
    (found,) = judge.judge([*left, *placed("b", at=20.5, zones=(0,)), *early]).overtaken
    assert found.why.endswith("; b came first")


TOLD = {"no report named it": ((), True), "a report had": (("b",), False)}


@pytest.mark.parametrize("uids, excused", TOLD.values(), ids=TOLD)
def test_a_pod_in_the_place_that_another_one_was_expected_in(uids: tuple[str, ...], excused: bool) -> None:
    elsewhere = [*placed("b", at=10.0, zones=(1,), sits=(0,)), line(15.0, "reported", node="n", uids=uids)]
    verdict = judge.judge([*elsewhere, *placed("a", at=20.0, zones=(2,), sits=(1,))])
    assert [found.pod for found in verdict.mispredicted] == (["b"] if excused else ["b", "a"])


@pytest.mark.parametrize("uids, excused", TOLD.values(), ids=TOLD)
def test_a_pod_whose_place_another_one_has_that_was_expected_elsewhere(uids: tuple[str, ...], excused: bool) -> None:
    elsewhere = [*placed("b", at=10.0, zones=(0,), sits=(2,)), line(15.0, "reported", node="n", uids=uids)]
    verdict = judge.judge([*elsewhere, *placed("a", at=20.0, zones=(2,), sits=(3,))])
    assert [found.pod for found in verdict.mispredicted] == (["b"] if excused else ["b", "a"])


def test_a_pod_that_came_first_and_sits_elsewhere_explains_nothing() -> None:
    late = placed("b", at=20.5, zones=(3,))
    early = placed("a", at=20.8, zones=(0,), sits=(1,))
    assert len(judge.judge([*late, *early]).mispredicted) == 1


def test_where_a_kubelet_need_not_keep_to_zones_nothing_is_compared() -> None:
    lines = placed(zones=(2,), sits=(0,))
    assert judge.judge([structs.replace(each, loose=each.what == "bound") for each in lines]).good


LOSSES = {
    "stuck at a rest": [line(9.0, "stuck", "a", words="fits on n, and waits")],
    "failed by itself": [line(9.0, "ended", "a", phase="Failed")],
    "gone by itself": [line(9.0, "gone", "a")],
}


@pytest.mark.parametrize("after", LOSSES.values(), ids=LOSSES)
def test_a_pod_can_be_lost(after: list[HistoryLine]) -> None:
    assert len(judge.judge([line(1.0, "created", "a"), *after]).lost) == 1


def test_a_pod_that_was_asked_to_go_before_it_was_seen_is_not_lost() -> None:
    """It was made, and deleted, while the server's stream was broken."""
    assert judge.judge([line(1.0, "deletion-requested", "a"), line(2.0, "created", "a"), line(2.1, "gone", "a")]).good


ENDS = {
    "it was asked to go": [
        line(8.0, "deletion-requested", "a"),
        line(9.0, "ended", "a", phase="Failed"),
        line(9.1, "gone", "a"),
    ],
    "its work is done": [line(9.0, "ended", "a", phase="Succeeded"), line(9.5, "gone", "a")],
}


@pytest.mark.parametrize("after", ENDS.values(), ids=ENDS)
def test_a_pod_that_was_to_end_is_not_lost(after: list[HistoryLine]) -> None:
    assert judge.judge([line(1.0, "created", "a"), *after]).good


VICTIM = [line(1.0, "created", "a"), line(2.0, "bound", "a", node="n")]
PREEMPTED = line(8.0, "disrupted", "a", node="n", why="PreemptionByScheduler")
GONE = line(9.0, "gone", "a")
URGENT = line(7.0, "created", "b", priority=1000)
DISRUPTIONS = {
    "a pod of higher priority was nominated to its node": (
        [URGENT, PREEMPTED, line(8.1, "nominated", "b", node="n"), GONE],
        True,
    ),
    "such a pod was bound there": ([URGENT, PREEMPTED, GONE, line(9.5, "bound", "b", node="n")], True),
    "it was nominated to another node": ([URGENT, PREEMPTED, line(8.1, "nominated", "b", node="m"), GONE], False),
    "it was nominated long after": ([URGENT, PREEMPTED, GONE, line(60.0, "nominated", "b", node="n")], False),
    "the other pod has the same priority": (
        [line(7.0, "created", "b"), PREEMPTED, line(8.1, "nominated", "b", node="n"), GONE],
        False,
    ),
    "the campaign evicted it": (
        [
            line(7.0, "deletion-requested", "a", why="evicted"),
            line(8.0, "disrupted", "a", node="n", why="EvictionByEvictionAPI"),
            GONE,
        ],
        True,
    ),
    "an eviction that the campaign did not ask for": (
        [line(8.0, "disrupted", "a", node="n", why="EvictionByEvictionAPI"), GONE],
        False,
    ),
    "the node was gone, and a controller deleted it": (
        [line(8.0, "disrupted", "a", node="n", why="DeletionByPodGC"), GONE],
        False,
    ),
}


@pytest.mark.parametrize("lines, explained", DISRUPTIONS.values(), ids=DISRUPTIONS)
def test_a_disrupted_pod_is_lost_unless_the_record_says_for_whom(lines: list[HistoryLine], explained: bool) -> None:
    assert [each.pod for each in judge.judge([*VICTIM, *lines]).lost] == ([] if explained else ["a"])


def test_an_operation_counts_once_whatever_it_stops() -> None:
    stopped = [line(1.0, "down", name=f"n/{name}", why="leave") for name in ("agent", "kubelet")]
    rolled = [line(2.0, "down", name="n/agent", why="roll-out"), line(3.0, "down", name="n/agent", why="kill")]
    operations = [line(1.0, "operation", name="n", why="leave"), line(2.0, "operation", why="roll-out")]
    assert report.of(RUN, [*stopped, *rolled, *operations]).faults == {"agent kill": 1, "leave": 1, "roll-out": 1}


def test_a_report_counts_who_was_preempted_and_who_evicted() -> None:
    told = report.of(
        RUN, [*VICTIM, PREEMPTED, *placed("b"), line(8.0, "disrupted", "b", why="EvictionByEvictionAPI"), GONE]
    )
    assert (told.pods.preempted, told.pods.evicted) == (1, 1)


LAGS = {
    "a second": ([line(10.0, "behind", node="n"), line(11.0, "level", node="n")], 0),
    "two minutes": ([line(10.0, "behind", node="n"), line(130.0, "level", node="n")], 1),
    "two minutes without an agent": (
        [
            line(5.0, "down", name="n/agent"),
            line(10.0, "behind", node="n"),
            line(125.0, "up", name="n/agent"),
            line(130.0, "level", node="n"),
        ],
        0,
    ),
    "two minutes from when the agent was back": (
        [
            line(5.0, "down", name="n/agent"),
            line(10.0, "up", name="n/agent"),
            line(10.0, "behind", node="n"),
            line(130.0, "level", node="n"),
        ],
        1,
    ),
    "never again": ([line(10.0, "behind", node="n"), line(100.0, "waits", "a")], 1),
}


@pytest.mark.parametrize("lines, late", LAGS.values(), ids=LAGS)
def test_reports_have_a_period_to_catch_up_once_the_cause_is_gone(lines: list[HistoryLine], late: int) -> None:
    assert len(judge.judge(lines).late) == late


def test_a_history_is_read_from_a_file_as_it_was_written() -> None:
    lines = [*placed(), *EXCUSES["the plugin is away"][0]]
    assert histories.read(history.encode(lines), HistoryLine) == lines


def test_the_report_names_what_went_wrong() -> None:
    told = report.of(
        RUN, [*placed("b", zones=(2,), sits=(0,)), *turned_away(), line(20.0, "down", name="n/agent", why="kill")]
    )
    text = report.text(told)
    assert not told.good
    assert "rejected       1 of 2 placed pods" in text
    assert "REJECTED: 12.0 s  a on n: TopologyAffinityError: no" in text
    assert "MISPREDICTED: 11.0 s  b on n: main: predicted {2}" in text
    assert "1: agent kill 1" in text


def test_a_report_counts_pods_and_their_waits() -> None:
    told = report.of(RUN, [*placed("a", at=1.0), *placed("b", at=2.0), line(9.0, "ended", "b", phase="Succeeded")])
    assert told.good
    assert (told.pods.created, told.pods.placed, told.pods.started, told.pods.ended) == (2, 2, 2, 1)
    assert (told.pods.longest_wait, told.pods.compared) == (2.0, 2)
