"""A history played on the reference flavour: as v0.34.7 it says what that says, as ours what we promise."""

from typing import Any

import pytest

from numalign.oracle.harness.ask import Opinion
from numalign.oracle.plugin import causes, history, judge, replay
from numalign.oracle.plugin.replay import Dialect, OldBehaviour
from numalign.placement.reference.caches import repairs
from numalign.placement.reference.caches.repairs import Repair
from tests.oracle import handmade
from tests.oracle.handmade import ONE, container, lived, pod, report, signed_for, zone

ASKED = pod(container(ONE))
PLAYED = {name: each for name, each in handmade.HISTORIES.items() if judge.refusal(each["args"]) is None}


def scripts(raw: dict[str, Any]) -> tuple[replay.PreparedHistory, replay.PreparedHistory]:
    new = history.read(raw)
    return replay.script(history.with_old_classes(new, raw)), replay.script(new)


def said(raw: dict[str, Any], manner: Dialect = replay.OURS) -> list[Any]:
    old, new = scripts(raw)
    return [each.said for each in replay.play(old if manner == replay.V0_34_7 else new, manner)]


def answered(raw: dict[str, Any], manner: Dialect = replay.V0_34_7) -> dict[str, Any]:
    """The history as the plugin would give it back."""
    told = zip(raw["steps"], said(raw, manner), strict=True)
    return {**raw, "steps": [{**step, "answer": each} if each is not None else step for step, each in told]}


def test_a_pod_on_its_way_is_charged_until_it_is_given_up() -> None:
    steps = [{"op": op, "pod": ASKED, "node": "n"} for op in ("reserve", "unreserve")]
    looks = [{"op": "get_nrt", "node": "n"}]
    found = said(handmade.history(*looks, steps[0], *looks, steps[1], *looks))
    free = [each["nrt"]["zones"][0]["resources"][0]["available"] for each in found[::2]]
    assert free == ["4", "3", "4"]


def test_a_refused_node_is_refreshed_by_a_signed_report() -> None:
    greedy = pod(container({**ONE, "cpu": "9"}))
    told = handmade.history(
        {"op": "filter", "pod": greedy},
        {"op": "desynced"},
        {"op": "nrt_update", "nrt": report(signature=signed_for("p"))},
        {"op": "resync"},
        pods=[lived("Running")],
    )
    refused, waiting, _, refreshed = said(told, replay.V0_34_7)
    assert refused == {"n": {"code": "Unschedulable", "reasons": ["cannot align container"]}}
    assert waiting == {"maybeOverReserved": ["n"], "configChanged": []}
    assert refreshed == {"generation": 1, "maybeOverReserved": [], "configChanged": []}


@pytest.mark.parametrize("mode, waits", [("Shared", []), ("Dedicated", ["n"])])
def test_a_shared_informer_does_not_tell_of_a_pod_that_came_when_it_had_ended(mode: str, waits: list[str]) -> None:
    foreign = pod(container(ONE), node="n", phase="Succeeded", schedulerName="other")
    settings = {**handmade.OVER, "cache": {"informerMode": mode}}
    told = handmade.history({"op": "pod_add", "pod": foreign}, {"op": "desynced"}, args=settings)
    assert said(told)[1]["maybeOverReserved"] == waits


@pytest.mark.parametrize("settings", [{}, {"discardReservedNodes": True}], ids=["passthrough", "discard reserved"])
def test_caches_without_rounds_have_nothing_to_say_about_them(settings: dict[str, Any]) -> None:
    ops = [{"op": op, "node": "n"} for op in ("resync", "desynced", "node_rejected", "node_has_foreign_pods")]
    assert said(handmade.history(*ops, args=settings)) == [None] * 4


def test_a_node_that_is_not_there_is_an_error() -> None:
    (found,) = said(handmade.history({"op": "filter", "pod": ASKED, "nodes": ["x"]}))
    assert found == {"x": {"code": "Error", "reasons": ["node not found"]}}


def test_a_node_on_which_the_plugin_crashes_is_not_marked() -> None:
    told = handmade.history(
        {"op": "filter", "pod": pod(container({**ONE, "cpu": "9"}))}, {"op": "desynced"}, nrts=[report(zone(64))]
    )
    crashed, waiting = said(told, replay.V0_34_7)
    assert (crashed["n"], waiting["maybeOverReserved"]) == (replay.PANIC, [])
    assert said(told)[1]["maybeOverReserved"] == ["n"]


@pytest.mark.parametrize("name", PLAYED)
def test_what_was_written_by_hand_shows_its_entry_and_no_other(name: str) -> None:
    assert judge.opinion(answered(PLAYED[name])) == Opinion(entries=frozenset({handmade.entry(name)}))


def test_every_habit_and_every_repair_that_a_history_can_show_is_written_by_hand() -> None:
    shown = {handmade.entry(name) for name in handmade.HISTORIES}
    never = {causes.ENTRIES[Repair.MISSED_SETTINGS], causes.ENTRIES[Repair.RESYNC_WINDOW]}
    assert set(causes.ENTRIES.values()) - shown == never


def test_the_way_from_v0_34_7_ends_at_ours() -> None:
    way = causes.without(replay.V0_34_7, causes.ENTRIES)
    assert way == Dialect(frozenset({OldBehaviour.DEFECTS}), repairs.ALL)


@pytest.mark.parametrize("name", PLAYED)
def test_the_product_answers_otherwise_there_and_that_is_not_taken_for_the_plugin(name: str) -> None:
    judged = judge.judge(PLAYED[name], answered(PLAYED[name], replay.OURS))
    assert judged.finding == "differs"
    assert judged.differences


@pytest.mark.parametrize(
    "settings, refused",
    [
        ({}, None),
        ({"unheardOf": 1}, 'strict decoding error: unknown field "unheardOf"'),
        ({"cacheResyncPeriodSeconds": "5"}, judge.UNREADABLE),
        (
            handmade.strategy("Fastest"),
            'scoringStrategy.type: Invalid value: "Fastest": invalid ScoringStrategyType',
        ),
    ],
    ids=["none", "unknown field", "another type", "unknown strategy"],
)
def test_arguments_are_refused_as_by_v0_34_7(settings: dict[str, Any], refused: str | None) -> None:
    assert judge.refusal(settings) == refused


@pytest.mark.parametrize(
    "answer, finding",
    [
        ({"nondeterministic": True}, "unanswered"),
        ({"timeout": True}, "unanswered"),
        ({"panic": "nil map"}, "differs"),
        ({"error": "steps[0]: needs a Pod"}, "differs"),
        ({"args": {}, "nodes": [], "nrts": [], "steps": [{"op": "filter"}]}, "differs"),
        ({"args": {"unheardOf": 1}, "steps": []}, "differs"),
        ({"args": {}, "init_error": "no", "steps": []}, "differs"),
    ],
    ids=["varies", "too long", "panic", "error", "no answer", "not refused", "refused"],
)
def test_what_is_no_answer_is_never_agreed(answer: dict[str, Any], finding: str) -> None:
    assert judge.judge({"id": "x"}, {"id": "x", **answer}).finding == finding
