"""Pod affinity over arrays says of every node what the specification says of it alone."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from numalign.api.objects.pod import Pod
from numalign.placement.rules.pods.interpodaffinity import NOT_AWAY, NOT_NEAR, UNWANTED
from tests.unit.placement.rules import affinityreference, neighbourhoods, worlds
from tests.unit.placement.rules.neighbourhoods import NAMESPACES
from tests.unit.placement.rules.spreadreference import Site

affine = neighbourhoods.pods(affinity=neighbourhoods.affinities)
crowds = neighbourhoods.sites(affine)
REASONS = {None: None, "affinity": NOT_NEAR, "anti-affinity": NOT_AWAY, "existing": UNWANTED}


@settings(max_examples=60, deadline=None)
@given(affine, crowds)
def test_verdicts_are_those_of_the_specification(asking: Pod, sites: list[Site]) -> None:
    there = neighbourhoods.place(sites)
    expected = affinityreference.verdicts(asking, sites, NAMESPACES)
    assert worlds.refusals(there.affinity(), asking, there.world) == [REASONS[verdict] for verdict in expected]


@settings(max_examples=60, deadline=None)
@given(affine, crowds, st.integers(0, 100))
def test_scores_are_those_of_the_specification(asking: Pod, sites: list[Site], weight: int) -> None:
    there = neighbourhoods.place(sites)
    rule = there.affinity(hardPodAffinityWeight=weight)
    expected = affinityreference.scores(asking, sites, NAMESPACES, weight)
    raw = worlds.scores(rule, asking, there.world)
    assert (raw or [0] * len(sites)) == expected
    if raw is not None:
        assert worlds.normalized(rule, asking, there.world) == affinityreference.normalized(expected)


@settings(max_examples=60, deadline=None)
@given(affine, crowds, st.integers(0, 15), st.lists(affine, max_size=2), st.data())
def test_what_if_is_what_is_then(
    asking: Pod, sites: list[Site], mask: int, added: list[Pod], data: st.DataObject
) -> None:
    row = data.draw(st.integers(0, len(sites) - 1))
    gone = [number for number in range(len(sites[row].pods)) if mask >> number & 1]
    left = [pod for number, pod in enumerate(sites[row].pods) if number not in gone]
    there = neighbourhoods.place(sites)
    prepared = there.affinity().prepare(asking, there.world)
    if prepared is not None:
        after = [*sites[:row], Site(sites[row].labels, [*left, *added]), *sites[row + 1 :]]
        code = there.affinity().filter_row(prepared, row, [f"{row}/{number}" for number in gone], added)
        expected = REASONS[affinityreference.verdicts(asking, after, NAMESPACES)[row]]
        assert (prepared.refusals[code] if code else None) == expected
