"""A merge gives what the kubelet's own way gives: walk every permutation of hints, keep the better of two.

That way is written down here to the letter (kubelet spec 3.2, 3.3 and 3.5); it is exponential, so zones and lists are
few."""

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from itertools import product
from operator import and_
from random import Random
from typing import NamedTuple

from hypothesis import strategies as st

from numalign.kubelet.settings import TopologyPolicy
from numalign.kubelet.topologymanager import mask as masks
from numalign.kubelet.topologymanager import policies
from numalign.kubelet.topologymanager.hints import Hint, HintList
from numalign.kubelet.topologymanager.mask import Mask
from numalign.kubelet.topologymanager.merge import HintMap, Rules
from tests.campaigns import holds_for
from tests.strategies.kubelet import POLICIES, zone_ids

Raw = list[dict[str, list[Hint] | None] | None]
"""What providers answer, as the kubelet has it."""


class Case(NamedTuple):
    """Providers' answers and the node's rules."""

    providers: Raw
    rules: Rules

    def merged(self, providers: Raw | None = None) -> policies.PolicyResult:
        return policies.merge([as_map(each) for each in providers or self.providers], self.rules)


def as_map(provider: dict[str, list[Hint] | None] | None) -> HintMap | None:
    if provider is None:
        return None
    return {name: None if listed is None else HintList.of(listed) for name, listed in provider.items()}


@st.composite
def cases(draw: st.DrawFn, policies: Sequence[TopologyPolicy] = POLICIES) -> Case:
    zones = draw(zone_ids(4))
    parts = st.sets(st.sampled_from(zones), min_size=1).map(masks.of)
    hints = st.builds(Hint, st.one_of(parts, parts, parts, st.none()), st.booleans())
    lists = st.one_of(st.lists(hints, max_size=6), st.lists(hints, min_size=1, max_size=6), st.none())
    maps = st.one_of(st.dictionaries(st.sampled_from("abc"), lists, max_size=2), st.none())
    row = st.tuples(*[st.integers(10, 14)] * (zones[-1] + 1))
    distances = draw(st.none() | st.fixed_dictionaries(dict.fromkeys(zones, row)))
    providers = draw(st.lists(maps, max_size=2))
    return Case(providers, Rules(draw(st.sampled_from(policies)), zones, distances))


def normalised(providers: Raw) -> list[list[Hint]]:
    lists: list[list[Hint]] = []
    for provider in providers:
        lists += [[Hint(None, True)]] if not provider else []
        for listed in (provider or {}).values():
            lists.append([Hint(None, True)] if listed is None else listed or [Hint(None, False)])
    return lists


def literal(case: Case) -> Hint:
    """The best hint, the kubelet's way."""
    rules, lists = case.rules, normalised(case.providers)
    if rules.policy == "none":
        return Hint(None, False)
    single = rules.policy == "single-numa-node"
    if single:
        lists = [[h for h in each if h.preferred and (h.mask is None or h.mask.bit_count() == 1)] for each in lists]
    best = folded(
        (combined(permutation, rules.machine) for permutation in product(*lists)), widest(lists), fitter(rules)
    )
    mask, preferred = best or Hint(rules.machine, False)
    return Hint(None if single and mask == rules.machine else mask, preferred)


def combined(permutation: Sequence[Hint], machine: Mask) -> Hint:
    sets = [hint.mask for hint in permutation if hint.mask is not None]
    alike = all(hint.preferred for hint in permutation) and len(set(sets)) <= 1
    return Hint(reduce(and_, sets, machine), alike)


def widest(lists: Sequence[Sequence[Hint]]) -> int:
    sizes = [[hint.mask.bit_count() for hint in each if hint.mask is not None] for each in lists]
    return max((min(each) for each in sizes if each), default=0)


def fitter(rules: Rules) -> Callable[[Mask, Mask], bool]:
    """Whether a candidate suits better than the current mask."""

    def average(mask: Mask) -> float:
        zones, distances = masks.members(mask), rules.distances or {}
        return sum(distances[a][b] for a in zones for b in zones) / len(zones) ** 2

    def is_fitter(candidate: Mask, current: Mask) -> bool:
        if (
            rules.distances is None
            or rules.policy == "single-numa-node"
            or candidate.bit_count() != current.bit_count()
        ):
            return masks.width(candidate) < masks.width(current)
        return (average(candidate), candidate) < (average(current), current)

    return is_fitter


def folded(candidates: Iterable[Hint], wanted: int, is_fitter: Callable[[Mask, Mask], bool]) -> Hint | None:
    best: Hint | None = None
    for candidate in candidates:
        if candidate.mask and (best is None or replaces(candidate, best, wanted, is_fitter)):
            best = candidate
    return best


def replaces(candidate: Hint, best: Hint, wanted: int, is_fitter: Callable[[Mask, Mask], bool]) -> bool:
    if candidate.preferred != best.preferred:
        return candidate.preferred
    new, old = candidate.mask or 0, best.mask or 0
    size, current, fits = new.bit_count(), old.bit_count(), is_fitter(new, old)
    if best.preferred or current > wanted:
        return fits
    if current == wanted:
        return size == wanted and fits
    return size <= wanted and (size > current or (size == current and fits))


@holds_for(cases(), examples=200)
def test_a_merge_finds_what_walking_every_permutation_finds(case: Case) -> None:
    assert case.merged().best == literal(case)


@holds_for(cases(), examples=100)
def test_best_effort_admits_everything_and_the_strict_policies_only_preferred_hints(case: Case) -> None:
    best = literal(case)
    always = case.rules.policy in ("none", "best-effort")
    assert case.merged().admitted == (best if always or best.preferred else None)


@holds_for(cases(), st.randoms(use_true_random=False), examples=100)
def test_neither_the_order_of_providers_nor_that_of_resources_matters(case: Case, order: Random) -> None:
    turned = [each and dict(order.sample(list(each.items()), len(each))) for each in case.providers]
    order.shuffle(turned)
    assert case.merged(turned).best == case.merged().best
