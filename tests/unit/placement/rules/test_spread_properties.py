"""Spreading over arrays says of every node what the specification says of it alone."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from numalign.api.objects.pod import Pod, TopologySpreadConstraint
from numalign.placement.rules.pods.podtopologyspread import MISSING_LABEL, TOO_MANY
from tests.unit.placement.rules import neighbourhoods, spreadreference, worlds
from tests.unit.placement.rules.neighbourhoods import constraints
from tests.unit.placement.rules.spreadreference import Included, Site

asking_pods = neighbourhoods.pods(
    topologySpreadConstraints=st.lists(constraints, min_size=1, max_size=3), nodeSelector=st.just({"disk": "ssd"})
)
crowds = neighbourhoods.sites(neighbourhoods.pods())
REASONS = {None: None, "skew": TOO_MANY, "missing": MISSING_LABEL}


def policies(asking: Pod, sites: list[Site]) -> Included:
    def included(number: int, constraint: TopologySpreadConstraint) -> bool:
        labels = sites[number].labels
        if constraint.node_affinity_policy != "Ignore" and not asking.spec.node_selector.items() <= labels.items():
            return False
        return constraint.node_taints_policy != "Honor" or neighbourhoods.TAINTED not in labels

    return included


@settings(max_examples=60, deadline=None)
@given(asking_pods, crowds)
def test_verdicts_are_those_of_the_specification(asking: Pod, sites: list[Site]) -> None:
    there = neighbourhoods.place(sites)
    expected = spreadreference.verdicts(asking, sites, policies(asking, sites))
    assert worlds.refusals(there.spreading(), asking, there.world) == [REASONS[verdict] for verdict in expected]


@settings(max_examples=60, deadline=None)
@given(asking_pods, crowds, st.integers(1, 31))
def test_scores_are_those_of_the_specification(asking: Pod, sites: list[Site], mask: int) -> None:
    there, feasible = neighbourhoods.place(sites), [row for row in range(len(sites)) if mask >> row & 1]
    rule, rows = there.spreading(), np.array(feasible, np.intp)
    prepared = rule.prepare_score(asking, there.world, rows)
    expected = spreadreference.scores(asking, sites, feasible, policies(asking, sites))
    assert (prepared is None) is (expected is None)
    if prepared is not None and expected is not None:
        raw = rule.score(prepared, rows)
        assert raw.tolist() == [max(score, 0) for score in expected]
        assert rule.normalized(prepared, raw).tolist() == spreadreference.normalized(expected)


@settings(max_examples=60, deadline=None)
@given(asking_pods, crowds, st.integers(0, 15), st.lists(neighbourhoods.pods(), max_size=2), st.data())
def test_what_if_is_what_is_then(
    asking: Pod, sites: list[Site], mask: int, added: list[Pod], data: st.DataObject
) -> None:
    # Pods on their way out and empty selectors are what-if's own; they have tests of their own.
    added = [neighbourhoods.staying(pod) for pod in added]
    before = [Site(site.labels, [neighbourhoods.staying(pod) for pod in site.pods]) for site in sites]
    row = data.draw(st.integers(0, len(sites) - 1))
    gone = [number for number in range(len(before[row].pods)) if mask >> number & 1]
    left = [pod for number, pod in enumerate(before[row].pods) if number not in gone]
    after = [*before[:row], Site(before[row].labels, [*left, *added]), *before[row + 1 :]]
    if any(each.label_selector and each.label_selector.is_empty for each in asking.spec.topology_spread_constraints):
        return
    there, then = neighbourhoods.place(before), neighbourhoods.place(after)
    prepared = there.spreading().prepare(asking, there.world)
    if prepared is not None:
        code = there.spreading().filter_row(prepared, row, [f"{row}/{number}" for number in gone], added)
        refusal = worlds.refusals(then.spreading(), asking, then.world)[row]
        assert (prepared.refusals[code] if code else None) == refusal
