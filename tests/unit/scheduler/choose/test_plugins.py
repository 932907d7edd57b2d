"""What a profile comes to: which rules, in which order, with which weights."""

from __future__ import annotations

from typing import Any

from numalign.placement.rules.clusterstate import ClusterState
from numalign.scheduler import main, settings
from numalign.scheduler.choose.plugins import Plugins
from numalign.scheduler.profiles import Profile


def profile(**plugins: Any) -> Profile:
    config = settings.read(main.NOTHING_SAID | {"profiles": [{"plugins": plugins}]}, "test")
    return Plugins(ClusterState()).profile(config.profiles[0])


def test_filters_and_weights_are_the_stock_scheduler_s() -> None:
    found = profile()
    assert [rule.name for rule in found.filters] == [
        "NodeName",
        "NodeUnschedulable",
        "TaintToleration",
        "NodeAffinity",
        "NodePorts",
        "NodeResourcesFit",
        "VolumeRestrictions",
        "NodeVolumeLimits",
        "VolumeBinding",
        "VolumeZone",
        "PodTopologySpread",
        "InterPodAffinity",
        "DynamicResources",
        "NodeDeclaredFeatures",
        *["NodeResourceTopologyMatch"] * 2,
    ]
    assert {scored.rule.name: scored.weight for scored in found.scores} == {
        "TaintToleration": 3,
        "NodeAffinity": 2,
        "NodeResourcesFit": 1,
        "VolumeBinding": 1,
        "PodTopologySpread": 2,
        "InterPodAffinity": 2,
        "NodeResourcesBalancedAllocation": 1,
        "ImageLocality": 1,
    }
    assert (found.zones_weight, found.percentage) == (1, 100)


def test_a_plugin_that_is_disabled_neither_filters_nor_scores() -> None:
    found = profile(multiPoint={"disabled": [{"name": "TaintToleration"}]})
    assert "TaintToleration" not in [rule.name for rule in found.filters]
    assert "TaintToleration" not in [scored.rule.name for scored in found.scores]


def test_zones_have_the_weight_that_the_profile_gives_them() -> None:
    zones = "NodeResourceTopologyMatch"
    assert profile(multiPoint={"enabled": [{"name": zones, "weight": 7}]}).zones_weight == 7


def test_a_rule_that_filters_and_scores_is_one() -> None:
    found = profile()
    filters = {rule.name: id(rule) for rule in found.filters}
    assert all(filters.get(each.rule.name, id(each.rule)) == id(each.rule) for each in found.scores)
