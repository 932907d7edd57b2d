"""The ledger says what is free on a node, whatever comes in and in whatever order."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from numalign.api.objects.pod import Pod
from numalign.placement.columns.holdings import Entry, Holding, Source
from numalign.placement.columns.nodefacts import Supply
from numalign.placement.columns.resources import CPU
from numalign.placement.ledger.divergences import NOTHING, Problem
from numalign.placement.ledger.nodeledger import Row
from tests.unit.placement import ledgerwords as words
from tests.unit.placement.ledgerwords import NIC, NODE


def test_without_a_report_there_is_no_row() -> None:
    assert words.ledger().row(NODE) is None


def test_a_report_alone_is_taken_as_it_is() -> None:
    ledger = words.ledger()
    change = ledger.report(words.facts((5, 7)))
    assert (change.rows, words.free(ledger)) == ((NODE,), [5, 7])


def test_a_report_that_says_the_same_again_changes_no_row() -> None:
    ledger = words.ledger()
    ledger.report(words.facts((5, 7)))
    change = ledger.report(words.facts((5, 7)))
    assert (change.rows, change.freed) == ((), (NODE,))


def test_the_same_again_counts_for_a_pod_that_waits_for_a_word() -> None:
    ledger, pod = words.ledger(), words.pod("a")
    ledger.report(words.agent((8, 8)))
    ledger.predict(NODE, pod, words.held(pod, 1))
    assert ledger.report(words.agent((8, 8))).rows == (NODE,)


def test_a_prediction_is_charged_to_its_zone_and_pending() -> None:
    ledger, pod = words.ledger(), words.pod("a")
    ledger.report(words.facts())
    assert ledger.predict(NODE, pod, words.held(pod, 1)).rows == (NODE,)
    row = ledger.row(NODE)
    assert row is not None
    assert row.free[CPU :: row.width] == [8, 6]
    assert row.settled[CPU :: row.width] == [8, 8]
    assert [each.name for each in row.pending] == ["default/a"]


def test_a_failed_bind_frees_at_once() -> None:
    ledger, pod = words.ledger(), words.pod("a")
    ledger.report(words.facts())
    ledger.predict(NODE, pod, words.held(pod, 1))
    change = ledger.bind_failed("uid-a")
    assert (change.freed, words.free(ledger)) == ((NODE,), [8, 8])


def test_a_bind_that_failed_for_us_and_came_about_all_the_same_stays_charged() -> None:
    ledger, pod = words.ledger(), words.pod("a")
    ledger.report(words.facts())
    ledger.predict(NODE, pod, words.held(pod, 1))
    ledger.seen(pod, 1.0)
    assert ledger.bind_failed("uid-a") == NOTHING
    assert words.free(ledger) == [8, 6]


def test_a_pod_of_ours_that_runs_is_not_pending_any_more() -> None:
    ledger, pod = words.ledger(), words.pod("a")
    ledger.report(words.facts())
    ledger.predict(NODE, pod, words.held(pod, 1))
    ledger.seen(words.running(pod), 1.0)
    row = ledger.row(NODE)
    assert row is not None
    assert (row.pending, row.settled[CPU :: row.width]) == ((), [8, 6])


def test_a_foreign_pod_is_placed_by_the_model() -> None:
    ledger = words.ledger()
    ledger.report(words.signed((3, 8)))
    assert ledger.seen(words.pod("foreign", 4), 1.0).rows == (NODE,)
    assert words.free(ledger) == [3, 4]


def test_a_pod_on_a_node_without_a_report_changes_no_row_before_the_report_comes() -> None:
    ledger = words.ledger()
    assert ledger.seen(words.pod("foreign", 4), 1.0) == NOTHING
    ledger.report(words.signed((3, 8)))
    assert words.free(ledger) == [3, 4]


def test_a_foreign_pod_that_the_model_has_no_room_for_is_charged_to_every_zone() -> None:
    ledger = words.ledger()
    ledger.report(words.signed((3, 3)))
    ledger.seen(words.pod("foreign", 4), 1.0)
    assert words.bounds(ledger) == [(-1, 3), (-1, 3)]
    assert ledger.problems[Problem.PLACED_NOWHERE] == 1


def test_a_pod_that_holds_nothing_exclusively_is_not_asked_about_and_never_pending() -> None:
    def nobody_is_asked(pod: Pod, row: Row) -> Sequence[Holding]:
        raise AssertionError

    ledger = words.ledger(nobody_is_asked)
    ledger.report(words.signed((8, 8)))
    ledger.seen(words.pod("shared", 0), 1.0)
    row = ledger.row(NODE)
    assert row is not None
    assert (row.pending, words.free(ledger), ledger.problems[Problem.PLACED_NOWHERE]) == ((), [8, 8], 0)


def test_a_foreign_pod_may_push_pending_ones_elsewhere() -> None:
    ours, foreign = words.pod("ours"), words.pod("foreign")
    moved = words.holding(ours, [Entry(CPU, 2, 0b11)])
    ledger = words.ledger(lambda pod, row: [words.held(foreign, 0), moved])
    ledger.report(words.signed((8, 8)))
    ledger.predict(NODE, ours, words.held(ours, 0))
    ledger.seen(foreign, 1.0)
    assert words.bounds(ledger) == [(4, 6), (6, 8)]


def test_a_prediction_may_widen_those_of_pending_pods() -> None:
    first, second = words.pod("a"), words.pod("b")
    ledger = words.ledger()
    ledger.report(words.facts())
    ledger.predict(NODE, first, words.held(first, 0))
    ledger.predict(NODE, second, words.held(second, 1), [words.holding(first, [Entry(CPU, 2, 0b11)])])
    assert words.bounds(ledger) == [(6, 8), (4, 6)]


def test_what_is_free_is_never_more_than_the_zone_has() -> None:
    ledger, pod = words.ledger(), words.pod("a")
    ledger.report(words.facts((8, 8)))
    ledger.predict(NODE, pod, words.held(pod, 0))
    ledger.report(words.signed((8, 8), "a"))
    ledger.seen(words.finished(pod), 1.0)
    assert words.free(ledger) == [8, 8]


def test_devices_without_a_zone_are_charged_to_the_node() -> None:
    ledger, pod = words.ledger(), words.pod("a")
    ledger.report(words.facts(supplies={NIC: Supply(size=(0, 0), allocatable=(0, 0), free=(0, 0), homeless=4)}))
    ledger.predict(NODE, pod, words.held(pod, 0, beside=(Entry(2, 3, 0),)))
    row = ledger.row(NODE)
    assert row is not None
    assert (row.homeless[2], row.settled_homeless[2]) == (1, 4)


def test_pods_of_one_name_are_distinguished_by_uid() -> None:
    ledger = words.ledger()
    ledger.report(words.signed((8, 8)))
    ledger.seen(words.pod("web-0", 2, uid="old"), 1.0)
    ledger.seen(words.pod("web-0", 4, uid="new"), 2.0)
    ledger.seen(words.finished(words.pod("web-0", 2, uid="old")), 3.0)
    assert words.free(ledger) == [4, 8]


def test_a_pod_on_two_nodes_is_counted_and_kept_on_both() -> None:
    ledger = words.ledger()
    ledger.report(words.signed((8, 8)))
    ledger.report(words.signed((8, 8), node="n2"))
    ledger.seen(words.pod("a"), 1.0)
    ledger.seen(words.pod("a", node="n2"), 2.0)
    assert (words.free(ledger), words.free(ledger, "n2")) == ([6, 8], [6, 8])
    assert ledger.problems[Problem.POD_ON_TWO_NODES] == 1


def test_a_pod_that_another_scheduler_bound_frees_our_node_when_our_bind_fails() -> None:
    ledger, pod = words.ledger(), words.pod("a")
    ledger.report(words.facts())
    ledger.predict(NODE, pod, words.held(pod, 0))
    ledger.seen(words.pod("a", node="n2"), 1.0)
    ledger.bind_failed("uid-a")
    assert words.free(ledger) == [8, 8]
    assert [book.node for book in ledger.nodes()] == [NODE, "n2"]


def test_the_same_again_changes_nothing() -> None:
    ledger, pod = words.ledger(), words.pod("a")
    ledger.report(words.signed((8, 8)))
    ledger.seen(pod, 1.0)
    ledger.row(NODE)
    assert ledger.seen(pod, 2.0) == NOTHING
    assert words.free(ledger) == [6, 8]


def test_pods_wait_for_a_report() -> None:
    ledger = words.ledger()
    ledger.seen(words.pod("a"), 1.0)
    ledger.report(words.signed((8, 8)))
    assert words.free(ledger) == [6, 8]


def test_a_report_that_vanishes_and_comes_back_finds_its_pods() -> None:
    ledger, pod = words.ledger(), words.pod("a")
    ledger.report(words.facts())
    ledger.predict(NODE, pod, words.held(pod, 1))
    assert ledger.report_gone(NODE).rows == (NODE,)
    assert ledger.row(NODE) is None
    ledger.report(words.signed((8, 8)))
    assert words.free(ledger) == [8, 6]


def test_nothing_is_kept_of_a_node_without_report_and_pods() -> None:
    ledger = words.ledger()
    ledger.report(words.facts())
    ledger.report_gone(NODE)
    assert (ledger.nodes(), ledger.report_gone(NODE)) == ((), NOTHING)


def test_unbound_pods_are_no_affair_of_the_ledger() -> None:
    ledger = words.ledger()
    assert ledger.seen(words.pod("a", node=""), 1.0) == NOTHING
    assert ledger.nodes() == ()


def test_a_pod_with_an_annotation_that_cannot_be_read_is_placed_all_the_same() -> None:
    ledger = words.ledger(lambda pod, row: ())
    ledger.report(words.signed((8, 8)))
    ledger.seen(words.pod("odd", metadata={"annotations": {"numalign.io/scope": "galaxy"}}), 1.0)
    assert words.bounds(ledger) == [(6, 8), (6, 8)]


@pytest.mark.parametrize("uids, inside", [(["uid-a"], [8, 4]), (["uid-a", "uid-b"], [8, 8]), (["nobody"], [6, 4])])
def test_pods_can_be_left_out_for_a_while(uids: list[str], inside: list[int]) -> None:
    ledger, covered, pending = words.ledger(), words.pod("a"), words.pod("b")
    ledger.report(words.facts())
    ledger.predict(NODE, covered, words.held(covered, 0))
    ledger.report(words.agent((6, 8), words.placed(covered, 0)))
    ledger.predict(NODE, pending, words.held(pending, 1, 4))
    before = ledger.row(NODE)
    with ledger.without(uids) as change:
        assert (words.free(ledger), bool(change.rows)) == (inside, inside != [6, 4])
    assert ledger.row(NODE) == before


def test_what_a_pod_holds_can_be_asked() -> None:
    ledger, pod = words.ledger(), words.pod("a")
    ledger.report(words.facts())
    ledger.predict(NODE, pod, words.held(pod, 0))
    found = ledger.holding("uid-a")
    assert found is not None
    assert (found.source, ledger.holding("nobody")) == (Source.PREDICTED, None)
