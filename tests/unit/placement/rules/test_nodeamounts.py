"""Amounts decide the same as machine code and as plain Python, and as the specification says."""

from __future__ import annotations

import itertools
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from numalign.placement import kernels
from numalign.placement.rules import nodeamounts
from numalign.placement.rules.nodeamounts import (
    BALANCE,
    FIT,
    FULL,
    LEAST,
    MOST,
    NEVER,
    OUT,
    RATIO,
    TOO_LARGE,
    AmountRanks,
    AmountsKernel,
    AmountTerms,
    Asked,
    RankedRows,
)
from numalign.placement.rules.totals import Totals
from tests.conftest import require
from tests.unit.placement.rules import reference, worlds

COLUMNS, NODES = 8, 6
amounts = st.one_of(st.integers(0, 5), st.integers(0, 1 << 20), st.integers(0, 1 << 58))
matrices = st.lists(st.lists(amounts, min_size=NODES, max_size=NODES), min_size=COLUMNS, max_size=COLUMNS)
counts = st.lists(st.integers(0, 3), min_size=NODES, max_size=NODES)
asked = st.builds(Asked, st.integers(0, 1), amounts, st.integers(1, 100), st.booleans()) | st.builds(
    Asked, st.integers(2, COLUMNS - 1), amounts, st.integers(1, 100)
)
lines = st.lists(st.integers(0, 100), min_size=101, max_size=101).map(tuple)
terms = st.builds(
    AmountTerms,
    st.sampled_from([FIT, LEAST, MOST, RATIO, BALANCE]),
    st.lists(asked, max_size=5).map(tuple),
    lines,
)


scores = st.tuples(st.integers(1, 100), terms.filter(lambda each: each.what != FIT))
filters = terms.map(lambda each: structs.replace(each, what=FIT))
ranks = st.builds(AmountRanks, st.lists(filters, max_size=2).map(tuple), st.lists(scores, max_size=3).map(tuple))


def filled(
    offered: list[list[int]],
    requested: list[list[int]],
    scored: list[list[int]],
    pods: list[int],
    most_pods: list[int],
) -> Totals:
    totals = Totals(NODES)
    totals.allocatable, totals.requested = np.array(offered, np.int64), np.array(requested, np.int64)
    totals.scored = np.array(scored[:2], np.int64)
    totals.pods, totals.most_pods = np.array(pods, np.int64), np.array(most_pods, np.int64)
    return totals


@pytest.fixture(scope="module")
def machine_code() -> AmountsKernel:
    require(find_spec("numba"), "numba, as `make install` brings it")
    found = kernels.load()
    assert found is not None
    return found


@settings(max_examples=100)
@given(terms, matrices, matrices, matrices, counts, counts)
def test_machine_code_and_plain_python_agree(
    machine_code: AmountsKernel,
    terms: AmountTerms,
    offered: list[list[int]],
    requested: list[list[int]],
    scored: list[list[int]],
    pods: list[int],
    most_pods: list[int],
) -> None:
    totals = filled(offered, requested, scored, pods, most_pods)
    places = np.array([5, 0, 1, 2, 4, 3, 3])
    expected = nodeamounts.amounts(terms, totals, places).tolist()
    assert machine_code.amounts(terms, totals, places).tolist() == expected
    assert machine_code.amounts(terms, totals, places[::2]).tolist() == expected[::2]
    assert [nodeamounts.evaluated(terms, totals, place) for place in places.tolist()] == expected


