"""Questions in addresses, the cells of the heat map, and why a node was chosen."""

from __future__ import annotations

from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import QueryParams

from numalign.api.nrt.topologymanager import POLICIES, SCOPES
from numalign.dashboard.details import Answer, Ask, Change, Lack, NodeAnswer, Score, ZoneShort
from numalign.dashboard.drawing import heat
from numalign.dashboard.pages import decision, waiting
from numalign.dashboard.pages.waiting import BadChange

GIB = 1 << 30
ASKS = (Ask("main", "cpu", 16000), Ask("main", "memory", 64 * GIB), Ask("main", "nvidia.com/gpu", 4))
amounts = st.fixed_dictionaries({}, optional={place: st.integers(1, 1 << 45) for place in range(len(ASKS))})
changes = st.builds(
    lambda wanted, gone, node, policy, scope: Change(
        asks=tuple(
            Ask(ask.container, ask.resource, wanted[place])
            for place, ask in enumerate(ASKS)
            if place in wanted and wanted[place] != ask.amount
        ),
        gone=tuple(gone),
        node=node,
        policy=policy,
        scope=scope,
    ),
    amounts,
    st.lists(st.text(min_size=1), max_size=4, unique=True),
    st.text(max_size=9),
    st.sampled_from((None, *POLICIES)),
    st.sampled_from((None, *SCOPES)),
)


@given(changes)
def test_a_change_reads_back_from_its_address(change: Change) -> None:
    query = urlencode(waiting.query_of(change, ASKS), doseq=True)
    assert waiting.change_of(QueryParams(query), ASKS) == change


@pytest.mark.parametrize(
    "query, said",
    [
        ("ask0=many", '"many" is no amount of cpu'),
        ("ask1=-1", "is no amount of memory"),
        ("ask2=1e99", "is no amount of nvidia.com/gpu"),
        (f"ask0={'9' * 5000}", "is no amount of cpu"),
        ("policy=strict", 'there is no policy "strict"; there is none, best-effort'),
        ("scope=node", "there is no scope"),
        (f"ask1={1 << 51}", "is no amount of memory"),
        ("&".join(f"without=p{number}" for number in range(65)), "at most 64 pods"),
    ],
)
def test_what_is_no_change_is_refused_by_name(query: str, said: str) -> None:
    with pytest.raises(BadChange) as refused:
        waiting.change_of(QueryParams(query), ASKS)
    assert said in str(refused.value)


def test_amounts_as_they_are_change_nothing() -> None:
    assert waiting.change_of(QueryParams("ask0=16&ask1=64Gi&ask2=4&on=gpu-0"), ASKS).is_none


def test_smaller_amounts_are_offered() -> None:
    offered = {each.ask.resource: each.fewer for each in waiting.fields(ASKS, Change())}
    assert offered == {"cpu": ("14", "8"), "memory": ("32Gi",), "nvidia.com/gpu": ("3", "2")}


def short(need: int, *free: int, in_zones: int = 1, resource: str = "nvidia.com/gpu") -> Lack:
    zones = tuple(ZoneShort(zone, amount, max(0, need - amount)) for zone, amount in enumerate(free))
    return Lack(resource=resource, need=need, in_zones=in_zones, most=max(free), zones=zones)


def test_a_cell_says_what_is_short_by_how_much_and_where() -> None:
    found = heat.cell(NodeAnswer(node="n", answer=Answer.SHORT, why="because", lacks=(short(4, 1, 3),)))
    assert (found.mark, found.where, found.shade, found.title) == ("−1 gpu", "zone 1", "heat-1", "because")


def test_what_is_short_is_rounded_up() -> None:
    lack = short(10 * GIB + 1, 10 * GIB, resource="memory")
    assert heat.cell(NodeAnswer(node="n", answer=Answer.SHORT, lacks=(lack,))).mark == "−1 memory"


@pytest.mark.parametrize("free, shade", [(9, "heat-1"), (6, "heat-2"), (4, "heat-3"), (0, "heat-4")])
def test_the_more_is_short_the_darker_the_cell(free: int, shade: str) -> None:
    assert heat.cell(NodeAnswer(node="n", answer=Answer.SHORT, lacks=(short(10, free),))).shade == shade


@pytest.mark.parametrize("answer", list(Answer))
def test_every_answer_has_a_word_beside_its_colour(answer: Answer) -> None:
    found = heat.cell(NodeAnswer(node="n", answer=answer))
    assert found.mark
    assert found.title


def test_a_resource_that_is_short_by_the_largest_part_is_shown() -> None:
    lacks = (short(96, 90, resource="cpu"), short(4, 1), short(8, 8))
    assert heat.cell(NodeAnswer(node="n", answer=Answer.SHORT, lacks=lacks)).mark == "−3 gpu"


def scored(**totals: dict[str, int]) -> list[Score]:
    return [Score(node, sum(plugins.values()), plugins) for node, plugins in totals.items()]


def test_plugins_that_give_all_nodes_the_same_have_no_column() -> None:
    table = decision.score_table(scored(a={"Fit": 50, "Taint": 300}, b={"Fit": 40, "Taint": 300}))
    assert (table.plugins, table.same, table.most) == (("Fit",), (("Taint", 300),), 350)


@pytest.mark.parametrize(
    "chosen, scores, said",
    [
        (
            "a",
            scored(a={"Fit": 50, "Zones": 9}, b={"Fit": 40, "Zones": 9}),
            "a scored 59, the next best b 49: Fit +10.",
        ),
        ("a", scored(a={"Fit": 5}, b={"Fit": 5}, c={"Fit": 5}), "a scored 5, as 2 other nodes did; chance decided"),
        ("a", scored(a={"Fit": 5}, b={"Fit": 9}), "b scored more, 9 against 5, but a nomination, and how certain"),
        ("a", scored(a={"Fit": 5}), "a was the only node that was scored."),
        ("a", scored(b={"Fit": 5}), ""),
    ],
)
def test_one_sentence_says_why_this_node(chosen: str, scores: list[Score], said: str) -> None:
    found = decision.why(chosen, scores)
    assert found.startswith(said)
    assert bool(found) == bool(said)
