"""Node groups: which nodes they have, how they overlap, and what is wrong with them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.selectors import LabelSelector, LabelSelectorRequirement
from numalign.deploy.operator import groups
from numalign.deploy.operator.groups import Group, Settings
from numalign.deploy.operator.kinds import GroupConfig, NodeGroupSpec
from numalign.deploy.operator.objects import Node


def node(name: str, **labels: str) -> Node:
    return Node(ObjectMeta(name=name, labels=labels))


def test_a_pool_is_the_nodes_of_its_role_whatever_the_value_of_the_label() -> None:
    (group,), problems = groups.read([NodeGroupSpec(pool_name="worker")])
    assert not problems
    role = "node-role.kubernetes.io/worker"
    found = [Node(ObjectMeta(name=value or "empty", labels={role: value})) for value in ("", "true", "worker")]
    assert groups.members([group], [*found, node("other")]) == {"worker": ["empty", "true", "worker"]}


POOL = "pools.operator.machineconfiguration.openshift.io/"


def test_a_pool_may_have_a_long_name_as_long_as_its_daemonset_can_be_called_after_it() -> None:
    longest = "worker-" + "x" * 41
    assert len(f"numalign-agent-{longest}") == 63
    assert not groups.read([NodeGroupSpec(pool_name=longest)])[1]
    _, (problem,) = groups.read([NodeGroupSpec(pool_name=f"{longest}x")])
    assert "is not up to 48 lower-case letters" in str(problem)


@pytest.mark.parametrize(
    "selector, pool",
    [
        (LabelSelector(match_labels={f"{POOL}worker": ""}), "worker"),
        (LabelSelector(match_expressions=(LabelSelectorRequirement(f"{POOL}cnf", "Exists"),)), "cnf"),
        (LabelSelector(match_labels={f"{POOL}worker": "", "more": ""}), None),
        (LabelSelector(match_labels={f"{POOL}worker": "x"}), None),
        (LabelSelector(match_labels={"custom": ""}), None),
        (LabelSelector(match_expressions=(LabelSelectorRequirement(f"{POOL}a", "In", ("",)),)), None),
        (LabelSelector(), None),
    ],
)
def test_a_pool_selector_is_understood_only_where_it_names_a_pool(selector: LabelSelector, pool: str | None) -> None:
    found, problems = groups.read([NodeGroupSpec(machine_config_pool_selector=selector)])
    assert [each.name for each in found] == ([pool] if pool else [])
    assert bool(problems) == (pool is None)


NAMES = st.sampled_from(["a", "b", "c", "d"])


@given(st.dictionaries(NAMES, st.lists(st.sampled_from(["n1", "n2", "n3"]), unique=True)))
def test_exactly_the_pairs_that_share_a_node_are_named_with_their_nodes(members: dict[str, list[str]]) -> None:
    sentences = groups.overlaps(members)
    names = list(members)
    pairs = [(one, other) for place, one in enumerate(names) for other in names[place + 1 :]]
    shared = [(one, other, set(members[one]) & set(members[other])) for one, other in pairs]
    assert len(sentences) == sum(bool(both) for _, _, both in shared)
    for one, other, both in shared:
        told = [each for each in sentences if each.startswith(f"groups {one} and {other} share ")]
        assert bool(told) == bool(both)
        assert all(name in told[0] for name in both)


def test_many_nodes_are_counted() -> None:
    assert groups.counted([f"n{number:02}" for number in range(13)]).endswith("n09 and 3 more")


@pytest.mark.parametrize(
    "config, period",
    [
        (GroupConfig(), 10),
        (GroupConfig(info_refresh_period="90s"), 90),
        (GroupConfig(info_refresh_period="0s"), 300),
        (GroupConfig(info_refresh_mode="Events"), 300),
        (GroupConfig(info_refresh_mode="Events", info_refresh_period="5s"), 300),
        (GroupConfig(info_refresh_mode="PeriodicAndEvents", info_refresh_period="5s"), 5),
        (GroupConfig(info_refresh_period="1ms"), 1),
        (GroupConfig(info_refresh_period="24h"), 300),
    ],
)
def test_the_period_of_the_agent(config: GroupConfig, period: float) -> None:
    ((group,), problems) = groups.read([NodeGroupSpec(pool_name="worker", config=config)])
    assert not problems
    assert group.settings.agent_period == period


def test_every_problem_of_every_group_is_told_in_order() -> None:
    bad = GroupConfig(pods_fingerprinting="Maybe", info_refresh_mode="Never", info_refresh_pause="x")
    _, problems = groups.read([NodeGroupSpec(pool_name="-", config=bad), NodeGroupSpec()])
    assert [each.field for each in problems] == [
        "spec.nodeGroups[0].poolName",
        "spec.nodeGroups[0].config.podsFingerprinting",
        "spec.nodeGroups[0].config.infoRefreshMode",
        "spec.nodeGroups[0].config.infoRefreshPause",
        "spec.nodeGroups[1]",
    ]


@given(st.text(max_size=30), st.text(max_size=10))
def test_no_text_breaks_the_reader(name: str, period: str) -> None:
    found, problems = groups.read([NodeGroupSpec(pool_name=name, config=GroupConfig(info_refresh_period=period))])
    assert bool(found) != bool(problems)


def test_the_status_shows_defaults() -> None:
    shown = Group(name="a", selector=LabelSelector(), settings=Settings(period=90.0, paused=True)).settings.status()
    assert (shown["infoRefreshPeriod"], shown["infoRefreshPause"]) == ("1m30s", "Enabled")