@settings(max_examples=100)
@given(ranks, matrices, matrices, matrices, counts, counts, st.data())
def test_a_rank_is_the_sum_of_all_that_is_said_of_a_row(
    machine_code: AmountsKernel,
    terms: AmountRanks,
    offered: list[list[int]],
    requested: list[list[int]],
    scored: list[list[int]],
    pods: list[int],
    most_pods: list[int],
    data: st.DataObject,
) -> None:
    totals = filled(offered, requested, scored, pods, most_pods)
    places = np.array([5, 0, 1, 2, 4, 3])
    by_place = np.zeros(len(places), np.int32)
    for weight, each in terms.scores:
        by_place += weight * nodeamounts.amounts(each, totals, places)
    for each in terms.filters:
        by_place[nodeamounts.amounts(each, totals, places) != 0] = NEVER
    more = st.sampled_from([NEVER, 0, 1, 3 << 24])
    place = np.array(data.draw(st.lists(st.integers(0, 5), min_size=9, max_size=9)), np.intp)
    base = np.array(data.draw(st.lists(more, min_size=9, max_size=9)), np.int32)
    codes = np.array(data.draw(st.lists(st.integers(0, 2), min_size=9, max_size=9)), np.uint8)
    by_code = np.array([0, 5, NEVER], np.int32)
    for kernel in (nodeamounts, machine_code):
        assert kernel.ranked(terms, totals, places).tolist() == by_place.tolist()
        found = np.zeros(9, np.int32)
        best = kernel.rank(terms, totals, places, RankedRows(place, base, codes, by_code), found)
        expected = np.maximum(by_place[place].astype(np.int64) + base + by_code[codes], OUT).astype(np.int32)
        assert found.tolist() == expected.tolist()
        assert best == (expected.max().item(), int(np.count_nonzero(expected != OUT)))


def test_no_array_is_a_reason_to_compile_once_more(machine_code: AmountsKernel) -> None:
    from numalign.placement.kernels.compiled import _compiled_amounts

    totals, fixed = Totals(NODES), np.arange(NODES)
    fixed.flags.writeable = False
    for places in (fixed, np.arange(NODES, dtype=np.int32), np.arange(NODES)[::2]):
        machine_code.amounts(AmountTerms(LEAST, (Asked(0, 1),)), totals, places)
        machine_code.ranked(AmountRanks((AmountTerms(FIT, (Asked(0, 1),)),), ()), totals, places)
    totals.kernel = lambda: machine_code
    numbers = np.zeros(NODES, np.int32)
    totals.rank(AmountRanks((), ()), numbers, np.zeros(NODES, np.uint8), numbers, numbers.copy())
    assert len(_compiled_amounts.signatures) == 1


few = st.integers(0, 1 << 40)
nodes = st.tuples(*[st.lists(few, min_size=3, max_size=3)] * 3)


@given(nodes)
def test_balance_is_that_of_the_specification(node: tuple[list[int], list[int], list[int]]) -> None:
    offered, used, added = node
    terms = AmountTerms(BALANCE, tuple(itertools.starmap(Asked, enumerate(added))))
    assert nodeamounts.evaluated(terms, worlds.totals(offered, used), 0) == reference.balanced(offered, used, added)


@given(nodes, st.integers(0, 3), st.integers(0, 3))
def test_a_code_names_everything_that_is_short(
    node: tuple[list[int], list[int], list[int]], pods: int, most_pods: int
) -> None:
    offered, used, wanted = node
    totals = worlds.totals(offered, used)
    totals.pods[0], totals.most_pods[0] = pods, most_pods
    code = nodeamounts.evaluated(AmountTerms(FIT, tuple(itertools.starmap(Asked, enumerate(wanted)))), totals, 0)
    short = [want > there - gone for want, there, gone in zip(wanted, offered, used, strict=True)]
    assert [bool(code & nodeamounts.bit(place)) for place in range(3)] == short
    assert bool(code & FULL) == (pods >= most_pods)
    assert bool(code & TOO_LARGE) == any(want > there for want, there in zip(wanted, offered, strict=True) if want)


@given(st.integers(0, (1 << 62) - 1), st.integers(1, 1 << 62))
def test_a_quotient_is_exact_where_it_is_small(part: int, whole: int) -> None:
    part %= 300 * whole
    assert nodeamounts.quotient(part, whole) == part // whole


@given(st.integers(0, (1 << 62) - 1), st.integers(1, 1 << 62))
def test_a_share_is_kube_schedulers_also_where_its_product_overflows(part: int, whole: int) -> None:
    part = min(part, whole)
    product = (part * 100 + (1 << 63)) % (1 << 64) - (1 << 63)
    assert nodeamounts.percent(part, whole) == abs(product) // whole * (1 if product >= 0 else -1)


def test_of_an_exbibyte_that_is_free_kube_scheduler_counts_four_percent() -> None:
    assert nodeamounts.percent(1 << 60, 1 << 60) == 4
